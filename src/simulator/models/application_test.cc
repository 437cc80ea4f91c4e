#include "simulator/models/application.h"

namespace muster::simulator::models {
namespace {

/// One node is measured up to four devices, two nodes with one or two each, more by counts. A step
/// of b samples takes b / 10 seconds, and synchronising one for each node beyond the first.
ApplicationTables tables() {
    ApplicationTables made;
    made.name = "toy";
    for (const Placement& placement : {Placement{1}, {2}, {4}, {1, 1}, {1, 2}, {2, 2}, {1, 1, 2}}) {
        const double sync = static_cast<double>(placement.size()) - 1;
        for (const int local : {10, 20, 40})
            made.placed.push_back({placement, local, {local / 10.0 + sync, sync}});
    }
    for (const int nodes : {4, 8})
        for (const int replicas : {8, 16})
            for (const int local : {10, 20, 40})
                made.scaled.push_back(
                    {nodes, replicas, local, {local / 10.0 + nodes - 1, nodes - 1.0}});
    // Noise as strong as the signal: a batch of s times the smallest is worth 2 / (1/s + 1) steps.
    made.validation[10] = {{100, 100, 1, 1}, {200, 200, 1, 3}, {300, 300, 1, 1}};
    made.validation[40] = {{110, 60, 1, 1}, {190, 110, 1, 1}};
    return made;
}
Application application() {
    auto made = Application::of(tables());
    EXPECT_TRUE(made);
    return *std::move(made);
}

struct SplitRow {
    std::string name;
    int batch, replicas;
    BatchSplit want;
};
void PrintTo(const SplitRow& row, std::ostream* out) {
    *out << row.name;
}
class Split : public testing::TestWithParam<SplitRow> {};
TEST_P(Split, of_a_batch) {
    const SplitRow& row = GetParam();
    EXPECT_EQ(application().split(row.batch, row.replicas), row.want);
}
INSTANTIATE_TEST_SUITE_P(Rows, Split,
                         testing::Values(SplitRow{"the_smallest_on_one", 10, 1, {10, 0}},
                                         SplitRow{"more_on_one_needs_two_passes", 20, 1, {10, 1}},
                                         SplitRow{"shares_are_rounded_up", 25, 2, {13, 0}},
                                         SplitRow{"never_above_the_largest_batch", 39, 4, {10, 0}},
                                         SplitRow{"never_above_it_when_rounded", 40, 3, {13, 0}}));

TEST(Application, adds_passes_when_a_share_does_not_fit_a_device) {
    auto capped = tables();
    capped.local_batch_max = 8;
    const auto made = Application::of(std::move(capped));
    ASSERT_TRUE(made);
    EXPECT_EQ(made->split(40, 2), (BatchSplit{6, 2}));  // Three passes of 7 would be 42.
}

struct StepRow {
    std::string name;
    Placement placement;
    int local;
    double step, sync;  // Negative: outside.
};
void PrintTo(const StepRow& row, std::ostream* out) {
    *out << row.name;
}
class Step : public testing::TestWithParam<StepRow> {};
TEST_P(Step, takes) {
    const StepRow& row = GetParam();
    const auto time = application().step_time(row.placement, row.local);
    ASSERT_EQ(time.has_value(), row.step >= 0);
    if (!time) return;
    EXPECT_NEAR(time->step_s, row.step, 1e-9);
    EXPECT_NEAR(time->sync_s, row.sync, 1e-9);
}
INSTANTIATE_TEST_SUITE_P(
    Rows, Step,
    testing::Values(StepRow{"as_measured", {1}, 20, 2, 0},
                    StepRow{"between_batches", {1}, 25, 2.5, 0},
                    StepRow{"in_any_rotation", {2, 1}, 10, 2, 1},
                    StepRow{"another_rotation", {1, 2, 1}, 10, 3, 2},
                    StepRow{"beyond_the_batches", {1}, 41, -1, 0},
                    StepRow{"below_the_batches", {1}, 9, -1, 0},
                    StepRow{"between_shapes", {2, 2, 2, 2, 2, 2}, 30, 8, 5},
                    StepRow{"beyond_the_shapes", {4, 4, 4, 4, 4, 4, 4, 4}, 10, -1, 0}));

TEST(Application, ends_with_the_shortest_measurement_and_the_least_progress) {
    const Application made = application();
    EXPECT_EQ(made.epochs(), 2);
    EXPECT_EQ(made.progress_after(0), 100);
    EXPECT_EQ(made.progress_after(1), 190);
    EXPECT_EQ(made.iterations(40), 110);
    EXPECT_FALSE(made.iterations(20));
}

TEST(Application, a_larger_batch_is_worth_less_than_its_size) {
    const Application made = application();
    EXPECT_EQ(made.gain(10, 0), 1);
    EXPECT_NEAR(made.gain(40, 0), 2 / 1.25, 1e-12);
    // Between the two measured batches noise is between theirs: (20 * 1 + 10 * 3) / 30.
    const double var = (10 * 1 + 20 * 3) / 30.0;
    EXPECT_NEAR(made.gain(20, 1), (var + 1) / (var / 2 + 1), 1e-12);
}

TEST(Application, accumulation_repeats_the_computation_alone) {
    const Application made = application();
    // Two passes of 10 on two nodes: 2 s for the first with synchronising, 1 s more.
    const auto goodput = made.goodput({1, 1}, {10, 1}, 0);
    ASSERT_TRUE(goodput);
    EXPECT_NEAR(*goodput, made.gain(40, 0) / 3, 1e-12);
}

TEST(Application, refuses_holes) {
    auto none = tables();
    none.placed.clear();
    EXPECT_EQ(Application::of(none).error().message, "profile 'toy' has no measured placements");
    none = tables();
    none.validation.clear();
    EXPECT_EQ(Application::of(none).error().message, "profile 'toy' has no validation by epoch");
    none = tables();
    none.validation[20] = {};
    EXPECT_EQ(Application::of(none).error().message, "profile 'toy' has no epochs");
}

}  // namespace
}  // namespace muster::simulator::models
