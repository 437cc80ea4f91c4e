#include "controller/watchdog.h"

#include <atomic>
#include <mutex>

#include <gtest/gtest.h>

namespace muster::controller {
namespace {

TEST(Watchdog, a_stopped_loop_is_told_once_and_its_return_too_F53) {
    std::mutex mutex;
    std::condition_variable told;
    std::vector<std::string> lines;
    std::atomic<std::int64_t> loop_lag = 0;
    Watchdog dog({{"loop", [&] { return loop_lag.load(); }}, {"planner", [] { return 1; }}},
                 {.every = Duration{1}, .late = Duration{100}}, [&](const std::string& line) {
                     const std::lock_guard lock(mutex);
                     lines.push_back(line);
                     told.notify_all();
                 });
    const auto wait_lines = [&](std::size_t count) {
        std::unique_lock lock(mutex);
        told.wait(lock, [&] { return lines.size() >= count; });
    };
    loop_lag = 5'000;
    wait_lines(1);
    loop_lag = 0;
    wait_lines(2);
    const std::lock_guard lock(mutex);
    EXPECT_EQ(lines, (std::vector<std::string>{"watchdog: the loop has not come round for 5000 ms",
                                               "watchdog: the loop comes round again"}));
}

}  // namespace
}  // namespace muster::controller
