// Reservations: whose nodes they keep, what is refused, and when they are over.
#include "core/test_world.h"

namespace muster::core {
namespace {

scheduler::Plan start_on(const World& world, JobId job, const std::string& node) {
    scheduler::Plan plan;
    scheduler::Slot slot;
    slot.node = *find_node(world.state, node);
    plan.starts = {{job, {slot}}};
    return plan;
}

PutReservation reserve(const World& world, std::string name, std::int64_t start, std::int64_t end) {
    PutReservation event{world.root, {}, {}, 0, ""};
    event.reservation.name = std::move(name);
    event.reservation.first = {world.now + Duration{start}, world.now + Duration{end}};
    return event;
}
const model::Reservation& made(const World& world, const Step& step) {
    return world.state.tables.reservations.at(step.answer.id);
}

TEST(Reservation, of_a_count_takes_the_nodes_with_the_least_use) {
    World world;
    for (const char* name : {"n1", "n2", "n3"}) world.hello(name);
    world.must(PlanProposed{start_on(world, world.submit(gang_job(1, 1)), "n1")});
    PutReservation event = reserve(world, "course", 1000, 2000);
    event.count = 2;
    const Step step = world.must(event);
    EXPECT_EQ(made(world, step).nodes, (std::vector<NodeId>{{2}, {3}}));
    EXPECT_EQ(made(world, step).created_by, "root");
    PutReservation other = reserve(world, "other", 1500, 2500);
    other.count = 2;
    EXPECT_NE(world.refused(other).message.find("only 1 are not"), std::string::npos);
    other.count = 0, other.nodes = {"n2"};
    EXPECT_NE(world.refused(other).message.find("node n2 is kept by course then"),
              std::string::npos);
    other.reservation.maintenance = true;
    world.must(other);
    other.nodes = {"n9"};
    EXPECT_NE(world.refused(other).message.find("no node n9"), std::string::npos);
    event.count = 1, event.kind = "a100";
    EXPECT_NE(world.refused(event).message.find("1 nodes with a100, only 0"), std::string::npos);
}

TEST(Reservation, is_over_with_its_last_window) {
    World world;
    world.hello("n1");
    PutReservation event = reserve(world, "r", 1000, 2000);
    event.nodes = {"n1"};
    event.reservation.windows = {event.reservation.first,
                                 {world.now + Duration{5000}, world.now + Duration{6000}}};
    const Step step = world.must(event);
    world.pass(3000, {"n1"});
    EXPECT_EQ(made(world, step).windows.size(), 1u);
    world.restart();
    world.pass(3000);
    EXPECT_EQ(world.state.tables.reservations.size(), 0u);
    EXPECT_EQ(world.refused(DropReservation{world.root, "r"}).code, Code::NotFound);
}

TEST(Reservation, that_recurs_waits_for_further_windows) {
    World world;
    world.hello("n1");
    PutReservation event = reserve(world, "r", 1000, 2000);
    event.nodes = {"n1"};
    event.reservation.recurrence.every = model::Recurrence::Every::Day;
    const ReservationId id{world.must(event).answer.id};
    world.pass(3000, {"n1"});
    ASSERT_EQ(world.state.tables.reservations.size(), 1u);
    const Time next = world.now + Duration{1000};
    world.must(RefreshWindows{id, {{next, next + Duration{1000}}}});
    EXPECT_EQ(world.state.tables.reservations.at(id.value).windows.size(), 1u);
    world.must(ActOnNode{world.root, "n1", NodeAction::Forget, ""});
    EXPECT_EQ(world.state.tables.reservations.size(), 0u) << "its only node is gone";
}

TEST(Reservation, that_came_while_a_plan_was_made_holds_against_it) {
    World world;
    world.hello("n1");
    PutReservation event = reserve(world, "r", 0, 10'000);
    event.nodes = {"n1"};
    event.reservation.users = {"alice"};
    const Caller bob{"bob", false};
    model::JobSpec spec = gang_job(1, 1);
    const JobId others = world.submit(spec, bob), his = world.submit(spec);
    spec.time = {5'000};
    const JobId quick = world.submit(spec, bob);
    world.must(event);
    const auto state_after = [&](JobId id) {
        world.must(PlanProposed{start_on(world, id, "n1")});
        return world.job(id).state;
    };
    EXPECT_EQ(state_after(others), model::JobState::Pending);
    EXPECT_EQ(state_after(his), model::JobState::Starting);
    event.reservation.first = {world.now + Duration{4'000}, world.now + Duration{9'000}};
    world.must(event);
    EXPECT_EQ(state_after(quick), model::JobState::Pending) << "its limit reaches into the window";
    event.reservation.first = {world.now + Duration{5'000}, world.now + Duration{9'000}};
    world.must(event);
    EXPECT_EQ(state_after(quick), model::JobState::Starting);
}

TEST(Reservation, F30_windows_are_bounded_and_in_order) {
    World world;
    world.hello("n1");
    for (const auto& [start, end] : {std::pair<std::int64_t, std::int64_t>{2000, 1000},
                                     {-2000, -1000},
                                     {1000, kDurationMax.ms + 1}}) {
        PutReservation event = reserve(world, "r", start, end);
        event.nodes = {"n1"};
        EXPECT_EQ(world.refused(event).number, 1212) << start;
    }
}

}  // namespace
}  // namespace muster::core
