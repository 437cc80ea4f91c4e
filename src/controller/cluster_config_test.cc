// controller.yaml down to the core's state, at a start and at reloads.
#include "controller/cluster_config.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "controller/config.h"

namespace muster::controller {
namespace {

class Cluster {
public:
    Cluster() { step(core::BecomeLeader{1}); }

    /// The refusals.
    std::string take(std::string_view yaml) {
        const auto read = parse_config(yaml, "f");
        EXPECT_TRUE(read.problems.empty()) << join(read.problems, "\n");
        step(core::SettingsChanged{read.config.settings});
        std::string refused;
        for (core::Event& event : cluster_events(read.config.cluster))
            refused += step(std::move(event));
        return refused;
    }
    std::string queues() const {
        std::string out;
        state_.tables.queues.for_each([&](std::uint64_t, const core::Queue& queue) {
            out +=
                (out.empty() ? "" : " ") + queue.name + ":" + std::to_string(queue.settings.weight);
        });
        return out;
    }
    const core::View& tables() const { return state_.tables; }

private:
    std::string step(core::Event event) {
        const auto done = core::step(state_, {Time{++now_}, std::move(event)});
        return done ? "" : done.error().message;
    }
    core::State state_;
    std::int64_t now_ = 1'000'000;
};

TEST(ClusterConfig, QueuesRulesAndTopologyReachTheState) {
    Cluster cluster;
    EXPECT_EQ(cluster.take("jobs_max: 9\n"), "");
    EXPECT_EQ(cluster.queues(), "default:100");

    EXPECT_EQ(
        cluster.take("queues: {research: {guarantee: {gpus: 8}, queues: {nlp: {weight: 2}}}}\n"
                     "scheduling: {half_life: 3d, backfill: conservative}\n"
                     "topology: {levels: [zone, leaf], tree: {a: {l1: [n1]}}}\n"),
        "");
    EXPECT_EQ(cluster.queues(), "default:100 research:100 research/nlp:200");
    EXPECT_EQ(cluster.tables().rules.half_life.ms, std::int64_t{3} * 24 * 3600 * 1000);
    EXPECT_TRUE(cluster.tables().rules.conservative);
    EXPECT_EQ(cluster.tables().topology->hosts.at("n1"), (std::vector<std::string>{"a", "l1"}));

    // A reload changes what it names and nothing else.
    EXPECT_EQ(cluster.take("queues: [prod]\ntopology: {levels: [rack]}\n"), "");
    EXPECT_EQ(cluster.queues(), "default:100 research:100 research/nlp:200 prod:100");
    EXPECT_TRUE(cluster.tables().rules.conservative);
    EXPECT_EQ(cluster.tables().topology->levels, std::vector<std::string>{"rack"});
    EXPECT_TRUE(cluster.tables().topology->hosts.empty());
}

TEST(ClusterConfig, WhatContradictsOtherQueuesIsRefusedWhole) {
    Cluster cluster;
    EXPECT_EQ(
        cluster.take("queues: {a: {guarantee: {gpus: 8}, queues: {b: {guarantee: {gpus: 8}}}}}"),
        "");
    // The file alone is sound; beside the queue that is there it is not.
    EXPECT_NE(cluster.take("queues: {a: {guarantee: {gpus: 4}}, c: {}}"), "");
    EXPECT_EQ(cluster.queues(), "default:100 a:100 a/b:100");
}

}  // namespace
}  // namespace muster::controller
