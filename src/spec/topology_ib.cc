// The dump of ibnetdiscover: switches, channel adapters and the links between their ports.
//
// Hosts that share a leaf switch are one domain of the lowest level (of a rail fabric: all leaf
// switches of a group of hosts). A level above holds what is connected through the switches up to
// so many hops above the leaves; where that is everything, it is the cluster and no level.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "spec/topology_builder.h"

namespace muster::spec {
namespace {

constexpr std::size_t kNone = SIZE_MAX;

struct Port {
    std::string peer;  // Its id.
    std::int64_t peer_port = 0;
    std::size_t at = 0;
};
struct Element {
    enum class Kind : std::uint8_t { Switch, Adapter, Router };
    Kind kind = Kind::Switch;
    std::string id;  // "S-0000000000200007": never its description (F9).
    std::string description;
    std::size_t at = 0;
    std::int64_t ports_max = 0;
    std::map<std::int64_t, Port> ports;
    std::string host;  // Adapter: the host it is in; "" = none.
};

/// Takes the front of a line apart.
struct Cursor {
    std::string_view rest;
    bool take(std::string_view word) {
        if (rest.substr(0, word.size()) != word) return false;
        rest.remove_prefix(word.size());
        return true;
    }
    void space() {
        while (!rest.empty() && (rest.front() == ' ' || rest.front() == '\t'))
            rest.remove_prefix(1);
    }
    std::optional<std::int64_t> number() {
        const std::size_t n = std::min(rest.find_first_not_of("0123456789"), rest.size());
        const auto value = parse_integer(rest.substr(0, n), 0, 1'000'000);
        if (!value) return std::nullopt;
        rest.remove_prefix(n);
        return *value;
    }
    std::optional<std::string> until(std::string_view open, std::string_view close) {
        if (!take(open)) return std::nullopt;
        const std::size_t end = rest.find(close);
        if (end == rest.npos) return std::nullopt;
        std::string text(rest.substr(0, end));
        rest.remove_prefix(end + close.size());
        return text;
    }
};

class Union {
public:
    explicit Union(std::size_t size) : parent_(size) {
        std::iota(parent_.begin(), parent_.end(), std::size_t{0});
    }
    std::size_t find(std::size_t a) {
        while (parent_[a] != a) a = parent_[a] = parent_[parent_[a]];
        return a;
    }
    void join(std::size_t a, std::size_t b) { parent_[find(a)] = find(b); }

private:
    std::vector<std::size_t> parent_;
};

/// "leaf7" of "MF0;leaf7:MQM8700/U1", how managed switches describe themselves.
std::string switch_name(const std::string& description) {
    const std::size_t semicolon = description.find(';'), colon = description.find(':');
    if (description.substr(0, 2) == "MF" && semicolon != std::string::npos &&
        colon != std::string::npos && semicolon + 1 < colon)
        return description.substr(semicolon + 1, colon - semicolon - 1);
    return description;
}

/// Why an adapter's description names no host; "" if it does.
std::string no_host(const std::string& description) {
    const std::string_view first = std::string_view(description).substr(0, description.find(' '));
    if (description.find("Aggregation Node") != std::string::npos)
        return "an aggregation node, no host";
    const bool vendors = description.find("Mellanox") != std::string::npos ||
                         description.find("ConnectX") != std::string::npos ||
                         description.find("NVIDIA") != std::string::npos;
    if (first.empty() || vendors || first == "localhost" || first == "(none)" ||
        first.substr(0, 2) == "0x" || !is_host_name(first))
        return "has no host's name";
    return {};
}

class IbReader {
public:
    explicit IbReader(TopologyBuilder& out) : out_(out) {}

    void read() {
        Line line;
        for (std::size_t at = 0; next_line(out_.text(), at, line);) read_line(line);
        check_links();
        name_hosts();
        find_tiers();
        place();
    }

private:
    void read_line(const Line& line) {
        Cursor in{line.text};
        in.space();
        if (in.rest.empty() || in.rest.front() == '#') return;
        for (const std::string_view fact :
             {"vendid=", "devid=", "sysimgguid=", "switchguid=", "caguid=", "rtguid=", "Chassis "})
            if (in.rest.substr(0, fact.size()) == fact) return;
        if (in.rest.front() == '[') return read_port(line, in);
        current_ = kNone;
        Element made;
        if (in.take("Switch"))
            made.kind = Element::Kind::Switch;
        else if (in.take("Ca"))
            made.kind = Element::Kind::Adapter;
        else if (in.take("Rt"))
            made.kind = Element::Kind::Router;
        else
            return out_.fail(line.begin, shorten(trim(line.text)) +
                                             ": not a line of ibnetdiscover; it begins with "
                                             "Switch, Ca, Rt or [port]");
        in.space();
        const auto ports = in.number();
        in.space();
        const auto id = in.until("\"", "\"");
        if (!ports || !id || id->empty())
            return out_.fail(line.begin, "the number of ports and the quoted id are expected");
        const std::size_t comment = in.rest.find('#');
        if (comment != in.rest.npos) {
            in.rest.remove_prefix(comment + 1);
            in.space();
            made.description = in.until("\"", "\"").value_or("");
        }
        made.description = std::string(trim(made.description));
        made.id = *id;
        made.at = line.begin;
        made.ports_max = *ports;
        if (!by_id_.emplace(made.id, all_.size()).second)
            return out_.fail(line.begin, made.id + " is there already");
        current_ = all_.size();
        all_.push_back(std::move(made));
    }

    void read_port(const Line& line, Cursor in) {
        if (current_ == kNone)
            return out_.fail(line.begin, "a port without its Switch or Ca line before it");
        Element& own = all_[current_];
        in.take("[");
        const auto number = in.number();
        bool good = number && in.take("]");
        in.until("[ext ", "]");
        in.until("(", ")");
        in.space();
        const auto peer = in.until("\"", "\"");
        const bool has_port = in.take("[");
        const auto peer_port = in.number();
        good = good && peer && !peer->empty() && has_port && peer_port && in.take("]");
        if (!good)
            return out_.fail(line.begin, "not a link; expected is [port] \"peer's id\"[its port]");
        if (*number < 1 || *number > own.ports_max)
            return out_.fail(line.begin, "port " + std::to_string(*number) + " of " + own.id +
                                             ", which has " + std::to_string(own.ports_max));
        if (!own.ports.emplace(*number, Port{*peer, *peer_port, line.begin}).second)
            out_.fail(line.begin,
                      "port " + std::to_string(*number) + " of " + own.id + " is there already");
    }

    /// Both ends of each link say the same. Links that do not hold are left out.
    void check_links() {
        for (Element& own : all_)
            for (auto port = own.ports.begin(); port != own.ports.end();) {
                const auto peer = by_id_.find(port->second.peer);
                std::string why;
                if (peer == by_id_.end()) {
                    why = port->second.peer + " has no lines of its own";
                } else {
                    const auto& back = all_[peer->second].ports;
                    const auto other = back.find(port->second.peer_port);
                    if (other == back.end() || other->second.peer != own.id ||
                        other->second.peer_port != port->first)
                        why = port->second.peer + " does not list this link at its port " +
                              std::to_string(port->second.peer_port);
                }
                if (why.empty()) {
                    ++port;
                    continue;
                }
                out_.fail(port->second.at, "link of " + own.id + ": " + why);
                // The other end stays as it is, so that it is told too.
                broken_.insert({own.id, port->first});
                ++port;
            }
        for (const auto& [id, port] : broken_) all_[by_id_.at(id)].ports.erase(port);
    }

    void name_hosts() {
        for (Element& each : all_) {
            if (each.kind != Element::Kind::Adapter) continue;
            std::string why = no_host(each.description);
            const bool linked =
                std::any_of(each.ports.begin(), each.ports.end(), [&](const auto& port) {
                    return all_[by_id_.at(port.second.peer)].kind == Element::Kind::Switch;
                });
            if (why.empty() && !linked) why = "is linked to no switch";
            if (why.empty())
                each.host = each.description.substr(0, each.description.find(' '));
            else
                out_.note(each.at,
                          each.id +
                              (each.description.empty() ? std::string()
                                                        : " (" + shorten(each.description) + ")") +
                              ": " + why);
        }
    }

    /// Leaf switches have hosts; other tiers are as many hops above them.
    void find_tiers() {
        tier_.assign(all_.size(), kNone);
        std::vector<std::size_t> front;
        std::map<std::size_t, std::set<std::string>> hosts_at;  // By switch.
        for (const Element& each : all_)
            if (!each.host.empty())
                for_switches(each, [&](std::size_t at) { hosts_at[at].insert(each.host); });
        for (const auto& [at, hosts] : hosts_at) {
            std::set<std::size_t> leaves_beside;
            for_switches(all_[at], [&](std::size_t peer) {
                if (hosts_at.count(peer) > 0) leaves_beside.insert(peer);
            });
            if (leaves_beside.size() <= hosts.size()) {
                tier_[at] = 0;
                front.push_back(at);
                continue;
            }
            out_.fail(all_[at].at, name_of(at) + " links " + std::to_string(leaves_beside.size()) +
                                       " leaf switches, yet host " + *hosts.begin() +
                                       " stands at it; give that host a place by labels");
        }
        for (std::size_t tier = 1; !front.empty(); ++tier) {
            std::vector<std::size_t> next;
            for (const std::size_t at : front)
                for_switches(all_[at], [&](std::size_t peer) {
                    if (tier_[peer] == kNone) tier_[peer] = tier, next.push_back(peer);
                });
            if (!next.empty()) top_ = tier;
            front = std::move(next);
        }
    }

    template <class Take>
    void for_switches(const Element& own, Take take) const {
        for (const auto& [number, port] : own.ports) {
            const std::size_t peer = by_id_.at(port.peer);
            if (all_[peer].kind == Element::Kind::Switch) take(peer);
        }
    }
    std::string name_of(std::size_t at) const {
        const std::string name = switch_name(all_[at].description);
        return is_domain_name(name) ? name : all_[at].id;
    }

    /// Hosts by domain: of the leaves alone, or through all switches up to `tier`.
    std::map<std::string, std::size_t> domains(std::size_t tier, bool through_switches) {
        Union sets(all_.size());
        std::map<std::string, std::size_t> first;  // An adapter of each host.
        for (std::size_t i = 0; i < all_.size(); ++i) {
            const bool adapter = !all_[i].host.empty();
            if (adapter) {
                const auto [known, fresh] = first.emplace(all_[i].host, i);
                if (!fresh) sets.join(i, known->second);
            }
            const bool within = tier_[i] != kNone && tier_[i] <= tier;
            if (!adapter && !(through_switches && within)) continue;
            for_switches(all_[i], [&](std::size_t peer) {
                if (tier_[peer] != kNone && tier_[peer] <= tier) sets.join(i, peer);
            });
        }
        std::map<std::string, std::size_t> out;
        for (const Element& each : all_)  // A host at a switch that is no leaf is in no domain.
            if (!each.host.empty())
                for_switches(each, [&](std::size_t at) {
                    if (tier_[at] == 0) out[each.host] = sets.find(first.at(each.host));
                });
        sets_of_tier_.clear();
        for (std::size_t i = 0; i < all_.size(); ++i)
            if (tier_[i] != kNone && tier_[i] <= tier) sets_of_tier_[sets.find(i)].push_back(i);
        return out;
    }

    /// Each domain by the first of its switches of that tier; by its id where two are alike.
    std::map<std::size_t, std::string> names(std::size_t tier) const {
        std::map<std::size_t, std::string> by_name, by_id;
        std::multiset<std::string> seen;
        for (const auto& [set, members] : sets_of_tier_) {
            std::vector<std::pair<std::string, std::string>> own;
            for (std::size_t t = tier + 1; own.empty() && t-- > 0;)
                for (const std::size_t at : members)
                    if (tier_[at] == t) own.emplace_back(name_of(at), all_[at].id);
            std::sort(own.begin(), own.end());
            const std::string more =
                own.size() > 1 ? "+" + std::to_string(own.size() - 1) : std::string();
            by_name[set] = own[0].first + more;
            by_id[set] = own[0].second + more;
            seen.insert(by_name[set]);
        }
        for (auto& [set, name] : by_name)
            if (seen.count(name) > 1) name = by_id[set];
        return by_name;
    }

    void place() {
        std::vector<std::map<std::string, std::string>> levels;  // From the leaves up.
        std::map<std::string, std::size_t> last;
        for (std::size_t tier = 0; tier <= top_ + 1; ++tier) {
            // The step after the leaves alone takes the links between leaves in.
            const auto sets = tier == 0 ? domains(0, false) : domains(tier - 1, true);
            std::set<std::size_t> distinct, before;
            for (const auto& [host, set] : sets) distinct.insert(set);
            for (const auto& [host, set] : last) before.insert(set);
            if (tier > 0 && (distinct.size() <= 1 || distinct.size() == before.size())) continue;
            const auto called = names(tier == 0 ? 0 : tier - 1);
            std::map<std::string, std::string> level;
            for (const auto& [host, set] : sets) level[host] = called.at(set);
            levels.push_back(std::move(level));
            last = sets;
        }
        if (levels.size() > model::kTopologyLevelsMax)
            return out_.fail(0, std::to_string(levels.size()) +
                                    " levels of switches, over the "
                                    "limit of " +
                                    std::to_string(model::kTopologyLevelsMax));
        std::reverse(levels.begin(), levels.end());
        out_.use_levels(usual_levels(levels.size()), 0);
        for (const auto& [host, leaf] : levels.back()) {
            std::vector<std::string> path;
            for (const auto& level : levels) path.push_back(level.at(host));
            out_.add_host(0, host, std::move(path));
        }
    }

    TopologyBuilder& out_;
    std::vector<Element> all_;
    std::map<std::string, std::size_t> by_id_;
    std::size_t current_ = kNone;
    std::set<std::pair<std::string, std::int64_t>> broken_;
    std::vector<std::size_t> tier_;  // By element; kNone: no switch, or not connected to hosts.
    std::size_t top_ = 0;
    std::map<std::size_t, std::vector<std::size_t>> sets_of_tier_;
};

}  // namespace

void read_topology_ib(TopologyBuilder& out) {
    IbReader(out).read();
}

}  // namespace muster::spec
