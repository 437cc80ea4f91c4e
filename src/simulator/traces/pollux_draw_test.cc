#include "simulator/traces/pollux_draw.h"

#include <cstdlib>
#include <filesystem>

namespace muster::simulator::traces {
namespace {

TEST(PolluxDraw, refuses_what_it_cannot_draw_from) {
    const auto drawn = draw_pollux_workload({}, {}, 1, 1);
    ASSERT_FALSE(drawn);
    EXPECT_EQ(drawn.error().message, "the profiles lack 'cifar10', which workloads draw");
}

/// A device takes at least two samples. The fastest batch alone is 4, in 200 s.
TEST(PolluxDraw, tunes_to_between_half_and_four_fifths_of_the_devices_speed) {
    models::ApplicationTables tables;
    tables.name = "toy";
    for (const auto& [placement, step] : std::vector<std::pair<models::Placement, double>>{
             {{1}, 1.0}, {{2}, 0.6}, {{4}, 0.4}, {{2, 4}, 0.27}, {{4, 4}, 0.3}})
        for (const int local : {2, 12}) tables.placed.push_back({placement, local, {step, 0}});
    for (const auto& [batch, iterations] :
         std::map<int, double>{{2, 400}, {4, 200}, {8, 220}, {12, 230}})
        tables.validation[batch] = {{100, iterations, 1, 1}};
    const auto application = models::Application::of(std::move(tables));
    ASSERT_TRUE(application);
    // Two devices keep 83 %. Four have too few samples in a batch of 4; with 8 they keep 57 %, six
    // 56 %. Eight would need a batch of 16.
    EXPECT_EQ(tuned_configurations(*application), (std::vector<Tuned>{{4, 8}, {6, 8}}));
}

TEST(PolluxDraw, draws_the_published_workloads) {
    const char* named = std::getenv("MUSTER_TRACES");
    const std::string folder =
        named != nullptr ? named : std::string(MUSTER_SOURCE_DIR) + "/../shared/traces";
    if (!std::filesystem::exists(folder + "/pollux") ||
        !std::filesystem::exists(folder + "/philly"))
        GTEST_SKIP() << "no traces in " << folder << "; MUSTER_TRACES names another folder";
    const auto applications = read_applications(folder + "/pollux/profiles");
    const auto philly = read_philly_jobs(folder + "/philly/philly.csv.gz");
    ASSERT_TRUE(applications && philly);
    for (std::uint32_t seed = 1; seed <= 8; ++seed) {
        const auto drawn = draw_pollux_workload(*philly, *applications, 160, seed);
        const auto published = read_pollux_workload(folder + "/pollux/workloads/workload-" +
                                                    std::to_string(seed) + ".csv");
        ASSERT_TRUE(drawn && published);
        ASSERT_EQ(drawn->size(), published->jobs.size());
        for (std::size_t i = 0; i < drawn->size(); ++i) {
            const PolluxJob &own = (*drawn)[i], &theirs = published->jobs[i];
            EXPECT_EQ(own.name, theirs.name) << seed;
            EXPECT_EQ(own.submit_s, theirs.submit_s) << seed << ' ' << own.name;
            EXPECT_EQ(own.replicas, theirs.replicas) << seed << ' ' << own.name;
            EXPECT_EQ(own.batch, theirs.batch) << seed << ' ' << own.name;
        }
    }
}

}  // namespace
}  // namespace muster::simulator::traces
