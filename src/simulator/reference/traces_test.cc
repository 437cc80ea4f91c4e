// The reference policies on the public traces, where those are: in the folder that MUSTER_TRACES
// names, else in ../shared/traces beside the checkout. Skipped elsewhere.
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "simulator/reference/muri_world.h"
#include "simulator/reference/openb_world.h"

namespace muster::simulator::reference {
namespace {

std::string traces_folder() {
    if (const char* named = std::getenv("MUSTER_TRACES")) return named;
    return (std::filesystem::path(MUSTER_SOURCE_DIR) / ".." / "shared" / "traces").string();
}
#define SKIP_WITHOUT(folder)              \
    if (!std::filesystem::exists(folder)) \
    GTEST_SKIP() << "no public traces at " << (folder) << ": set MUSTER_TRACES to their folder"

TEST(PublicTraces, openb_bestfit_and_fgd_end_where_they_were_published_to) {
    const std::string folder = traces_folder() + "/openb";
    SKIP_WITHOUT(folder);
    const auto world = openb_world(folder, "default");
    ASSERT_TRUE(world) << world.error().message;
    EXPECT_EQ(world->capacity, 6'212'000);
    EXPECT_EQ(world->pods.size(), 8152u);
    EXPECT_EQ(world->typical.size(), 35u);
    const auto mean = [&](PackingPolicy policy) {
        double sum = 0;
        for (const std::uint64_t seed : {42, 43, 44}) sum += openb_allocation(*world, policy, seed);
        return sum / 3;
    };
    EXPECT_NEAR(mean(PackingPolicy::BestFit), 93.08, 0.5);
    EXPECT_NEAR(mean(PackingPolicy::Fgd), 95.39, 0.5);
}

TEST(PublicTraces, muri_trace3_ends_where_it_was_published_to) {
    const std::string folder = traces_folder() + "/muri";
    SKIP_WITHOUT(folder);
    const auto read = traces::read_muri_jobs(folder + "/trace3.csv", {.strict = true});
    ASSERT_TRUE(read) << read.error().message;
    const auto jobs = muri_jobs(read->jobs);
    ASSERT_EQ(jobs.size(), 992u);
    const auto average = [&](QueueingPolicy policy, bool overhead) {
        return run_queueing(jobs, {.policy = policy, .overhead = overhead})->average;
    };
    EXPECT_NEAR(average(QueueingPolicy::Srtf, true), 193081.796, 0.01);
    EXPECT_NEAR(average(QueueingPolicy::Srsf, true), 185021.8802, 0.01);
    EXPECT_NEAR(average(QueueingPolicy::Las, true), 347213.2481, 0.01);
    EXPECT_NEAR(average(QueueingPolicy::Las, false), 340306.277, 0.01);
}

}  // namespace
}  // namespace muster::simulator::reference
