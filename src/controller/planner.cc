#include "controller/planner.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace muster::controller {

using Steady = std::chrono::steady_clock;

struct Planner::Impl {
    const Hooks hooks;
    scheduler::PlanIndex index;
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<scheduler::Change> fed;
    std::vector<std::function<void()>> questions;
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
        bool stale = true;  // The index changed since the last plan.
        Time wake = kNever;
        for (;;) {
            std::vector<scheduler::Change> changes;
            std::vector<std::function<void()>> asked;
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
                asked.swap(questions);
                may_plan = plan_done;
            }
            for (const scheduler::Change& change : changes) index.apply(change);
            stale = stale || !changes.empty() || wake <= hooks.now();
            for (const auto& question : asked) question();
            if (!may_plan || !stale) continue;
            scheduler::Plan plan = index.plan(hooks.now());
            ++plans;
            stale = !plan.complete;
            wake = plan.wake;
            if (plan.starts.empty() && plan.waits.empty() && plan.shape_waits.empty()) continue;
            {
                const std::lock_guard lock(mutex);
                plan_done = false;
            }
            hooks.propose(std::move(plan));
        }
    }

    void ask(std::function<void()> question) {
        {
            const std::lock_guard lock(mutex);
            questions.push_back(std::move(question));
        }
        changed.notify_one();
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

void Planner::why(JobId job, std::function<void(scheduler::Blocked)> then) {
    impl_->ask(
        [this, job, then = std::move(then)] { then(impl_->index.why(job, impl_->hooks.now())); });
}
void Planner::feasible(scheduler::Shape shape, std::function<void(scheduler::Blocked)> then) {
    impl_->ask([this, shape = std::move(shape), then = std::move(then)] {
        then(impl_->index.feasible(shape));
    });
}

std::int64_t Planner::lag_ms() const {
    const std::int64_t since = impl_->busy_since;
    return since == 0 ? 0 : Impl::steady_ms() - since;
}
std::uint64_t Planner::plans() const {
    return impl_->plans;
}

}  // namespace muster::controller
