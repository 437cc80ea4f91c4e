#include "simulator/models/profile_rates.h"

#include <gtest/gtest.h>

namespace muster::simulator::models {
namespace {

RunningJob on(std::string_view profile, std::vector<PlacedNode> nodes) {
    RunningJob job;
    job.profile = profile;
    job.nodes_asked = static_cast<std::int64_t>(nodes.size());
    job.nodes = std::move(nodes);
    return job;
}
PlacedNode node(std::string_view kind, std::int64_t devices) {
    return {.node = 0, .kind = kind, .devices = devices};
}

TEST(MeasuredRate, by_kind_goes_by_the_table_then_by_speeds_and_by_the_slowest) {
    Throughputs table;
    table.set("v100", "lm", 2, 40);
    table.set("k80", "lm", 2, 10);
    MeasuredRate rates({.speeds = {{"k80", 500}}, .throughputs = &table, .reference = "v100"});
    const auto ppm = [&](std::string_view profile, std::vector<PlacedNode> nodes) {
        return rates.rate(on(profile, std::move(nodes)), 0, 1000).ppm;
    };
    EXPECT_EQ(ppm("lm", {node("v100", 2)}), 1'000'000);
    EXPECT_EQ(ppm("lm", {node("k80", 2)}), 250'000);
    EXPECT_EQ(ppm("lm", {node("v100", 1), node("k80", 1)}), 250'000);
    EXPECT_EQ(ppm("lm", {node("p100", 2)}), 0) << "was not measured: it makes no progress";
    EXPECT_EQ(ppm("other", {node("k80", 2)}), 500'000);
    EXPECT_EQ(ppm("other", {node("v100", 2)}), 1'000'000);
}

TEST(MeasuredRate, elastic_jobs_grow_with_their_nodes) {
    MeasuredRate rates({.speeds = {{"k80", 500}}});
    RunningJob job = on("", {node("k80", 8), node("k80", 8)});
    job.nodes_asked = 1;
    EXPECT_EQ(rates.rate(job, 0, 1000).ppm, 1'000'000);
}

TEST(ApplicationProfile, is_read_as_it_is_written) {
    EXPECT_EQ(application_profile("cifar10", 2048, 6), "cifar10/2048/6");
    for (const char* bad : {"", "cifar10", "cifar10/1", "/1/1", "cifar10/0/1", "cifar10/1/x"})
        EXPECT_FALSE(parse_application_profile({}, bad)) << bad;
}

TEST(Packed, fills_nodes_in_turn) {
    EXPECT_EQ(packed(9, 4), (Placement{4, 4, 1}));
    EXPECT_EQ(packed(4, 4), Placement{4});
    EXPECT_EQ(packed(1, 4), Placement{1});
}

}  // namespace
}  // namespace muster::simulator::models
