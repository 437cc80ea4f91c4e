// Questions to the planner's thread: each asked once, with the index or with an error; and the
// windows of recurring reservations.
#include "controller/planner.h"

#include <atomic>
#include <future>

#include <gtest/gtest.h>

#include "base/error_codes.h"
#include "controller/recurring.h"

namespace muster::controller {
namespace {

Planner::Hooks hooks() {
    return {.propose = [](scheduler::Plan) {}, .now = [] { return Time{1'800'000'000'000}; }};
}

TEST(Planner, answers_questions_on_its_index) {
    Planner planner({scheduler::QueueChanged{{QueueId{1}, {}, "prod", {}}}}, hooks());
    planner.start();
    std::promise<std::string> told;
    planner.ask([&](Result<const scheduler::PlanIndex*> index, Time now) {
        const bool known = index && (*index)->standing(QueueId{1}, now).has_value();
        const bool other = index && (*index)->standing(QueueId{2}, now).has_value();
        told.set_value(std::string(known ? "known" : "unknown") + (other ? " both" : ""));
    });
    EXPECT_EQ(told.get_future().get(), "known");
}

TEST(Planner, refuses_what_is_too_much_and_leaves_no_question_open) {
    std::atomic<int> answered = 0, late = 0;
    {
        Planner planner({}, hooks());  // Not started: as one that is very late.
        for (int i = 0; i < 1'001; ++i)
            planner.ask([&](const Result<const scheduler::PlanIndex*>& index, Time) {
                ++answered;
                if (!index && index.error().number == errors::kNotReady) ++late;
            });
        EXPECT_EQ(late, 1) << "one too many";
    }
    EXPECT_EQ(answered, 1'001);
    EXPECT_EQ(late, 1'001);
}

TEST(Recurring, asks_for_windows_that_are_not_known_yet) {
    core::View view;
    const Time now{1'800'000'000'000};
    model::Reservation made;
    made.id = ReservationId{7};
    made.name = "night";
    made.first = {now, now + seconds(3600)};
    made.windows = {made.first};
    view.reservations.upsert(6) = made;  // It does not come again.
    made.recurrence.every = model::Recurrence::Every::Week;
    view.reservations.upsert(7) = made;
    made.recurrence.zone = "Nowhere/None";
    view.reservations.upsert(8) = made;
    std::string told;
    const auto due = due_windows(view, now, [&](const std::string& line) { told += line; });
    ASSERT_EQ(due.size(), 1u);
    EXPECT_EQ(due[0].id, ReservationId{7});
    EXPECT_EQ(due[0].windows.size(), 13u) << "ninety days of weeks";
    EXPECT_NE(told.find("Nowhere/None"), std::string::npos) << told;
}

}  // namespace
}  // namespace muster::controller
