// What is accepted, what is refused and why: identity, bounds, names, keys, dependencies, arrays.
#include <functional>

#include "core/test_world.h"

namespace muster::core {
namespace {

using model::Cause;
using model::JobState;

struct Refusal {
    const char* name;
    std::function<void(model::JobSpec&)> spoil;
    const char* message;
    friend void PrintTo(const Refusal& row, std::ostream* out) { *out << row.name; }
};
constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

const Refusal kRefusals[] = {
    {"F25_negative_gpus",
     [](auto& s) {
         s.roles[0].devices = {{"gpu", -2, {}, ""}};
     },
     "gpus: -2"},
    {"F25_no_gpus",
     [](auto& s) {
         s.roles[0].devices = {{"gpu", 0, {}, ""}};
     },
     "gpus: 0"},
    {"F25_huge_gpus",
     [](auto& s) {
         s.roles[0].devices = {{"gpu", kHuge, {}, ""}};
     },
     "gpus: 9223"},
    {"F25_negative_memory", [](auto& s) { s.roles[0].memory = {-1}; }, "memory: -1"},
    {"F25_huge_memory", [](auto& s) { s.roles[0].memory = {kHuge}; }, "memory: 9223"},
    {"F25_negative_cpus", [](auto& s) { s.roles[0].cpus = {-1}; }, "cpus: -1"},
    {"F25_huge_cpus", [](auto& s) { s.roles[0].cpus = {kHuge}; }, "cpus: 9223"},
    {"F25_negative_disk", [](auto& s) { s.roles[0].disk = {-1}; }, "disk: -1"},
    {"F25_no_nodes", [](auto& s) { s.roles[0].nodes = 0; }, "nodes: 0"},
    {"F25_huge_nodes", [](auto& s) { s.roles[0].nodes = kHuge; }, "nodes: 9223"},
    {"F25_sum_of_roles",
     [](auto& s) {
         s.roles[0].nodes = model::kNodesMax;
         s.roles.push_back(s.roles[0]);
     },
     "nodes: 2097152"},
    {"F25_array_of_2_to_the_63", [](auto& s) { s.array.count = kHuge; }, "array: 9223"},
    {"F25_priority", [](auto& s) { s.priority = 101; }, "priority: 101"},
    {"F30_time_limit_of_60_years",
     [](auto& s) { s.time = {std::int64_t{60} * 365 * 24 * 3600 * 1000}; }, "time: "},
    {"F30_begin_in_the_year_13429", [](auto& s) { s.begin = {361'600'000'000'000}; }, "begin: "},
    {"grace_of_zero", [](auto& s) { s.checkpoint.grace = {0}; }, "checkpoint.grace: 0"},
    {"deadline_in_the_past", [](auto& s) { s.deadline = {1}; }, "deadline: has passed"},
    {"unknown_queue", [](auto& s) { s.queue = "defualt"; }, "queue defualt"},
    {"F52_unknown_node",
     [](auto& s) {
         s.constraint = {{"node", model::ConstraintTerm::Op::In, {"n1", "n77"}}};
     },
     "there is no node n77"},
    {"unknown_dependency",
     [](auto& s) {
         s.depends = {{model::Dependency::When::AfterOk, {4711}}};
     },
     "no job 4711"},
    {"no_roles", [](auto& s) { s.roles.clear(); }, "run: "},
    {"no_name", [](auto& s) { s.name.clear(); }, "name: "},
};

class Refused : public testing::TestWithParam<Refusal> {};
TEST_P(Refused, with_the_field_named) {
    World world;
    world.hello("n1");
    model::JobSpec spec = small_job();
    GetParam().spoil(spec);
    const Error error = world.refused(SubmitJob{world.alice, spec, "", 0, {}});
    EXPECT_NE(error.message.find(GetParam().message), std::string::npos) << error.message;
    EXPECT_EQ(world.state.tables.jobs.size(), 0u);
}
INSTANTIATE_TEST_SUITE_P(Table, Refused, testing::ValuesIn(kRefusals),
                         [](const auto& row) { return row.param.name; });

TEST(Submit, unknown_queue_names_the_nearest) {
    World world;
    model::JobSpec spec = small_job();
    spec.queue = "defalt";
    EXPECT_NE(world.refused(SubmitJob{world.alice, spec, "", 0, {}}).fix.find("default"),
              std::string::npos);
}

TEST(Submit, ids_rise_and_are_never_used_again) {
    World world;
    const JobId first = world.submit(small_job());
    world.must(ActOnJob{world.alice, first, -1, JobAction::Cancel, "", 0});
    world.must(Archived{{first}});
    EXPECT_EQ(world.state.tables.jobs.size(), 0u);
    world.restart();
    EXPECT_EQ(world.submit(small_job()).value, first.value + 1);
}

TEST(Submit, specs_and_shapes_are_shared_and_dropped_with_their_last_job) {
    World world;
    const JobId a = world.submit(small_job("same"));
    const JobId b = world.submit(small_job("same"));
    const JobId c = world.submit(small_job("other"));
    EXPECT_EQ(world.job(a).spec, world.job(b).spec);
    EXPECT_NE(world.job(a).spec, world.job(c).spec);
    EXPECT_EQ(world.job(a).shape, world.job(c).shape);
    for (const JobId id : {a, b, c})
        world.must(ActOnJob{world.alice, id, -1, JobAction::Cancel, "", 0});
    EXPECT_EQ(world.state.tables.shapes.size(), 0u);
    world.must(Archived{{a, b, c}});
    EXPECT_EQ(world.state.tables.specs.size(), 0u);
}

TEST(Submit, F34_one_key_makes_one_job) {
    World world;
    const SubmitJob event{world.alice, small_job(), "key-1", 42, {}};
    const Answer first = world.must(event).answer;
    const Answer again = world.must(event).answer;
    EXPECT_EQ(again.job, first.job);
    EXPECT_TRUE(again.repeated);
    SubmitJob other = event;
    other.request_hash = 43;
    const Error error = world.refused(other);
    EXPECT_EQ(error.code, Code::Conflict);
    EXPECT_GT(error.number, 0);
    // Another user's key of the same text is another key; a restart does not forget.
    SubmitJob bobs = event;
    bobs.caller = world.bob;
    EXPECT_NE(world.must(bobs).answer.job, first.job);
    world.restart();
    EXPECT_EQ(world.must(event).answer.job, first.job);
    world.pass(25 * 3600 * 1000);
    EXPECT_NE(world.must(event).answer.job, first.job);
}

TEST(Submit, the_number_of_live_jobs_is_bounded) {
    Settings settings;
    settings.jobs_max = 2;
    World world(settings);
    world.submit(small_job());
    world.submit(small_job());
    EXPECT_EQ(world.refused(SubmitJob{world.alice, small_job(), "", 0, {}}).code, Code::Exhausted);
}

TEST(Submit, an_array_of_a_million_is_one_record) {
    World world;
    model::JobSpec spec = small_job();
    spec.array.count = 1'000'000;
    const Step step = world.must(SubmitJob{world.alice, spec, "", 0, {}});
    EXPECT_EQ(world.state.tables.jobs.size(), 1u);
    EXPECT_LE(step.changes.size(), 8u);
    EXPECT_LE(encode_record(world.state, {RecordKind::Job, step.answer.job.value})->size(), 100u);
}

struct After {
    const char* name;
    model::Dependency::When when;
    Cause first_ends;
    JobState want;
    friend void PrintTo(const After& row, std::ostream* out) { *out << row.name; }
};
using When = model::Dependency::When;
const After kAfter[] = {
    {"afterok_of_success", When::AfterOk, Cause::Success, JobState::Starting},
    {"afterok_of_failure", When::AfterOk, Cause::UserError, JobState::Cancelled},
    {"afternotok_of_success", When::AfterNotOk, Cause::Success, JobState::Cancelled},
    {"afternotok_of_failure", When::AfterNotOk, Cause::UserError, JobState::Starting},
    {"afterany_of_success", When::AfterAny, Cause::Success, JobState::Starting},
    {"afterany_of_failure", When::AfterAny, Cause::UserError, JobState::Starting},
};
class Dependencies : public testing::TestWithParam<After> {};
TEST_P(Dependencies, are_met_or_never) {
    const After& row = GetParam();
    World world;
    world.hello("n1");
    const JobId first = world.submit(small_job("first"));
    model::JobSpec spec = small_job("second");
    spec.depends = {{row.when, first}};
    const JobId second = world.submit(spec);
    spec.name = "third";
    spec.depends = {{When::AfterOk, second}};
    const JobId third = world.submit(spec);
    world.plan();
    EXPECT_EQ(world.job(second).state, JobState::Pending);
    EXPECT_EQ(wait_of(world.state.tables, world.job(second), world.now).reason,
              scheduler::Blocked::Reason::Dependency);
    world.run(first);
    world.end(first, 0, row.first_ends);
    world.plan();
    EXPECT_EQ(world.job(second).state, row.want);
    if (row.want == JobState::Cancelled) {
        EXPECT_NE(world.extra(second).message.find("can never be met"), std::string::npos);
        EXPECT_EQ(world.job(third).state, JobState::Cancelled);
    }
    // The same when the first is in history only.
    world.must(Archived{{first}});
    const auto state = row.first_ends == Cause::Success ? JobState::Succeeded : JobState::Failed;
    spec.depends = {{row.when, first}};
    spec.name = "late";
    const JobId late = world.must(SubmitJob{world.alice, spec, "", 0, {{first, state}}}).answer.job;
    world.plan();
    EXPECT_EQ(world.job(late).state, row.want);
}
INSTANTIATE_TEST_SUITE_P(Table, Dependencies, testing::ValuesIn(kAfter),
                         [](const auto& row) { return row.param.name; });

TEST(Submit, a_long_chain_of_dependents_falls_without_recursion) {
    World world;
    JobId last = world.submit(small_job());
    const JobId first = last;
    world.checks = false;
    for (int i = 0; i < 20'000; ++i) {
        model::JobSpec spec = small_job();
        spec.depends = {{When::AfterOk, last}};
        last = world.submit(spec);
    }
    world.must(ActOnJob{world.alice, first, -1, JobAction::Cancel, "", 0});
    EXPECT_EQ(world.job(last).state, JobState::Cancelled);
}

}  // namespace
}  // namespace muster::core
