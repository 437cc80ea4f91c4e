// Rows of topology files of every form: where each host stands, what is left out, what is wrong.
#include "spec/topology_reader.h"

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "base/text.h"

namespace muster::spec {
namespace {

/// "zone,leaf | n1:a,l1 n2:a,l2", then the problems and the notes, each after a line break.
std::string show(const TopologyReading& reading) {
    std::string out = join(reading.topology.levels, ",") + " |";
    for (const auto& [host, path] : reading.topology.hosts)
        out += " " + host + ":" + join(path, ",");
    for (const Problem& problem : reading.problems) out += "\n" + render_line(problem);
    for (const std::string& note : reading.notes) out += "\nnote " + note;
    return out;
}
std::string answer(std::string_view text, std::vector<std::string> levels = {}) {
    TopologyHint hint;
    hint.file = "t";
    hint.levels = std::move(levels);
    return show(read_topology(text, hint));
}

struct Row {
    const char* text;
    const char* expected;
};
void expect(std::initializer_list<Row> rows) {
    for (const Row& row : rows) EXPECT_EQ(answer(row.text), row.expected) << row.text;
}

TEST(TopologyReader, OurOwnTree) {
    expect({
        {"levels: [zone, leaf]\ntree: {a: {l1: [\"n[1-2]\", n3], l2: n4}, b: {l1: [n5]}}\n",
         "zone,leaf | n1:a,l1 n2:a,l1 n3:a,l1 n4:a,l2 n5:b,l1"},
        {"tree: {l1: [n1], l2: [n2]}", "leaf | n1:l1 n2:l2"},
        {"tree: {s: {l1: [n1]}, l2: [n2]}", "spine,leaf | n1:s,l1 n2:l2,"},
        {"levels: [zone, leaf]\ntree: {a: [n1], b: }", "zone,leaf | n1:a,"},
        {"levels: [zone, leaf, nvlink]\ntree: {a: {\"\": {x: [n1]}}}",
         "zone,leaf,nvlink | n1:a,,x"},
        {"tree: {l1: [n1, n1], l2: [n1]}",
         "leaf | n1:l1\nt:1:17: error: host n1 has a place already\n"
         "t:1:27: error: host n1 has a place already"},
        {"levels: [leaf]\ntree: {a: {l1: [n1]}, b: [n2]}",
         "leaf | n2:b\nt:2:11: error: deeper than the 1 level (leaf); hosts are expected here, as "
         "in "
         "[n1, \"n[2-8]\"]"},
        {"levels: [leaf, leaf]\ntree: {}",
         "leaf |\nt:1:9: error: levels: leaf: two levels of this "
         "name"},
        {"levels: [node]\ntree: {}",
         "leaf |\nt:1:9: error: levels: node: a level of this name is always there; leave it out"},
        {"tre: {}",
         "leaf |\nt:1:1: error: tre: unknown key; did you mean tree?\nt:1:1: error: tree is "
         "missing: "
         "the domains and their hosts"},
        {"tree: {a: [[n1], \"n[2-1]\"], a: [n3]}",
         "leaf |\nt:1:12: error: a list holds hosts; a domain is a key of a map\n"
         "t:1:18: error: 2-1: the range falls; write the smaller number first\n"
         "t:1:29: error: a: given twice"},
        {"tree: {}", "leaf |\nt:1:1: error: there is no host in it"},
        {"",
         "leaf |\nt:1:1: error: not a topology; a map expected, as in {levels: [zone, leaf], "
         "tree: {a: {leaf1: [n1, \"n[2-8]\"]}}}"},
    });
    // One name is a prefix of another, and a host is called as its leaf (F9).
    expect({{"tree: {r1: [r1, n1], r11: [r11]}", "leaf | n1:r1 r1:r1 r11:r11"}});
}

TEST(TopologyReader, Tables) {
    expect({
        {"ip,DSW,PSW,ASW\nh1,G6,P10,S14\r\n# c\n\nh2,G6,P12,S14\n",
         "dsw,psw,asw | h1:G6,P10,S14 h2:G6,P12,S14"},
        {"host, zone , leaf\nn1, a,\n", "zone,leaf | n1:a,"},
        {"host,leaf\nn1,a\nn1,b\nn2\nn 3,c\nn4,\"d\"\n",
         "leaf | n1:a\nt:3:1: error: host n1 has a place already\n"
         "t:4:1: error: 1 fields, not 2 as in the first line\n"
         "t:5:1: error: n 3: not a host's name; letters, digits, . _ and -\n"
         "t:6:1: error: quotes; write plain names, which hold no comma"},
        {"n1,leaf1\nn2,leaf1\n",
         "leaf |\nt:1:1: error: the first line must name the columns: host (or ip, node), then the "
         "levels from the top down, as in host,zone,leaf"},
    });
    EXPECT_EQ(answer("host,a,b\nn1,x,y\n", {"spine", "leaf"}), "spine,leaf | n1:x,y");
    EXPECT_EQ(
        answer("host,a,b\nn1,x,y\n", {"leaf"}),
        "a,b | n1:x,y\nt:1:1: error: levels: the file has 2 (a, b), but 1 names are given for "
        "them (leaf)");
}

TEST(TopologyReader, SlurmsTree) {
    expect({
        {"# comment\nSwitchName=s0 Nodes=n[0-1]\nswitchname=s1 nodes=n2,n3 LinkSpeed=1\n",
         "leaf | n0:s0 n1:s0 n2:s1 n3:s1"},
        {"SwitchName=s[0 Nodes=n0\nSwitchName=s1 Nodes=n1",
         "leaf | n0:s[0 n1:s1"},  // A name is a name.
        {"SwitchName=s0 Nodes=n[00-01]\nSwitchName=s1 \\\n  Nodes=n02 # c\nSwitchName=top "
         "Switches=s[0-1]\n",
         "leaf | n00:s0 n01:s0 n02:s1\nnote t:4: switch top holds everything: it is the cluster"},
        {"SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2\nSwitchName=c Nodes=n3\nSwitchName=p "
         "Switches=a,b\nSwitchName=top Switches=p,c\nSwitchName=other Nodes=n4\n",
         "core,spine,leaf | n1:top,p,a n2:top,p,b n3:top,,c n4:,,other"},
        {"SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\nSwitchName=b Nodes=n1\nSwitchName=c\n"
         "SwitchName=d Nodes=x Switches=a\nSwitchName=e Switches=f\nNodes=q\nSwitchName=g Nods=n9\n"
         "x y\n",
         "leaf | n1:a\nt:2:1: error: switch a is there already\n"
         "t:4:1: error: switch c has neither Nodes nor Switches\n"
         "t:5:1: error: switch d has both Nodes and Switches; a leaf switch has nodes, another one "
         "switches\n"
         "t:7:1: error: Nodes: a line starts with SwitchName=, BlockName= or BlockSizes=\n"
         "t:8:1: error: nods: unknown key; did you mean nodes?\n"
         "t:9:1: error: x: must be KEY=VALUE without spaces\n"
         "t:6:1: error: switch f is in no line of its own\n"
         "t:3:1: error: host n1 has a place already"},
        {"SwitchName=a\tNodes=n1\n\tSwitchName=b \t Nodes=n2\t\n=x\n",
         "leaf | n1:a n2:b\nt:3:1: error: =x: must be KEY=VALUE without spaces"},
        {"SwitchName=a Nodes=n1\nSwitchNam=b Nodes=n2\n",
         "leaf | n1:a\nt:2:1: error: SwitchNam: unknown key; did you mean switchname?"},
        {"SwitchName=a Switches=b\nSwitchName=b Switches=a\nSwitchName=c Nodes=n1\n",
         "spine,leaf | n1:,c\nt:1:1: error: switch a is below itself"},
        {"SwitchName=a Nodes=n1\nSwitchName=b Switches=a\nSwitchName=c Switches=a\n",
         "spine,leaf | n1:b,a\nt:3:1: error: switch a is below b already"},
    });
    // Names that are prefixes of each other are two switches; a host may be called as its switch
    // (F9).
    expect(
        {{"SwitchName=s1 Nodes=s1,n1\nSwitchName=s11 Nodes=s11\n", "leaf | n1:s1 s1:s1 s11:s11"}});
    EXPECT_EQ(answer("SwitchName=a Nodes=n1\nSwitchName=b Switches=a\n", {"pod", "rack"}),
              "pod,rack | n1:b,a");
    EXPECT_EQ(answer("SwitchName=a Nodes=n1\nSwitchName=b Switches=a\n", {"rack"}),
              "rack | n1:a\nnote t:2: switch b holds everything: it is the cluster");
}

TEST(TopologyReader, SlurmsBlocks) {
    expect({
        {"BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\nBlockName=b3 Nodes=n[5-7]\n",
         "block | n1:b1 n2:b1 n3:b2 n4:b2 n5:b3 n6:b3 n7:b3"},
        {"BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\nBlockName=b3 Nodes=n[5-7]\n"
         "BlockSizes=2,4\n",
         "block4,block | n1:b1..b2,b1 n2:b1..b2,b1 n3:b1..b2,b2 n4:b1..b2,b2 n5:b3,b3 n6:b3,b3 "
         "n7:b3,b3"},
        {"BlockName=b1 Nodes=n1\nBlockName=b1 Nodes=n2\nBlockName=b2 Nodes=n3\nBlockSizes=2,6\n",
         "block | n1:b1 n3:b2\nt:2:1: error: block b1 is there already\n"
         "t:4:1: error: BlockSizes: 6 is not a power of two times 2 before it\n"
         "t:1:1: error: block b1 has 1 nodes, fewer than the base block's 2\n"
         "t:3:1: error: block b2 has 1 nodes, fewer than the base block's 2"},
        {"BlockName=b1 Nodes=n1\nSwitchName=s Nodes=n2\n",
         "leaf |\nt:1:1: error: blocks and switches in one file; it is either a tree or blocks"},
    });
}

/// A dump as ibnetdiscover writes it, of switches and the hosts at them. Links are made once.
class Fabric {
public:
    int add(char kind, const std::string& description) {
        elements_.push_back({kind, description, {}});
        return static_cast<int>(elements_.size()) - 1;
    }
    void link(int a, int b) {
        elements_[at(a)].peers.push_back({b, static_cast<int>(elements_[at(b)].peers.size()) + 1});
        elements_[at(b)].peers.push_back({a, static_cast<int>(elements_[at(a)].peers.size())});
    }
    std::string dump() const {
        std::string out = "#\n# Topology file: generated on Tue Dec  1 03:39:33 2026\n#\n";
        for (std::size_t i = 0; i < elements_.size(); ++i) {
            const Element& own = elements_[i];
            const bool is_switch = own.kind == 'S';
            out += "\nvendid=0x2c9\ndevid=0x1\nsysimgguid=0x1\n";
            out += is_switch ? "switchguid=0x1(1)\nSwitch\t" : "caguid=0x1\nCa\t";
            out += std::to_string(is_switch ? 64 : 8) + " \"" + id(i) + "\"\t\t# \"" +
                   own.description + "\" base port 0 lid 3 lmc 0\n";
            for (std::size_t p = 0; p < own.peers.size(); ++p)
                out += "[" + std::to_string(p + 1) + "]" + (is_switch ? "" : "(100007) ") + "\t\"" +
                       id(at(own.peers[p].first)) + "\"[" + std::to_string(own.peers[p].second) +
                       "]" + (is_switch ? "(5) " : "") + "\t\t# \"x\" lid 7 4xHDR\n";
        }
        return out;
    }

private:
    struct Element {
        char kind;
        std::string description;
        std::vector<std::pair<int, int>> peers;
    };
    static std::size_t at(int i) { return static_cast<std::size_t>(i); }
    std::string id(std::size_t i) const {
        return std::string(1, elements_[i].kind == 'S' ? 'S' : 'H') + "-" +
               std::to_string(1000 + i);
    }
    std::vector<Element> elements_;
};

/// `pods` × `leaves` × `hosts`, two spines a pod and, with several pods, two cores.
std::string fat_tree(int pods, int leaves, int hosts) {
    Fabric fabric;
    const int core_a = fabric.add('S', "core1"), core_b = fabric.add('S', "core2");
    int n = 0;
    for (int p = 0; p < pods; ++p) {
        int spines[2];
        for (int s = 0; s < 2; ++s) {
            spines[s] = fabric.add('S', "spine" + std::to_string(p) + std::string(1, "ab"[s]));
            if (pods > 1) fabric.link(spines[s], core_a), fabric.link(spines[s], core_b);
        }
        for (int l = 0; l < leaves; ++l) {
            const int leaf = fabric.add('S', "leaf" + std::to_string(p) + "-" + std::to_string(l));
            for (const int spine : spines) fabric.link(leaf, spine);
            for (int h = 0; h < hosts; ++h)
                fabric.link(fabric.add('C', "n" + std::to_string(++n) + " mlx5_0"), leaf);
        }
    }
    return fabric.dump();
}

TEST(TopologyReader, InfiniBandTreesHaveTheLevelsOfTheirSwitches) {
    EXPECT_EQ(answer(fat_tree(1, 2, 2)), "leaf | n1:leaf0-0 n2:leaf0-0 n3:leaf0-1 n4:leaf0-1");
    EXPECT_EQ(answer(fat_tree(2, 2, 1)),
              "spine,leaf | n1:spine0a+1,leaf0-0 n2:spine0a+1,leaf0-1 n3:spine1a+1,leaf1-0 "
              "n4:spine1a+1,leaf1-1");
    EXPECT_EQ(answer(fat_tree(2, 1, 1), {"rack"}), "rack | n1:leaf0-0 n2:leaf1-0");
    const TopologyReading big = read_topology(fat_tree(8, 16, 16), {});
    EXPECT_EQ(big.bad, 0);
    EXPECT_EQ(big.format, TopologyFormat::Ib);
    EXPECT_EQ(big.topology.hosts.size(), 2048u);
    std::set<std::vector<std::string>> paths;
    for (const auto& [host, path] : big.topology.hosts) paths.insert(path);
    EXPECT_EQ(paths.size(), 128u);
}

TEST(TopologyReader, InfiniBandLeavesOutWhatIsNoHost) {
    Fabric fabric;
    const int leaf = fabric.add('S', "MF0;leaf1:MQM8700/U1"), spine = fabric.add('S', "spine");
    const int other = fabric.add('S', "leaf2");
    fabric.link(leaf, spine), fabric.link(other, spine);
    fabric.link(fabric.add('C', "leaf1 mlx5_0"), leaf);  // A host called as its switch (F9).
    fabric.link(fabric.add('C', "n2 HCA-1"), other);
    fabric.link(fabric.add('C', "Mellanox Technologies Aggregation Node"), leaf);
    fabric.link(fabric.add('C', "Mellanox Technologies Aggregation Node"), spine);
    fabric.link(fabric.add('C', ""), other);
    fabric.link(fabric.add('C', "MT4123 ConnectX6   Mellanox Technologies"), other);
    fabric.add('C', "n9 mlx5_0");
    EXPECT_EQ(answer(fabric.dump()),
              "leaf | leaf1:leaf1 n2:leaf2\n"
              "note t:51: H-1005 (Mellanox Technologies Aggregation Node): an aggregation node, no "
              "host\n"
              "note t:58: H-1006 (Mellanox Technologies Aggregation Node): an aggregation node, no "
              "host\n"
              "note t:65: H-1007: has no host's name\n"
              "note t:72: H-1008 (MT4123 ConnectX6   Mellanox Technologies): has no host's name\n"
              "note t:79: H-1009 (n9 mlx5_0): is linked to no switch");
}

TEST(TopologyReader, InfiniBandRailsAreOneDomainAndOddFabricsAreTold) {
    Fabric rails;
    for (int group = 0; group < 2; ++group) {
        const int first = rails.add('S', "g" + std::to_string(group) + "r0");
        const int second = rails.add('S', "g" + std::to_string(group) + "r1");
        for (int host = 0; host < 2; ++host) {
            const std::string name = "n" + std::to_string(2 * group + host);
            rails.link(rails.add('C', name + " mlx5_0"), first);
            rails.link(rails.add('C', name + " mlx5_1"), second);
        }
    }
    EXPECT_EQ(answer(rails.dump()), "leaf | n0:g0r0+1 n1:g0r0+1 n2:g1r0+1 n3:g1r0+1");

    Fabric alike;  // Switches without names of their own are told apart by their ids.
    for (int i = 0; i < 2; ++i) {
        const int leaf = alike.add('S', "SwitchIB Mellanox Technologies");
        alike.link(alike.add('C', "n" + std::to_string(i)), leaf);
    }
    EXPECT_EQ(answer(alike.dump()), "leaf | n0:S-1000 n1:S-1002");

    Fabric odd;  // A manager's host at a spine must not make it a leaf.
    const int spine = odd.add('S', "spine");
    odd.link(odd.add('C', "ufm mlx5_0"), spine);
    for (int i = 0; i < 2; ++i) {
        const int leaf = odd.add('S', "leaf" + std::to_string(i));
        odd.link(leaf, spine);
        odd.link(odd.add('C', "n" + std::to_string(i)), leaf);
    }
    EXPECT_EQ(answer(odd.dump()),
              "leaf | n0:leaf0 n1:leaf1\nt:9:1: error: spine links 2 leaf switches, yet host ufm "
              "stands at it; give that host a place by labels");
}

TEST(TopologyReader, InfiniBandLinksHaveTwoEnds) {
    std::string text = fat_tree(1, 2, 1);
    const auto change = [&](const std::string& from, const std::string& to) {
        std::string changed = text;
        const std::size_t found = changed.find(from);
        EXPECT_NE(found, std::string::npos) << from;
        return changed.replace(found, from.size(), to);
    };
    EXPECT_EQ(read_topology(text, {}).bad, 0);
    EXPECT_NE(answer(change("[3]\t\"H-1005\"[1]", "[3]\t\"H-1005\"[2]"))
                  .find("error: link of S-1004: H-1005 does not list this link at its port 2"),
              std::string::npos);
    EXPECT_NE(answer(change("[3]\t\"H-1005\"[1]", "[3]\t\"H-9\"[1]"))
                  .find("error: link of S-1004: H-9 has no lines of its own"),
              std::string::npos);
    EXPECT_NE(answer(change("[3]\t\"H-1005\"[1]", "[3]\tH-1005[1]"))
                  .find("error: not a link; expected is [port] \"peer's id\"[its port]"),
              std::string::npos);
    EXPECT_NE(answer(change("[3]\t\"H-1005\"", "[65]\t\"H-1005\""))
                  .find("error: port 65 of S-1004, which has 64"),
              std::string::npos);
    EXPECT_NE(answer(change("Ca\t8 \"H-1005\"", "Ca\t8 \"S-1004\""))
                  .find("error: S-1004 is there already"),
              std::string::npos);
    EXPECT_NE(answer(change("Ca\t8", "Cable\t8")).find("error: the number of ports"),
              std::string::npos);
    // A dump that was cut off anywhere is told as such, or says less.
    for (std::size_t size = 50; size < text.size(); size += 37)
        (void)read_topology(text.substr(0, size), {});
}

TEST(TopologyReader, FindsTheFormatAndIsTold) {
    EXPECT_EQ(read_topology("host,leaf\nn1,a\n", {}).format, TopologyFormat::Csv);
    EXPECT_EQ(read_topology("SwitchName=a Nodes=n1\n", {}).format, TopologyFormat::Slurm);
    EXPECT_EQ(read_topology("tree: {a: [n1, n2]}\n", {}).format, TopologyFormat::Yaml);
    TopologyHint hint;
    hint.format = TopologyFormat::Csv;
    EXPECT_GT(read_topology("SwitchName=a Nodes=n1\n", hint).bad, 0);
    EXPECT_EQ(parse_topology_format("ib"), TopologyFormat::Ib);
    EXPECT_EQ(parse_topology_format("xml"), std::nullopt);
    EXPECT_EQ(read_topology(std::string("\x7f"
                                        "ELF\0\0",
                                        6),
                            {})
                  .bad,
              1);
    std::string many = "host,leaf\n";
    for (int i = 0; i < 250; ++i) many += "n1\n";
    const TopologyReading reading = read_topology(many, {});
    EXPECT_EQ(reading.bad, 250);
    EXPECT_EQ(reading.problems.size(), kProblemsMax + 1);
    EXPECT_EQ(reading.problems.back().message, "and 150 more problems");
}

TEST(TopologyReader, ReadsBackAsItself) {
    Prng random(5);
    for (int i = 0; i < 300; ++i) {
        model::Topology topology;
        topology.levels = {"zone", "spine", "leaf", "nvlink"};
        topology.levels.resize(1 + random.below(4));
        for (std::uint64_t n = 1 + random.below(20); n > 0; --n) {
            std::vector<std::string> path;
            for (std::size_t l = 0; l < topology.levels.size(); ++l) {
                static const char* kNames[] = {"", "a", "ab", "null", "1", "x y", "é: {"};
                path.push_back(kNames[random.below(std::size(kNames))]);
            }
            topology.hosts.emplace("n" + std::to_string(n), path);
        }
        const TopologyReading again = read_topology(to_yaml(topology), {});
        ASSERT_EQ(again.bad, 0) << to_yaml(topology) << show(again);
        ASSERT_EQ(again.topology, topology) << to_yaml(topology);
    }
}

TEST(TopologyReader, MutantsNeverCrash) {
    Prng random(9);
    const std::string seeds[] = {
        fat_tree(2, 2, 2),
        "levels: [zone, leaf]\ntree: {a: {l1: [\"n[1-2]\", n3]}, b: {l1: [n5]}}\n",
        "SwitchName=a Nodes=n[1-4]\nSwitchName=b Nodes=m[01-02]\nSwitchName=c Switches=a,b\n",
        "BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\nBlockSizes=2,4\n",
        "host,zone,leaf\nn1,a,l1\nn2,a,l2\n"};
    const std::string_view pieces = "{}[]:,-=\"#\\\n\t 0a9S.\xff\0";
    for (int i = 0; i < 4000; ++i) {
        std::string text = seeds[random.below(std::size(seeds))];
        for (std::uint64_t n = 1 + random.below(3); n > 0; --n) {
            const std::size_t at = random.below(text.size());
            switch (random.below(3)) {
                case 0: text[at] = pieces[random.below(pieces.size())]; break;
                case 1: text.insert(at, 1, pieces[random.below(pieces.size())]); break;
                default: text.erase(at, 1 + random.below(20));
            }
        }
        const TopologyReading reading = read_topology(text, {});
        EXPECT_EQ(reading.bad == 0, reading.problems.empty());
        for (const auto& [host, path] : reading.topology.hosts)
            ASSERT_EQ(path.size(), reading.topology.levels.size()) << text;
    }
}

/// Files of real sites and of the tools, which the repository does not hold.
TEST(TopologyReader, FilesOfRealSites) {
    const char* folder = std::getenv("MUSTER_SAMPLES");
    if (folder == nullptr)
        GTEST_SKIP() << "MUSTER_SAMPLES names no folder with field/ib and traces/lingjun";
    const auto read = [&](const std::string& name) {
        std::ifstream in(std::string(folder) + "/" + name, std::ios::binary);
        std::stringstream text;
        text << in.rdbuf();
        return read_topology(text.str(), {.file = name});
    };
    const TopologyReading table = read("traces/lingjun/topo.csv");
    EXPECT_EQ(table.bad, 0) << show(table);
    EXPECT_EQ(table.topology.levels, (std::vector<std::string>{"dsw", "psw", "asw"}));
    EXPECT_EQ(table.topology.hosts.size(), 847u);
    const TopologyReading small = read("field/ib/ibnetdiscover.txt");
    EXPECT_EQ(show(small), "leaf | GPU-A:LEAF1 GPU-B:LEAF1 GPU-C:LEAF2 GPU-D:LEAF2");
    const TopologyReading big = read("field/ib/big.ibnetdiscover.txt");
    EXPECT_EQ(big.bad, 0) << show(big);
    EXPECT_EQ(big.topology.levels, std::vector<std::string>{"leaf"});
    EXPECT_EQ(big.topology.hosts.size(), 128u);
    EXPECT_EQ(big.topology.hosts.at("N112"), std::vector<std::string>{"LEAF7"});
}

}  // namespace
}  // namespace muster::spec
