// Queues as a tree: what may be applied, who may submit what where, what a start is checked
// against, and what is counted for shares.
#include <functional>

#include "core/indexes.h"
#include "core/test_world.h"

namespace muster::core {
namespace {

using model::Cause;
using model::JobState;
using model::QueueSettings;

QueueWish wish(std::string name, std::function<void(QueueSettings&)> edit = {}) {
    QueueWish out{std::move(name), {}, false};
    if (edit) edit(out.settings);
    return out;
}
ApplyQueues applying(const World& world, std::vector<QueueWish> queues, bool whole = false) {
    return {world.root, std::move(queues), whole};
}
const Queue* find_queue(const World& world, const std::string& name) {
    const auto& names = world.state.indexes->queue_by_name;
    const auto at = names.find(name);
    return at == names.end() ? nullptr : world.state.tables.queues.find(at->second.value);
}
model::JobSpec in_queue(std::string queue, std::int64_t gpus = 1) {
    model::JobSpec spec = gang_job(1, gpus, "job");
    spec.queue = std::move(queue);
    return spec;
}
scheduler::Plan start_on(const World& world, JobId job, const std::string& node) {
    scheduler::Plan plan;
    scheduler::Slot slot;
    slot.node = *find_node(world.state, node);
    plan.starts = {{job, {slot}}};
    return plan;
}

// ---- the tree -----------------------------------------------------------------------------------

struct BadTree {
    const char* name;
    std::vector<QueueWish> queues;
    std::vector<const char*> says;
    friend void PrintTo(const BadTree& row, std::ostream* out) { *out << row.name; }
};
const BadTree kBadTrees[] = {
    {"without_parent", {wish("a/b")}, {"queue a/b: its parent a is not there"}},
    {"bad_name",
     {wish("a b"), wish("/x"), wish("")},
     {"queue a b: a name", "queue /x", "queue : "}},
    {"guarantee_above_limit",
     {wish("a",
           [](auto& s) {
               s.guarantee = {{"gpus", 8000}}, s.limit = {{"gpus", 4000}};
           })},
     {"its guarantee of gpus, 8, is above its limit, 4"}},
    {"children_above_parent",
     {wish("a",
           [](auto& s) {
               s.guarantee = {{"gpus", 8000}};
           }),
      wish("a/b",
           [](auto& s) {
               s.guarantee = {{"gpus", 6000}};
           }),
      wish("a/c",
           [](auto& s) {
               s.guarantee = {{"gpus", 3000}};
           })},
     {"queue a: its guarantee of gpus is 8, the queues below it are guaranteed 9 together"}},
    {"child_of_none",
     {wish("a"), wish("a/b",
                      [](auto& s) {
                          s.guarantee = {{"h100", 1000}};
                      })},
     {"queue a: its guarantee of h100 is 0"}},
    {"F25_every_number",
     {wish("a",
           [](auto& s) {
               s.weight = 0, s.max_jobs = -2, s.default_priority = 101, s.aging_max = -1;
               s.limit = {{"gpus", -1}};
               s.guarantee = {{"gpus", INT64_MAX}};
           })},
     {"weight: 0", "max_jobs: -2", "default_priority: 101", "aging_max: -1", "limit of gpus: -1",
      "guarantee of gpus: 9223"}},
    {"unsorted",
     {wish("a",
           [](auto& s) {
               s.limit = {{"h100", 1}, {"gpus", 1}}, s.users = {"b", "a"};
           })},
     {"gpus is named twice or out of order", "a user or group is named twice"}},
    {"default_time_above_max",
     {wish("a", [](auto& s) { s.default_time = {2000}, s.max_time = {1000}; })},
     {"its default_time, 2s, is above its max_time, 1s"}},
    {"dropped_unknown", {{"nope", {}, true}}, {"queue nope: there is no such queue"}},
    {"dropped_default", {{"default", {}, true}}, {"queue default: jobs that name no queue"}},
};
class Trees : public testing::TestWithParam<BadTree> {};
TEST_P(Trees, are_refused_with_every_error_named) {
    World world;
    const Error error = world.refused(applying(world, GetParam().queues));
    for (const char* part : GetParam().says)
        EXPECT_NE(error.message.find(part), std::string::npos) << part << " in " << error.message;
    EXPECT_GT(error.number, 0);
}
INSTANTIATE_TEST_SUITE_P(Table, Trees, testing::ValuesIn(kBadTrees),
                         [](const auto& row) { return row.param.name; });

TEST(Queues, are_made_changed_and_dropped_as_a_tree) {
    World world;
    world.must(applying(world, {wish("b/x"), wish("a"), wish("b")}));
    ASSERT_NE(find_queue(world, "b/x"), nullptr);
    EXPECT_EQ(find_queue(world, "b/x")->parent, find_queue(world, "b")->id);
    world.must(applying(world, {wish("b/x", [](auto& s) { s.weight = 7; })}));
    EXPECT_EQ(find_queue(world, "b/x")->settings.weight, 7);
    EXPECT_NE(find_queue(world, "a"), nullptr) << "a patch leaves the rest";
    world.restart();
    EXPECT_EQ(find_queue(world, "b/x")->settings.weight, 7);
    world.must(applying(world, {wish("a")}, true));
    EXPECT_EQ(find_queue(world, "b"), nullptr);
    EXPECT_EQ(find_queue(world, "b/x"), nullptr);
    EXPECT_NE(find_queue(world, "default"), nullptr);
}

TEST(Queues, with_jobs_are_not_dropped_and_get_no_children) {
    World world;
    world.must(applying(world, {wish("a"), wish("a/b")}));
    const JobId id = world.submit(in_queue("a/b"));
    for (const auto& queues :
         {std::vector<QueueWish>{{"a/b", {}, true}}, std::vector<QueueWish>{wish("a/b/c")}}) {
        const Error error = world.refused(applying(world, queues));
        EXPECT_NE(error.message.find("1 jobs"), std::string::npos) << error.message;
    }
    world.must(ActOnJob{world.alice, id, -1, JobAction::Cancel, "", 0});
    world.must(Archived{{id}});
    world.must(applying(world, {{"a/b", {}, true}}));
    EXPECT_EQ(find_queue(world, "a/b"), nullptr);
}

TEST(Queues, rules_and_topology_are_the_admins) {
    World world;
    ApplyQueues queues = applying(world, {wish("a")});
    queues.caller = world.alice;
    EXPECT_EQ(world.refused(queues).code, Code::Denied);
    EXPECT_EQ(world.refused(SetRules{world.alice, {}}).code, Code::Denied);
    EXPECT_EQ(world.refused(SetTopology{world.alice, {}}).code, Code::Denied);
    EXPECT_EQ(world.refused(PutReservation{world.alice, {}, {}, 0, ""}).code, Code::Denied);
    EXPECT_EQ(world.refused(DropReservation{world.alice, "r"}).code, Code::Denied);
}

TEST(Queues, of_the_settings_are_made_with_their_parents) {
    Settings settings;
    settings.queues = {"prod/train", "dev"};
    World world(settings);
    ASSERT_NE(find_queue(world, "prod/train"), nullptr);
    EXPECT_EQ(find_queue(world, "prod/train")->parent, find_queue(world, "prod")->id);
}

// ---- submit -------------------------------------------------------------------------------------

struct Asked {
    const char* name;
    std::function<void(QueueSettings&)> queue;
    std::function<void(model::JobSpec&)> job;
    const char* says;  // Null: accepted.
    friend void PrintTo(const Asked& row, std::ostream* out) { *out << row.name; }
};
const auto nothing = [](auto&) {};
const Asked kAsked[] = {
    {"anything", nothing, nothing, nullptr},
    {"F29_not_a_user", [](auto& s) { s.users = {"carol"}; }, nothing, "queue q: is not for alice"},
    {"F29_not_in_a_group", [](auto& s) { s.groups = {"nlp"}; }, nothing,
     "queue q: is not for alice"},
    {"a_user",
     [](auto& s) {
         s.users = {"alice", "carol"};
     },
     nothing, nullptr},
    {"in_a_group", [](auto& s) { s.groups = {"staff"}; }, nothing, nullptr},
    {"above_the_job_limit",
     [](auto& s) {
         s.job_limit = {{"gpus", 2000}};
     },
     [](auto& s) { s.roles[0].devices[0].count = 3; },
     "gpus: the job asks for 3, the job_limit of queue q is 2"},
    {"above_the_limit",
     [](auto& s) {
         s.limit = {{"memory", std::int64_t{1} << 30}};
     },
     [](auto& s) { s.roles[0].memory = {std::int64_t{2} << 30}; },
     "memory: the job asks for 2GiB, the limit of queue q is 1GiB"},
    {"F3_limit_of_a_kind",
     [](auto& s) {
         s.limit = {{"h100", 1000}};
     },
     [](auto& s) {
         s.roles[0].devices = {{"h100", 2, {}, ""}};
     },
     "h100: the job asks for 2, the limit of queue q is 1"},
    {"another_kind_would_do",
     [](auto& s) {
         s.limit = {{"h100", 1000}};
     },
     [](auto& s) {
         s.roles[0].devices = {{"h100", 2, {}, ""}, {"a100", 2, {}, ""}};
     },
     nullptr},
    {"a_fraction_fits",
     [](auto& s) {
         s.job_limit = {{"gpus", 500}};
     },
     [](auto& s) { s.roles[0].devices[0].fraction = 500; }, nullptr},
    {"too_long", [](auto& s) { s.max_time = {3'600'000}; }, [](auto& s) { s.time = {7'200'000}; },
     "time: 2h is more than the max_time of queue q, 1h"},
    {"not_preemptible_without_guarantee", nothing, [](auto& s) { s.preemptible = false; },
     "preemptible: false, but queue q has no guarantee"},
    {"not_preemptible_beyond_guarantee",
     [](auto& s) {
         s.guarantee = {{"gpus", 1000}};
     },
     [](auto& s) { s.preemptible = false, s.roles[0].devices[0].count = 2; },
     "without preemption the guarantee of queue q is 1"},
    {"not_preemptible_within_guarantee",
     [](auto& s) {
         s.guarantee = {{"gpus", 1000}};
     },
     [](auto& s) { s.preemptible = false; }, nullptr},
    {"a_queue_that_is_not_preempted", [](auto& s) { s.preemptible = false; },
     [](auto& s) { s.preemptible = false; }, nullptr},
    {"unknown_level", nothing, [](auto& s) { s.topology.required = "laef"; },
     "topology.required: there is no level laef"},
    {"unknown_slice_level", nothing, [](auto& s) { s.topology.slice_required = "nv72"; },
     "topology.slice.required: there is no level nv72"},
    {"known_levels", nothing,
     [](auto& s) { s.topology.required = "leaf", s.topology.preferred = "numa"; }, nullptr},
    {"uneven_slices", nothing,
     [](auto& s) {
         s.roles[0].nodes = s.roles[0].nodes_max = 12;
         s.topology.slice = 8;
     },
     "topology.slice.size: 8 does not divide 12 nodes"},
    {"F25_fraction_of_more_than_all", nothing,
     [](auto& s) { s.roles[0].devices[0].fraction = 1001; }, "gpu fraction (thousandths): 1001"},
    {"F25_negative_share", nothing, [](auto& s) { s.roles[0].devices[0].share_memory = {-1}; },
     "gpu share_memory: -1"},
    {"F25_spares", nothing, [](auto& s) { s.topology.spares = -1; }, "topology.spares: -1"},
    {"F25_most_nodes", nothing, [](auto& s) { s.roles[0].nodes_max = INT64_MAX; },
     "nodes (most): 9223"},
    {"two_parts_at_once", nothing,
     [](auto& s) { s.roles[0].devices[0].fraction = 500, s.roles[0].devices[0].profile = "1g"; },
     "exclude each other"},
    {"parts_of_several_devices", nothing,
     [](auto& s) { s.roles[0].devices[0].fraction = 500, s.roles[0].devices[0].count = 2; },
     "2 parts of devices"},
};
class Submitted : public testing::TestWithParam<Asked> {};
TEST_P(Submitted, to_a_queue_that_allows_it) {
    World world;
    world.alice.groups = {"staff", "users"};
    world.must(applying(world, {wish("q", GetParam().queue)}));
    model::JobSpec spec = in_queue("q");
    GetParam().job(spec);
    if (GetParam().says == nullptr) {
        world.submit(spec);
        return;
    }
    const Error error = world.refused(SubmitJob{world.alice, spec, "", 0, {}});
    EXPECT_NE(error.message.find(GetParam().says), std::string::npos) << error.message;
    EXPECT_FALSE(error.fix.empty());
}
INSTANTIATE_TEST_SUITE_P(Table, Submitted, testing::ValuesIn(kAsked),
                         [](const auto& row) { return row.param.name; });

TEST(Submit, goes_to_leaves_only_and_what_is_above_counts_too) {
    World world;
    world.must(
        applying(world, {wish("q", [](auto& s) { s.users = {"alice"}, s.max_pending = 2; }),
                         wish("q/a", [](auto& s) { s.user_max_pending = 1; }), wish("q/b")}));
    const Error leaf = world.refused(SubmitJob{world.alice, in_queue("q"), "", 0, {}});
    EXPECT_NE(leaf.cause.find("q/a, q/b"), std::string::npos) << leaf.cause;
    EXPECT_EQ(world.refused(SubmitJob{world.bob, in_queue("q/a"), "", 0, {}}).code, Code::Denied);
    world.submit(in_queue("q/a"));
    const Error own = world.refused(SubmitJob{world.alice, in_queue("q/a"), "", 0, {}});
    EXPECT_NE(own.message.find("1 jobs of alice wait, its user_max_pending is 1"),
              std::string::npos)
        << own.message;
    const JobId b = world.submit(in_queue("q/b"));
    const Error all = world.refused(SubmitJob{world.alice, in_queue("q/b"), "", 0, {}});
    EXPECT_EQ(all.code, Code::Exhausted);
    EXPECT_NE(all.message.find("queue q: 2 jobs wait, its max_pending is 2"), std::string::npos);
    world.must(ActOnJob{world.alice, b, -1, JobAction::Cancel, "", 0});
    world.submit(in_queue("q/b"));
}

TEST(Submit, a_queue_fills_in_what_a_job_does_not_say) {
    World world;
    world.must(applying(
        world, {wish("q", [](auto& s) { s.default_time = {3'600'000}, s.default_priority = 70; }),
                wish("m", [](auto& s) { s.max_time = {60'000}; })}));
    const JobId plain = world.submit(in_queue("q"));
    EXPECT_EQ(world.job(plain).priority, 70);
    EXPECT_EQ(spec_of(world.state.tables, world.job(plain).spec)->time, Duration{3'600'000});
    model::JobSpec said = in_queue("q");
    said.time = {5000}, said.priority = 20;
    const JobId own = world.submit(said);
    EXPECT_EQ(world.job(own).priority, 20);
    EXPECT_EQ(spec_of(world.state.tables, world.job(own).spec)->time, Duration{5000});
    const JobId bounded = world.submit(in_queue("m"));
    EXPECT_EQ(spec_of(world.state.tables, world.job(bounded).spec)->time, Duration{60'000});
}

TEST(Move, to_another_queue_is_checked_as_a_submit) {
    World world;
    world.must(
        applying(world, {wish("q", [](auto& s) { s.users = {"bob"}; }), wish("small", [](auto& s) {
                             s.job_limit = {{"gpus", 1000}};
                         })}));
    const JobId id = world.submit(gang_job(1, 2));
    EXPECT_EQ(world.refused(UpdateJob{world.alice, id, -1, "q", 0}).code, Code::Denied);
    EXPECT_NE(world.refused(UpdateJob{world.alice, id, -1, "small", 0}).message.find("job_limit"),
              std::string::npos);
    world.must(UpdateJob{world.root, id, -1, "q", 0});
    EXPECT_EQ(world.state.tables.queue_use.at(world.job(id).queue).pending, 1);
}

// ---- starts -------------------------------------------------------------------------------------

struct Limit {
    const char* name;
    std::function<void(QueueSettings&)> top, leaf;
    int starts;  // Of three one-device jobs.
    friend void PrintTo(const Limit& row, std::ostream* out) { *out << row.name; }
};
const Limit kLimits[] = {
    {"none", nothing, nothing, 3},
    {"F18_limit", nothing,
     [](auto& s) {
         s.limit = {{"gpus", 2000}};
     },
     2},
    {"limit_of_a_kind", nothing,
     [](auto& s) {
         s.limit = {{"h100", 1000}};
     },
     1},
    {"limit_of_another_kind", nothing,
     [](auto& s) {
         s.limit = {{"a100", 0}};
     },
     3},
    {"limit_above",
     [](auto& s) {
         s.limit = {{"gpus", 2000}};
     },
     nothing, 2},
    {"F22_limit_of_cpus", nothing,
     [](auto& s) {
         s.limit = {{"cpus", 16'000}};
     },
     2},
    {"borrow_limit", nothing,
     [](auto& s) {
         s.guarantee = {}, s.borrow_limit = {{"gpus", 1000}};
     },
     1},
    {"max_jobs", [](auto& s) { s.max_jobs = 2; }, nothing, 2},
    {"user_max_jobs", nothing, [](auto& s) { s.user_max_jobs = 1; }, 1},
    {"user_limit", nothing,
     [](auto& s) {
         s.user_limit = {{"gpus", 2000}};
     },
     2},
};
class Limits : public testing::TestWithParam<Limit> {};
TEST_P(Limits, are_checked_again_at_commit) {
    World world;
    world.hello("n1");
    world.must(applying(world, {wish("q", GetParam().top), wish("q/a", GetParam().leaf)}));
    std::vector<JobId> jobs;
    for (int i = 0; i < 3; ++i) jobs.push_back(world.submit(in_queue("q/a")));
    int started = 0;
    for (const JobId id : jobs) {
        world.must(PlanProposed{start_on(world, id, "n1")});
        started += world.job(id).state == JobState::Starting ? 1 : 0;
    }
    EXPECT_EQ(started, GetParam().starts);
    // What ends gives back what it had (F26).
    for (const JobId id : jobs)
        if (world.job(id).state == JobState::Starting) world.end(id, 0, Cause::UserError);
    world.must(PlanProposed{start_on(world, world.submit(in_queue("q/a")), "n1")});
    EXPECT_EQ(world.state.tables.active, 1);
}
INSTANTIATE_TEST_SUITE_P(Table, Limits, testing::ValuesIn(kLimits),
                         [](const auto& row) { return row.param.name; });

TEST(Limits, F26_failed_elements_give_back_their_quota) {
    World world;
    world.hello("n1");
    world.must(applying(world, {wish("q", [](auto& s) { s.max_jobs = 1; })}));
    model::JobSpec spec = in_queue("q");
    spec.array.count = 3;
    const JobId parent = world.submit(spec);
    for (int i = 0; i < 3; ++i) {
        world.must(PlanProposed{start_on(world, parent, "n1")});
        ASSERT_EQ(world.state.tables.active, 1) << i;
        const JobId element =
            *find_job(world.state.tables, std::to_string(parent.value) + "_" + std::to_string(i));
        world.end(element, 0, Cause::UserError);
    }
    EXPECT_EQ(world.state.tables.queue_use.at(world.job(parent).queue).active, 0);
    EXPECT_EQ(world.job(parent).state, JobState::Failed);
}

// ---- usage and history --------------------------------------------------------------------------

TEST(Usage, grows_with_what_runs_weighted_by_kind_and_fades) {
    World world;
    world.hello("n1");
    model::SchedulingRules rules;
    rules.half_life = {3'600'000};
    rules.kind_weights = {{"h100", 2000}};
    world.must(SetRules{world.root, rules});
    model::JobSpec spec = gang_job(1, 4);
    spec.roles[0].memory = {std::int64_t{2} << 30};
    const JobId id = world.submit(spec);
    world.plan();
    world.run(id);
    const auto usage = [&] {
        return *world.state.tables.usage.find(
            usage_key({world.job(id).queue}, {world.job(id).user}));
    };
    EXPECT_EQ(usage().devices, 0) << "what runs since then is not in it";
    world.pass(10'000, {"n1"});
    world.end(id, 0, Cause::Success);
    // 4 devices of weight 2 for 10 s, 32 CPUs (4 of 8 devices' share), 2 GiB; a hair has faded.
    EXPECT_NEAR(static_cast<double>(usage().devices), 80'000, 100);
    EXPECT_NEAR(static_cast<double>(usage().cpus), 320'000, 400);
    EXPECT_NEAR(static_cast<double>(usage().memory), 20'480, 30);
    const Usage before = usage();
    world.restart();
    EXPECT_EQ(usage(), before);
    world.hello("n1");
    world.pass(3'600'000, {"n1"});
    world.submit(gang_job(1, 1, "later"));
    world.plan();
    EXPECT_NEAR(static_cast<double>(usage().devices), 40'000, 60) << "an hour later half is left";
}

TEST(Usage, is_one_record_for_all_that_starts_at_once) {
    World world;
    world.hello("n1");
    scheduler::Plan plan;
    for (int i = 0; i < 8; ++i) {
        const JobId id = world.submit(gang_job(1, 1, "j" + std::to_string(i)));
        plan.starts.push_back(start_on(world, id, "n1").starts[0]);
    }
    const Step step = world.must(PlanProposed{plan});
    int usages = 0;
    for (const Change& change : step.changes) usages += std::holds_alternative<UsagePut>(change);
    EXPECT_EQ(usages, 1);
    EXPECT_EQ(world.state.tables.active, 8);
}

TEST(Usage, is_kept_for_every_queue_of_many) {
    World world;
    world.hello("n1");
    std::vector<QueueWish> queues;
    for (int i = 0; i < 40; ++i) queues.push_back(wish("team" + std::to_string(i)));
    world.must(applying(world, queues));
    const JobId id = world.submit(in_queue("team39"));
    world.plan();
    world.run(id);
    EXPECT_NE(world.state.tables.usage.find(usage_key({world.job(id).queue}, {world.job(id).user})),
              nullptr);
    world.restart();
    EXPECT_EQ(world.state.tables.usage.size(), 1u);
}

TEST(History, predicts_jobs_of_the_same_user_and_name) {
    World world;
    world.hello("n1");
    const auto run_for = [&](std::int64_t ms, const char* name = "train") {
        const JobId id = world.submit(gang_job(1, 1, name));
        world.plan();
        world.run(id);
        world.pass(ms, {"n1"});
        world.end(id, 0, Cause::Success);
    };
    for (int i = 1; i <= 20; ++i) run_for(i * 10'000);
    run_for(500, "short");
    EXPECT_EQ(world.state.tables.run_times.size(), 1u) << "what is so short is not kept";
    const auto predicted = [&](const model::JobSpec& spec, const Caller& caller) {
        const JobId id = world.submit(spec, caller);
        return prediction_of(world.state.tables, world.job(id));
    };
    // The last sixteen: 50 to 200 s.
    const scheduler::Prediction known{{60'000}, {120'000}, {190'000}};
    EXPECT_EQ(predicted(gang_job(1, 1, "train"), world.alice), known);
    EXPECT_EQ(predicted(gang_job(1, 1, "train"), world.bob), scheduler::Prediction{});
    model::JobSpec said = gang_job(1, 1, "train");
    said.expected_time = {1000};
    EXPECT_EQ(predicted(said, world.alice).p50, Duration{1000}) << "people know better";
    said.expected_time = {}, said.time = {100'000};
    EXPECT_EQ(predicted(said, world.alice).p90, Duration{100'000}) << "never beyond the limit";
    const JobId waiting = world.submit(gang_job(1, 1, "train"));
    world.restart();
    EXPECT_EQ(prediction_of(world.state.tables, world.job(waiting)), known);
    world.hello("n1");
    world.must(PlanProposed{start_on(world, waiting, "n1")});
    EXPECT_EQ(world.extra(waiting).allocation->expected_end, world.now + Duration{190'000});
}

TEST(ExpectedEnd, is_doubled_each_time_it_was_wrong) {
    World world;
    world.hello("n1");
    model::JobSpec spec = gang_job(1, 1);
    spec.expected_time = {20'000};  // p90: half as much again.
    const JobId id = world.submit(spec);
    world.plan();
    world.run(id);
    const Time start = world.now;
    const auto end = [&] { return world.extra(id).allocation->expected_end; };
    EXPECT_EQ(end(), start + Duration{30'000});
    world.pass(30'000, {"n1"});
    EXPECT_EQ(end(), start + Duration{60'000});
    world.pass(30'000, {"n1"});
    EXPECT_EQ(end(), start + Duration{120'000});
    EXPECT_EQ(world.job(id).state, JobState::Running);
}

TEST(ExpectedEnd, follows_the_kind_s_speed) {
    World world;
    world.hello("n1");
    model::SchedulingRules rules;
    rules.kind_speeds = {{"h100", 2000}};
    world.must(SetRules{world.root, rules});
    model::JobSpec spec = gang_job(1, 1);
    spec.expected_time = {20'000};
    const JobId id = world.submit(spec);
    world.plan();
    EXPECT_EQ(world.extra(id).allocation->expected_end, world.now + Duration{15'000});
}

// ---- topology and rules -------------------------------------------------------------------------

TEST(Topology, is_checked_and_moves_nodes) {
    World world;
    world.hello("n1");
    const Error error =
        world.refused(SetTopology{world.root, {{"zone", "zone", "node", ""}, {{"n1", {"z"}}}}});
    for (const char* part : {"level zone: is named twice", "level node: is always there",
                             "one has no name", "host n1: has 1 domains, there are 4 levels"})
        EXPECT_NE(error.message.find(part), std::string::npos) << part << " in " << error.message;
    const Step step =
        world.must(SetTopology{world.root, {{"zone", "leaf"}, {{"n1", {"z1", "l1"}}}}});
    ASSERT_EQ(step.planning.size(), 2u);
    EXPECT_EQ(std::get<scheduler::LevelsChanged>(step.planning[0]).levels.size(), 2u);
    EXPECT_EQ(std::get<scheduler::NodeChanged>(step.planning[1]).path,
              (std::vector<std::string>{"z1", "l1"}));
    // The same levels: only who moved is told.
    world.hello("n2");
    EXPECT_EQ(world.must(SetTopology{world.root, {{"zone", "leaf"}, {{"n1", {"z1", "l2"}}}}})
                  .planning.size(),
              1u);
}

TEST(Rules, are_checked) {
    World world;
    model::SchedulingRules rules;
    rules.half_life = {0}, rules.bookings_max = 257, rules.kind_speeds = {{"a", 0}};
    const Error error = world.refused(SetRules{world.root, rules});
    for (const char* part : {"half_life (ms): 0", "bookings_max: 257", "kind_speeds of a: 0"})
        EXPECT_NE(error.message.find(part), std::string::npos) << part << " in " << error.message;
}

}  // namespace
}  // namespace muster::core
