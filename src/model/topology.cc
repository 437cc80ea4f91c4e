#include "model/topology.h"

#include "base/bytes.h"

namespace muster::model {
namespace {

constexpr std::uint64_t kVersion = 1;

void put(Writer& out, const std::vector<std::string>& names) {
    out.number(names.size());
    for (const std::string& name : names) out.text(name);
}
std::vector<std::string> names(Reader& in) {
    std::vector<std::string> out;
    for (std::size_t n = in.count(); n > 0 && in.ok(); --n) out.emplace_back(in.text());
    return out;
}

}  // namespace

std::vector<std::string> path_of(const Topology& topology, const NodeFacts& facts) {
    const auto host = topology.hosts.find(facts.name);
    std::vector<std::string> path;
    if (host != topology.hosts.end()) {
        path = host->second;
    } else {
        for (const std::string& level : topology.levels) path.emplace_back(label(facts, level));
    }
    path.resize(topology.levels.size());
    return path;
}

std::string encode(const Topology& topology) {
    Writer out;
    out.number(kVersion);
    put(out, topology.levels);
    out.number(topology.hosts.size());
    for (const auto& [host, path] : topology.hosts) out.text(host), put(out, path);
    return std::move(out).bytes();
}

std::optional<Topology> decode_topology(std::string_view bytes) {
    Reader in(bytes);
    if (in.number() != kVersion) return std::nullopt;
    Topology topology;
    topology.levels = names(in);
    for (std::size_t n = in.count(); n > 0 && in.ok(); --n) {
        std::string host(in.text());
        topology.hosts[std::move(host)] = names(in);
    }
    if (!in.ok() || !in.at_end()) return std::nullopt;
    return topology;
}

}  // namespace muster::model
