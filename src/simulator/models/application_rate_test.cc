#include "simulator/models/application_rate.h"

#include "simulator/models/kind_rate.h"

namespace muster::simulator::models {
namespace {

/// A step takes a second on one device, half of one on two of a machine, two over two machines.
/// Epochs end at 100 and 150.5; noise makes a batch of 2 worth 4 / 3 steps.
std::map<std::string, Application> toy() {
    ApplicationTables tables;
    tables.name = "toy";
    for (const int local : {1, 2}) {
        tables.placed.push_back({{1}, local, {1, 0}});
        tables.placed.push_back({{2}, local, {0.5, 0}});
        tables.placed.push_back({{1, 1}, local, {2, 0}});
    }
    for (const int batch : {1, 2}) tables.validation[batch] = {{100, 0, 1, 1}, {150.5, 0, 1, 1}};
    std::map<std::string, Application> all;
    all.emplace("toy", *Application::of(std::move(tables)));
    return all;
}

struct Row {
    std::string name, profile;
    std::vector<std::uint32_t> nodes;  // Nodes 0 and 1 are of one machine, 2 of another.
    std::int64_t done, ppm, until;
};
void PrintTo(const Row& row, std::ostream* out) {
    *out << row.name;
}
class Applications : public testing::TestWithParam<Row> {};
TEST_P(Applications, work_at) {
    const Row& row = GetParam();
    const auto applications = toy();
    ApplicationRate rates(applications, {0, 0, 1});
    RunningJob job{.profile = row.profile};
    for (const std::uint32_t node : row.nodes) job.nodes.push_back({.node = node, .devices = 1});
    const Rate rate = rates.rate(job, row.done, rates.work_ms(row.profile));
    EXPECT_EQ(rate.ppm, row.ppm);
    if (row.ppm > 0) EXPECT_EQ(rate.until, row.until);
    EXPECT_EQ(rates.uncovered(), row.ppm == 0 && row.profile == "toy/1" ? 1 : 0);
}
INSTANTIATE_TEST_SUITE_P(
    Rows, Applications,
    testing::Values(Row{"one", "toy/1", {0}, 0, 1'000'000, 100'000},
                    Row{"the_next_epoch", "toy/1", {0}, 100'000, 1'000'000, 150'500},
                    // Each of two devices gets a sample: a batch of 2.
                    Row{"two_of_a_machine", "toy/2", {0, 1}, 0, 2'666'666, 100'000},
                    Row{"two_machines", "toy/2", {0, 2}, 0, 666'666, 100'000},
                    Row{"machines_are_told_by_node", "toy/2", {2, 1}, 0, 666'666, 100'000},
                    // Two passes of one sample take twice as long, for a third more.
                    Row{"a_batch_that_does_not_pay", "toy/2", {0}, 0, 666'666, 100'000},
                    Row{"the_best_batch", "toy", {0}, 0, 1'000'000, 100'000},
                    Row{"the_best_batch_of_two", "toy", {0, 1}, 0, 2'666'666, 100'000},
                    Row{"not_covered", "toy/1", {0, 1, 2}, 0, 0, 0},
                    Row{"unknown", "other/1", {0}, 0, 0, 0}, Row{"no_batch", "toy/x", {0}, 0, 0, 0},
                    Row{"nothing_held", "toy/2", {}, 0, 0, 0}));

TEST(ApplicationRate, work_is_the_whole_progress) {
    const auto applications = toy();
    const ApplicationRate rates(applications, {0});
    EXPECT_EQ(rates.work_ms("toy"), 150'500);
    EXPECT_EQ(rates.work_ms("toy/2"), 150'500);
    EXPECT_EQ(rates.work_ms("other"), 0);
}

TEST(KindRate, is_the_slowest_kinds_against_the_reference) {
    Throughputs table;
    for (const int devices : {1, 2}) {
        table.set("v100", "lm", devices, 4 * devices);
        table.set("k80", "lm", devices, 1);
    }
    KindRate rates(table, "v100");
    const auto ppm = [&](std::string_view type, std::vector<std::string_view> kinds) {
        RunningJob job{.profile = type};
        for (const auto kind : kinds) job.nodes.push_back({.kind = kind, .devices = 1});
        return rates.rate(job, 0, 1000).ppm;
    };
    EXPECT_EQ(ppm("lm", {"v100"}), 1'000'000);
    EXPECT_EQ(ppm("lm", {"k80"}), 250'000);
    EXPECT_EQ(ppm("lm", {"k80", "k80"}), 125'000);
    EXPECT_EQ(ppm("lm", {"v100", "k80"}), 125'000);
    EXPECT_EQ(ppm("lm", {"p100"}), 0);
    EXPECT_EQ(ppm("other", {"v100"}), 0);
}

}  // namespace
}  // namespace muster::simulator::models
