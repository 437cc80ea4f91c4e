// No event goes by between the question whether there is a newer one and the wait for it.
#include "controller/backend.h"

#include <functional>
#include <utility>

#include <gtest/gtest.h>

namespace muster::controller {
namespace {

/// A log whose next event comes right after it was asked for its last.
class BusyStore final : public ports::Store {
public:
    Status take_term(std::uint64_t) override { return Ok{}; }
    Status load(const std::function<Status(ports::Record)>&) override { return Ok{}; }
    Status commit(const ports::Batch&) override { return Ok{}; }
    Result<std::vector<ports::LoggedEvent>> events_after(std::uint64_t, std::size_t) override {
        return std::vector<ports::LoggedEvent>();
    }
    std::uint64_t last_event() override {
        const std::uint64_t answer = last;
        if (on_asked) std::exchange(on_asked, nullptr)();
        return answer;
    }
    std::uint64_t term() override { return 1; }
    bool nearly_full() override { return false; }

    std::uint64_t last = 5;
    std::function<void()> on_asked;
};

class Events : public ::testing::Test {
protected:
    std::shared_ptr<void> wait_for_more_than(std::uint64_t after) {
        return backend->on_event(after, [this] { ++woken; });
    }
    BusyStore store;
    EventWatch watch;
    int woken = 0;
    std::unique_ptr<rest::Backend> backend =
        make_backend({.agents = {}, .store = &store, .watch = &watch, .fixed = {}, .now = {}});
};

TEST_F(Events, newer_than_the_known_wake_at_once_and_once) {
    const auto handle = wait_for_more_than(4);
    EXPECT_EQ(woken, 1);
    watch.reached(6);
    EXPECT_EQ(woken, 1);
}

TEST_F(Events, that_come_later_wake_once) {
    const auto handle = wait_for_more_than(5);
    EXPECT_EQ(woken, 0);
    watch.reached(5);
    EXPECT_EQ(woken, 0);
    watch.reached(6);
    watch.reached(7);
    EXPECT_EQ(woken, 1);
}

TEST_F(Events, that_come_while_the_log_is_asked_wake) {
    store.on_asked = [this] { watch.reached(store.last = 6); };
    const auto handle = wait_for_more_than(5);
    EXPECT_EQ(woken, 1);
}

TEST_F(Events, wake_nobody_who_has_gone) {
    wait_for_more_than(5).reset();
    watch.reached(6);
    EXPECT_EQ(woken, 0);
}

}  // namespace
}  // namespace muster::controller
