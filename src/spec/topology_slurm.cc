// Slurm's topology.conf: a tree of switches, or blocks.
#include <algorithm>
#include <map>

#include "spec/host_list.h"
#include "spec/topology_builder.h"

namespace muster::spec {
namespace {

constexpr std::size_t kHostsMax = std::size_t{1} << 20;
constexpr std::size_t kNone = SIZE_MAX;

/// One line of the file, joined with those that it goes on in.
struct Statement {
    std::size_t at = 0;
    std::string first;                          // The key that it starts with, as written.
    std::map<std::string, std::string> values;  // By key in lower case.
};

struct Switch {
    std::string name;
    std::size_t at = 0;
    std::vector<std::string> nodes;
    std::vector<std::string> below;  // As written.
    std::vector<std::size_t> children;
    std::size_t parent = kNone;
    std::size_t height = 0;  // Above the leaves.
};

struct Block {
    std::string name;
    std::size_t at = 0;
    std::vector<std::string> nodes;
};

class SlurmReader {
public:
    explicit SlurmReader(TopologyBuilder& out) : out_(out) {}

    void read() {
        std::size_t at = 0;
        while (at < out_.text().size()) statement(at);
        if (!switches_.empty() && (!blocks_.empty() || !sizes_.empty()))
            return out_.fail(blocks_.empty() ? sizes_at_ : blocks_[0].at,
                             "blocks and switches in one file; it is either a tree or blocks");
        if (switches_.empty())
            place_blocks();
        else
            place_tree();
    }

private:
    static std::string_view without_comment(std::string_view line) {
        return trim(line.substr(0, line.find('#')));
    }

    void statement(std::size_t& at) {
        Line line;
        std::string text;
        std::size_t begin = kNone;
        while (next_line(out_.text(), at, line)) {
            std::string_view part = without_comment(line.text);
            if (begin == kNone) begin = line.begin;
            const bool goes_on = !part.empty() && part.back() == '\\';
            if (goes_on) part.remove_suffix(1);
            text += ' ';
            text += part;
            if (!goes_on) break;
        }
        std::replace(text.begin(), text.end(), '\t', ' ');
        Statement found{begin, {}, {}};
        for (const std::string_view word : split(text, ' ')) {
            const std::string_view pair = trim(word);
            if (pair.empty()) continue;
            const std::size_t equals = pair.find('=');
            if (equals == pair.npos || equals == 0 || equals + 1 == pair.size())
                return out_.fail(begin, shorten(pair) + ": must be KEY=VALUE without spaces");
            if (found.first.empty()) found.first = std::string(pair.substr(0, equals));
            if (!found.values
                     .emplace(lower(pair.substr(0, equals)), std::string(pair.substr(equals + 1)))
                     .second)
                return out_.fail(begin, std::string(pair.substr(0, equals)) + ": given twice");
        }
        if (!found.values.empty()) take(found);
    }

    /// True: the statement has none but these keys, in lower case.
    bool only(const Statement& s, std::initializer_list<const char*> known) {
        for (const auto& pair : s.values) {
            const std::string& key = pair.first;
            if (std::find(known.begin(), known.end(), key) != known.end()) continue;
            const std::vector<std::string> names(known.begin(), known.end());
            const std::string near = nearest(key, names);
            out_.fail(s.at, key + ": unknown key; " +
                                (near.empty() ? "known here: " + join(names, ", ")
                                              : "did you mean " + near + "?"));
            return false;
        }
        return true;
    }

    std::optional<std::vector<std::string>> hosts(const Statement& s, const std::string& key) {
        const auto value = s.values.find(key);
        if (value == s.values.end()) return std::vector<std::string>();
        auto names = expand_host_list(value->second, kHostsMax);
        if (names) return *std::move(names);
        out_.fail(s.at, names.error().message);
        return std::nullopt;
    }

    void take(const Statement& s) {
        if (s.values.count("switchname") > 0) return take_switch(s);
        if (s.values.count("blockname") > 0) return take_block(s);
        if (s.values.count("blocksizes") > 0) return take_sizes(s);
        static const std::string kStarts[] = {"switchname", "blockname", "blocksizes"};
        const std::string near = nearest(lower(s.first), kStarts);
        out_.fail(s.at, shorten(s.first) + (near.empty()
                                                ? ": a line starts with SwitchName=, BlockName= or "
                                                  "BlockSizes="
                                                : ": unknown key; did you mean " + near + "?"));
    }

    void take_switch(const Statement& s) {
        if (!only(s, {"switchname", "switches", "nodes", "linkspeed"})) return;
        Switch made{.name = s.values.at("switchname"), .at = s.at};
        auto nodes = hosts(s, "nodes"), below = hosts(s, "switches");
        if (!nodes || !below) return;
        made.nodes = std::move(*nodes);
        made.below = std::move(*below);
        if (made.nodes.empty() == made.below.empty())
            return out_.fail(
                s.at, "switch " + made.name +
                          (made.nodes.empty() ? " has neither Nodes nor Switches"
                                              : " has both Nodes and Switches; a leaf switch has "
                                                "nodes, another one switches"));
        if (!is_domain_name(made.name))
            return out_.fail(s.at, shorten(made.name) + ": not a switch's name");
        if (!switch_of_.emplace(made.name, switches_.size()).second)
            return out_.fail(s.at, "switch " + made.name + " is there already");
        switches_.push_back(std::move(made));
    }

    void take_block(const Statement& s) {
        if (!only(s, {"blockname", "nodes"})) return;
        Block made{s.values.at("blockname"), s.at, {}};
        auto nodes = hosts(s, "nodes");
        if (!nodes) return;
        made.nodes = std::move(*nodes);
        if (made.nodes.empty()) return out_.fail(s.at, "block " + made.name + " has no Nodes");
        if (std::any_of(blocks_.begin(), blocks_.end(),
                        [&](const Block& other) { return other.name == made.name; }))
            return out_.fail(s.at, "block " + made.name + " is there already");
        blocks_.push_back(std::move(made));
    }

    void take_sizes(const Statement& s) {
        if (!only(s, {"blocksizes"})) return;
        if (!sizes_.empty()) return out_.fail(s.at, "BlockSizes is there already");
        sizes_at_ = s.at;
        for (const std::string_view word : split(s.values.at("blocksizes"), ',')) {
            const auto size = parse_integer(word, 1, std::int64_t{kHostsMax});
            if (!size) return out_.fail(s.at, "BlockSizes: " + size.error().message);
            const std::int64_t ratio = *size / (sizes_.empty() ? *size : sizes_.back());
            const bool power = (ratio & (ratio - 1)) == 0;
            if (!sizes_.empty() && (ratio < 2 || !power || sizes_.back() * ratio != *size))
                return out_.fail(s.at, "BlockSizes: " + std::to_string(*size) +
                                           " is not a power of two times " +
                                           std::to_string(sizes_.back()) + " before it");
            sizes_.push_back(*size);
        }
    }

    /// Parents, and heights above the leaves. What is wrong is told and left out.
    void link() {
        for (std::size_t i = 0; i < switches_.size(); ++i)
            for (const std::string& name : switches_[i].below) {
                const auto known = switch_of_.find(name);
                if (known == switch_of_.end()) {
                    out_.fail(switches_[i].at, "switch " + name + " is in no line of its own");
                    continue;
                }
                Switch& child = switches_[known->second];
                if (child.parent != kNone)
                    out_.fail(switches_[i].at, "switch " + name + " is below " +
                                                   switches_[child.parent].name + " already");
                else
                    child.parent = i, switches_[i].children.push_back(known->second);
            }
        for (std::size_t i = 0; i < switches_.size(); ++i) {
            std::size_t above = i, steps = 0;
            while (above != kNone && steps <= switches_.size())
                above = switches_[above].parent, ++steps;
            if (above == kNone) continue;
            out_.fail(switches_[i].at, "switch " + switches_[i].name + " is below itself");
            switches_[switches_[i].parent].children.clear();
            switches_[i].parent = kNone;
        }
        for (std::size_t i = 0; i < switches_.size(); ++i) {
            std::size_t height = 0;
            for (std::size_t at = i; at != kNone; at = switches_[at].parent, ++height)
                switches_[at].height = std::max(switches_[at].height, height);
        }
    }

    void place_tree() {
        link();
        std::size_t levels = 1;
        for (const Switch& each : switches_) levels = std::max(levels, each.height + 1);
        // The switch over everything is the cluster, which is no level.
        const auto is_root = [](const Switch& each) { return each.parent == kNone; };
        const bool one_root = std::count_if(switches_.begin(), switches_.end(), is_root) == 1;
        const std::size_t named = out_.site_levels().size();
        if (one_root && levels > 1 && (named == 0 || named == levels - 1)) {
            const auto root = std::find_if(switches_.begin(), switches_.end(), is_root);
            out_.note(root->at, "switch " + root->name + " holds everything: it is the cluster");
            --levels;
        }
        if (levels > model::kTopologyLevelsMax)
            return out_.fail(0, std::to_string(levels) + " levels of switches, over the limit of " +
                                    std::to_string(model::kTopologyLevelsMax));
        out_.use_levels(usual_levels(levels), 0);
        for (const Switch& leaf : switches_) {
            if (leaf.nodes.empty()) continue;
            std::vector<std::string> path(levels);
            for (const Switch* at = &leaf;; at = &switches_[at->parent]) {
                if (at->height < levels) path[levels - 1 - at->height] = at->name;
                if (at->parent == kNone) break;
            }
            for (const std::string& host : leaf.nodes) out_.add_host(leaf.at, host, path);
        }
    }

    void place_blocks() {
        if (blocks_.empty()) return;
        const std::int64_t base = sizes_.empty() ? 1 : sizes_[0];
        std::vector<std::string> usual;
        for (std::size_t i = sizes_.size(); i > 1; --i)
            usual.push_back("block" + std::to_string(sizes_[i - 1]));
        usual.emplace_back("block");
        if (!out_.use_levels(usual, sizes_at_)) return;
        for (std::size_t b = 0; b < blocks_.size(); ++b) {
            const Block& block = blocks_[b];
            if (static_cast<std::int64_t>(block.nodes.size()) < base)
                out_.fail(block.at,
                          "block " + block.name + " has " + std::to_string(block.nodes.size()) +
                              " nodes, fewer than the base block's " + std::to_string(base));
            std::vector<std::string> path;
            for (std::size_t i = sizes_.size(); i > 1; --i)
                path.push_back(group_name(b, static_cast<std::size_t>(sizes_[i - 1] / base)));
            path.push_back(block.name);
            for (const std::string& host : block.nodes) out_.add_host(block.at, host, path);
        }
    }
    /// Of the `size` blocks in a row, in the order of the file, that `block` is one of.
    std::string group_name(std::size_t block, std::size_t size) const {
        const std::size_t first = block / size * size;
        const std::size_t last = std::min(first + size, blocks_.size()) - 1;
        return first == last ? blocks_[first].name
                             : blocks_[first].name + ".." + blocks_[last].name;
    }

    TopologyBuilder& out_;
    std::vector<Switch> switches_;
    std::map<std::string, std::size_t> switch_of_;
    std::vector<Block> blocks_;
    std::vector<std::int64_t> sizes_;
    std::size_t sizes_at_ = 0;
};

}  // namespace

void read_topology_slurm(TopologyBuilder& out) {
    SlurmReader(out).read();
}

}  // namespace muster::spec
