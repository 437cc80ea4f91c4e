// The readers of where a gang's nodes must stand: topology and its parts.
#include <algorithm>

#include "spec/normaliser.h"

namespace muster::spec {
namespace {

constexpr std::size_t kLevelNameMax = 64;

/// A level's name as the site wrote it. Empty: it cannot be one, and the user knows why.
std::string level_name(Normaliser& n, const Value& v) {
    const auto written = n.scalar(v);
    if (!written) return {};
    const bool valid = !written->empty() && written->size() <= kLevelNameMax &&
                       std::all_of(written->begin(), written->end(), [](char c) {
                           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                  (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-' ||
                                  c == '/';
                       });
    if (!valid) {
        n.fail(v, shorten(*written) +
                      ": not the name of a level; at most 64 letters, digits and . _ - / (leaf)");
        return {};
    }
    if (*written == "cluster") {
        n.fail(v, "cluster: all nodes are in the cluster; leave it out");
        return {};
    }
    return *written == "none" ? std::string() : std::string(*written);
}

bool has(const Value& map, std::string_view key) {
    return std::any_of(map.entries.begin(), map.entries.end(),
                       [&](const Entry& entry) { return entry.key == key; });
}

}  // namespace

void read_topology(Normaliser& n, const Value& v) {
    if (v.kind != Value::Kind::Map) return read_topology_required(n, v);
    if (v.entries.empty())
        n.fail(v, "empty; name a level, as in {required: leaf}, or leave it out");
    n.read_parts(v, find_field(job_fields(), "topology")->parts);
}
void read_topology_required(Normaliser& n, const Value& v) {
    n.spec.topology.required = level_name(n, v);
}
void read_topology_preferred(Normaliser& n, const Value& v) {
    n.spec.topology.preferred = level_name(n, v);
}
void read_topology_spares(Normaliser& n, const Value& v) {
    if (const auto spares = n.integer(v, 0, model::kNodesMax)) n.spec.topology.spares = *spares;
}
void read_topology_slice(Normaliser& n, const Value& v) {
    if (v.kind != Value::Kind::Map)
        return n.fail(v, "a map expected, as in {size: 8, required: nvlink}");
    const Field* topology = find_field(job_fields(), "topology");
    n.read_parts(v, find_field(topology->parts, "slice")->parts);
    for (const std::string_view key : {"size", "required"})
        if (!has(v, key)) n.fail(v, errors::kJobFieldMissing, std::string(key) + " is missing");
}
void read_slice_size(Normaliser& n, const Value& v) {
    if (const auto size = n.integer(v, 1, model::kNodesMax)) n.spec.topology.slice = *size;
}
void read_slice_required(Normaliser& n, const Value& v) {
    if (v.kind == Value::Kind::Scalar && v.text == "none")
        return n.fail(v, "none: name the level that holds each slice, or take slice away");
    n.spec.topology.slice_required = level_name(n, v);
}

}  // namespace muster::spec
