#include "controller/planner.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/error_codes.h"
#include "base/thread_name.h"

namespace muster::controller {

using Steady = std::chrono::steady_clock;

namespace {

constexpr std::size_t kQuestionsMax = 1'000;
constexpr std::int64_t kAnswerAtOnceMs = 50;  // Plans do not wait longer for questions.
constexpr std::int64_t kQuestionLifeMs = 10'000;

Error late(const std::string& what) {
    return {.code = Code::Unavailable,
            .message = "the planner is late: " + what,
            .fix = "try again in a moment; `muster doctor` tells how late it is",
            .number = errors::kNotReady};
}

/// A question and when it was put, in steady ms.
struct Waiting {
    Planner::Question question;
    std::int64_t since = 0;
};

}  // namespace

struct Planner::Impl {
    const Hooks hooks;
    scheduler::PlanIndex index;
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<scheduler::Change> fed;
    std::deque<Waiting> questions;
    bool plan_done = true, stopping = false;
    std::atomic<std::int64_t> busy_since = 0;  // Steady ms; 0: idle.
    std::atomic<std::uint64_t> plans = 0;
    std::thread thread;

    explicit Impl(Hooks h) : hooks(std::move(h)) {}

    static std::int64_t steady_ms() {
        return std::chrono::duration_cast<std::chrono::milliseconds>(
                   Steady::now().time_since_epoch())
            .count();
    }

    void run() {
        name_thread("planner");
        bool stale = true;  // The index changed since the last plan.
        Time wake = kNever;
        for (;;) {
            std::vector<scheduler::Change> changes;
            bool may_plan = false;
            {
                std::unique_lock lock(mutex);
                busy_since = 0;
                const auto ready = [&] {
                    return stopping || !fed.empty() || !questions.empty() || (plan_done && stale);
                };
                const auto sleep = std::clamp<std::int64_t>((wake - hooks.now()).ms, 1, 1'000);
                changed.wait_for(lock, std::chrono::milliseconds(sleep), ready);
                if (stopping) return;
                busy_since = steady_ms();
                changes.swap(fed);
                may_plan = plan_done;
            }
            for (const scheduler::Change& change : changes) index.apply(change);
            stale = stale || !changes.empty() || wake <= hooks.now();
            answer_questions();
            if (!may_plan || !stale) continue;
            scheduler::Plan plan = index.plan(hooks.now());
            ++plans;
            stale = !plan.complete;
            wake = plan.wake;
            if (says_nothing(plan)) continue;
            {
                const std::lock_guard lock(mutex);
                plan_done = false;
            }
            hooks.propose(std::move(plan));
        }
    }

    /// Those that wait, for a while; the rest after the next plan.
    void answer_questions() {
        const std::int64_t began = steady_ms();
        for (;;) {
            Waiting next;
            {
                const std::lock_guard lock(mutex);
                if (questions.empty() || steady_ms() - began > kAnswerAtOnceMs) return;
                next = std::move(questions.front());
                questions.pop_front();
            }
            if (steady_ms() - next.since > kQuestionLifeMs)
                next.question(late("a question waited for more than 10 s"), hooks.now());
            else
                next.question(&index, hooks.now());
        }
    }

    static bool says_nothing(const scheduler::Plan& plan) {
        return plan.starts.empty() && plan.stops.empty() && plan.promises.empty() &&
               !plan.bookings && plan.waits.empty() && plan.shape_waits.empty();
    }
};

Planner::Planner(std::vector<scheduler::Change> initial, Hooks hooks)
    : impl_(std::make_unique<Impl>(std::move(hooks))) {
    for (const scheduler::Change& change : initial) impl_->index.apply(change);
}

void Planner::start() {
    impl_->thread = std::thread([this] { impl_->run(); });
}

Planner::~Planner() {
    {
        const std::lock_guard lock(impl_->mutex);
        impl_->stopping = true;
    }
    impl_->changed.notify_one();
    if (impl_->thread.joinable()) impl_->thread.join();
    for (Waiting& each : impl_->questions)
        each.question(late("the controller is stopping"), impl_->hooks.now());
}

void Planner::feed(std::vector<scheduler::Change> changes, bool plan_done) {
    {
        const std::lock_guard lock(impl_->mutex);
        if (impl_->fed.empty())
            impl_->fed = std::move(changes);
        else
            std::move(changes.begin(), changes.end(), std::back_inserter(impl_->fed));
        impl_->plan_done = impl_->plan_done || plan_done;
    }
    impl_->changed.notify_one();
}

void Planner::ask(Question question) {
    {
        const std::lock_guard lock(impl_->mutex);
        if (impl_->questions.size() < kQuestionsMax && !impl_->stopping) {
            impl_->questions.push_back({std::move(question), Impl::steady_ms()});
            question = nullptr;
        }
    }
    if (question) return question(late("1000 questions wait already"), impl_->hooks.now());
    impl_->changed.notify_one();
}

std::int64_t Planner::lag_ms() const {
    const std::int64_t since = impl_->busy_since;
    return since == 0 ? 0 : Impl::steady_ms() - since;
}
std::uint64_t Planner::plans() const {
    return impl_->plans;
}

}  // namespace muster::controller
