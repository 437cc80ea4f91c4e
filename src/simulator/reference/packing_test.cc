#include "simulator/reference/packing.h"

#include <sstream>

#include <gtest/gtest.h>

namespace muster::simulator::reference {
namespace {

/// Nodes as "cpu/devices/model", pods as "cpu/devices/milli/models"; a device's letter is its
/// model. Where they went, by index of node; - nowhere.
struct Row {
    std::string name;
    PackingPolicy policy;
    std::string nodes, pods, want;
};
void PrintTo(const Row& row, std::ostream* out) {
    *out << row.name;
}

Models models_of(const std::string& letters) {
    Models out = 0;
    for (const char letter : letters) out |= Models{1} << (letter - 'a');
    return out;
}
std::vector<std::vector<std::string>> split(const std::string& text) {
    std::vector<std::vector<std::string>> out;
    std::istringstream words(text);
    for (std::string word; words >> word;) {
        auto& fields = out.emplace_back();
        std::istringstream parts(word);
        for (std::string part; std::getline(parts, part, '/');) fields.push_back(part);
        fields.resize(4);
    }
    return out;
}
std::vector<PackingNode> nodes_of(const std::string& text) {
    std::vector<PackingNode> out;
    for (const auto& f : split(text))
        out.push_back({std::stoll(f[0]) * 1000, 1000, std::stoi(f[1]), models_of(f[2])});
    return out;
}
std::vector<PackingPod> pods_of(const std::string& text) {
    std::vector<PackingPod> out;
    for (const auto& f : split(text))
        out.push_back(
            {std::stoll(f[0]) * 1000, 1, std::stoi(f[1]), std::stoi(f[2]), models_of(f[3])});
    return out;
}

class PackingRows : public testing::TestWithParam<Row> {};
TEST_P(PackingRows, goes_where_it_should) {
    const auto nodes = nodes_of(GetParam().nodes);
    const auto pods = pods_of(GetParam().pods);
    PackedCluster packing(nodes, GetParam().policy, typical_pods(pods), Prng(1));
    std::string got;
    for (const PackingPod& pod : pods) {
        const auto node = packing.place(pod);
        got += (got.empty() ? "" : " ") + (node ? std::to_string(*node) : "-");
    }
    EXPECT_EQ(got, GetParam().want);
}
using enum PackingPolicy;
INSTANTIATE_TEST_SUITE_P(
    Rows, PackingRows,
    testing::Values(
        Row{"ties_go_to_the_first", BestFit, "64/8/a 64/8/a", "1/1/1000", "0"},
        Row{"no_cpu_left_is_no_place", BestFit, "2/8/a 64/8/a", "2/1/1000 2/1/1000 2/1/1000",
            "0 1 1"},
        Row{"a_model_is_asked_for", BestFit, "1/1/a 64/8/b 64/8/c",
            "1/1/1000/bc 1/1/1000/c 1/1/1000/d", "1 2 -"},
        Row{"bestfit_takes_the_fullest", BestFit, "64/8/a 32/4/a 96/8/a", "1/1/1000 1/8/1000",
            "1 0"},
        Row{"dotprod_takes_the_emptier_way_last", DotProd, "96/8/a 32/4/a", "8/2/1000", "1"},
        Row{"clustering_keeps_kinds_together", Clustering, "64/8/a 64/8/a 64/8/a",
            "1/1/500 1/2/1000 1/1/500 1/2/1000 1/1/1000", "0 1 0 1 2"},
        Row{"clustering_prefers_its_own_only", Clustering, "64/8/a 4/8/b",
            "1/1/500/a 8/1/1000 1/1/500/b 1/1/500", "0 0 1 1"},
        Row{"packing_takes_devices_in_use", Packing, "64/8/a 64/8/a",
            "1/1/500 1/8/1000 1/1/400 1/1/600", "0 1 0 0"},
        Row{"packing_takes_nodes_in_use", Packing, "64/8/a 64/4/a", "1/1/1000 1/1/1000", "1 1"},
        Row{"a_part_goes_on_one_device", Fgd, "64/1/a 64/1/a", "1/1/600 1/1/600 1/1/600 1/1/400",
            "0 1 - 0"},
        Row{"fgd_keeps_what_whole_devices_need", Fgd, "64/2/a 64/2/a", "1/1/500 1/1/500 1/2/1000",
            "0 0 1"},
        Row{"fgd_leaves_the_kind_others_need", Fgd, "64/1/a 64/1/b",
            "1/1/1000 1/1/1000/a 1/1/1000/a", "1 0 -"},
        Row{"work_without_devices_leaves_cpus_for_devices", Fgd, "8/2/a 8/0/a",
            "8/0/0 4/1/1000 4/1/1000", "1 0 0"}),
    [](const auto& row) { return row.param.name; });

TEST(Packing, random_takes_any_node_that_fits) {
    const auto nodes = nodes_of("64/8/a 1/8/a 64/8/a");
    std::vector<int> seen(3);
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        PackedCluster packing(nodes, Random, {}, Prng(seed));
        ++seen[*packing.place(pods_of("2/1/300")[0])];
    }
    EXPECT_EQ(seen[1], 0);
    EXPECT_GT(seen[0], 30);
    EXPECT_GT(seen[2], 30);
}

TEST(Fragmentation, is_what_a_typical_pod_could_not_use) {
    Bin bin(nodes_of("8/2/a")[0]);
    bin.free[1] = 400;
    const auto lost = [&](const std::string& pods) {
        return fragmented(bin, typical_pods(pods_of(pods)));
    };
    EXPECT_EQ(lost("1/1/400"), 0);
    EXPECT_EQ(lost("1/1/500"), 400) << "too small a rest";
    EXPECT_EQ(lost("1/2/1000"), 1400) << "it does not fit at all";
    EXPECT_EQ(lost("9/1/400"), 1400) << "nor with so many CPUs";
    EXPECT_EQ(lost("1/1/400/b"), 1400) << "another model";
    EXPECT_EQ(lost("1/0/0"), 1400) << "it wants no device";
    EXPECT_EQ(lost("1/1/400 1/1/500"), 200);
}

TEST(Fragmentation, typical_are_the_most_frequent_up_to_95_percent) {
    std::string text;
    for (int i = 0; i < 90; ++i) text += "1/1/1000 ";
    for (int i = 0; i < 6; ++i) text += "2/1/500 ";
    for (int i = 0; i < 4; ++i) text += "3/1/500 ";
    const auto typical = typical_pods(pods_of(text));
    ASSERT_EQ(typical.size(), 2u);
    EXPECT_DOUBLE_EQ(typical[0].weight, 90.0 / 96);
    EXPECT_EQ(typical[1].cpu, 2000);
}

TEST(Arrivals, ask_for_as_much_as_may_be_asked_for) {
    const auto list = pods_of("1/1/1000 1/1/500 1/4/1000 1/0/0");
    const auto demand = [](const std::vector<PackingPod>& pods) {
        std::int64_t sum = 0;
        for (const PackingPod& pod : pods) sum += pod.demand();
        return sum;
    };
    Prng random(7);
    const auto more = arrivals(list, 100'000, 130, random);
    EXPECT_GT(demand(more), 130'000 - 4000) << "the next one would have passed it";
    EXPECT_LE(demand(more), 130'000);
    EXPECT_LE(demand(arrivals(list, 2000, 130, random)), 2600) << "taken out";
    Prng a(3), b(3), c(4);
    const auto costs = [&](Prng& from) {
        std::vector<std::int64_t> out;
        for (const PackingPod& pod : arrivals(list, 100'000, 130, from))
            out.push_back(pod.demand());
        return out;
    };
    EXPECT_EQ(costs(a), costs(b));
    Prng again(3);
    EXPECT_NE(costs(again), costs(c));
}

}  // namespace
}  // namespace muster::simulator::reference
