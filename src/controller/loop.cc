#include "controller/loop.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "base/error_codes.h"
#include "base/require.h"
#include "base/thread_name.h"
#include "core/records.h"

namespace muster::controller {
namespace {

static_assert(static_cast<int>(core::RecordKind::RunTimes) ==
                  static_cast<int>(ports::RecordKind::RunTimes) &&
              static_cast<int>(core::RecordKind::Meta) ==
                  static_cast<int>(ports::RecordKind::Meta));

using Steady = std::chrono::steady_clock;

std::int64_t steady_ms() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Steady::now().time_since_epoch())
        .count();
}

struct Posted {
    core::Event event;
    Reply reply;
    Steady::time_point at;
};

// Everything that happened between two hand-overs to the committing thread.
struct Batch {
    std::uint64_t revision =
        0;  // Of the last batch that changed something: a view of it shows all.
    ports::Batch records;
    std::vector<core::Command> commands;
    std::vector<std::pair<Reply, core::Answer>> replies;
    std::shared_ptr<const core::View> view;  // Null: not published with this batch.

    bool durable() const {
        return !records.puts.empty() || !records.drops.empty() || !records.events.empty();
    }
};

bool is_new_work(const core::Event& event) {
    return std::holds_alternative<core::SubmitJob>(event) ||
           std::holds_alternative<core::CreateToken>(event) ||
           std::holds_alternative<core::NodeJoined>(event);
}

}  // namespace

struct Loop::Impl {
    core::State state;
    ports::Store& store;
    const LoopOptions options;
    const LoopHooks hooks;
    const std::uint64_t term;

    // The loop's own.
    std::set<core::RecordName> touched;
    Batch pending;
    bool changed = false;  // Since the last hand-over.
    bool dirty = false;    // Since the last view.
    std::uint64_t revision = 1, next_event;
    Steady::time_point viewed{};

    // Between the askers and the loop.
    mutable std::mutex inbox_mutex;
    std::condition_variable inbox_changed, stop_asked;
    std::deque<Posted> inbox;
    bool stopping = false;

    // Between the loop and the committing thread.
    std::mutex commit_mutex;
    std::condition_variable commit_changed;
    std::unique_ptr<Batch> handed;
    bool committing = false, loop_done = false, gave_up = false;

    // Published.
    mutable std::mutex view_mutex;
    std::shared_ptr<const core::View> view;
    std::multimap<std::uint64_t, std::function<void()>> waiting;
    std::atomic<bool> view_wanted = false;

    std::atomic<std::uint64_t> inputs = 0, refused = 0, batches = 0, records = 0, views = 0;
    std::atomic<bool> stuck = false;
    std::atomic<std::int64_t> busy_since = 0;  // Of this round; 0: it waits for work.
    std::thread loop_thread, commit_thread;

    Impl(core::State s, ports::Store& st, LoopOptions o, LoopHooks h)
        : state(std::move(s)),
          store(st),
          options(o),
          hooks(std::move(h)),
          term(store.term()),
          next_event(store.last_event() + 1) {
        auto first = std::make_shared<core::View>(state.tables);
        first->revision = revision;
        first->at = hooks.now();
        view = std::move(first);
    }

    // ---- the loop ------------------------------------------------------------------------------

    void run() {
        name_thread("loop");
        std::deque<Posted> taken;
        for (;;) {
            busy_since = 0;
            if (!wait_for_work(taken)) break;
            busy_since = steady_ms();
            for (Posted& posted : taken) {
                take_step(std::move(posted.event), std::move(posted.reply));
                if (touched.size() >= options.batch_records_max) hand_over(true);
            }
            taken.clear();
            if (core::next_wake(state) <= hooks.now()) take_step(core::Tick{}, {});
            hand_over(false);
        }
        hand_over(true);
        {
            const std::lock_guard lock(commit_mutex);
            loop_done = true;
        }
        commit_changed.notify_all();
    }

    // Sleeps until there is an input, a timer, a batch or a view to hand over. False: stop.
    bool wait_for_work(std::deque<Posted>& taken) {
        std::unique_lock lock(inbox_mutex);
        const auto ready = [&] { return !inbox.empty() || stopping || can_hand_over(); };
        const Time wake = core::next_wake(state);
        auto sleep =
            std::chrono::milliseconds(std::clamp<std::int64_t>((wake - hooks.now()).ms, 0, 1'000));
        if (dirty) sleep = std::min(sleep, std::chrono::milliseconds(options.publish_every.ms));
        inbox_changed.wait_for(lock, sleep, ready);
        if (inbox.empty() && stopping) return false;
        taken.swap(inbox);
        return true;
    }

    void take_step(core::Event event, Reply reply) {
        const core::Input input{hooks.now(), std::move(event)};
        const bool was_plan = std::holds_alternative<core::PlanProposed>(input.event);
        ++inputs;
        auto stepped = core::step(state, input);
        if (!stepped) {
            ++refused;
            MUSTER_REQUIRE(!was_plan);  // A plan that no longer holds is dropped item by item.
            if (reply) reply(std::move(stepped).error());
            return;
        }
        core::Step step = *std::move(stepped);
        for (const core::Change& change : step.changes) {
            if (const auto name = core::record_of(change)) touched.insert(*name);
        }
        changed = changed || !step.changes.empty();
        dirty = dirty || changed;
        for (core::Notice& notice : step.notices) {
            pending.records.events.push_back({next_event++, input.at.ms, std::move(notice.json)});
        }
        std::move(step.commands.begin(), step.commands.end(), std::back_inserter(pending.commands));
        if (reply) pending.replies.emplace_back(std::move(reply), std::move(step.answer));
        if (!step.planning.empty() || was_plan)
            hooks.feed_planner(std::move(step.planning), was_plan);
    }

    bool something_pending() const {
        return !touched.empty() || !pending.records.events.empty() || !pending.commands.empty() ||
               !pending.replies.empty();
    }
    bool view_due() const {
        return dirty && (view_wanted || Steady::now() - viewed >=
                                            std::chrono::milliseconds(options.publish_every.ms));
    }
    bool can_hand_over() {
        if (!something_pending() && !view_due()) return false;
        const std::lock_guard lock(commit_mutex);
        return handed == nullptr && !committing;
    }

    // Gives the batch to the committing thread if it is free (or waits for it). Records are encoded
    // here, once each, from the state that all the batch's steps made.
    void hand_over(bool wait) {
        if (!something_pending() && !view_due()) return;
        {
            std::unique_lock lock(commit_mutex);
            if ((handed != nullptr || committing) && !wait) return;
            commit_changed.wait(lock,
                                [&] { return gave_up || (handed == nullptr && !committing); });
            if (gave_up) return;
        }
        auto batch = std::make_unique<Batch>(std::move(pending));
        pending = Batch{};
        if (std::exchange(changed, false)) ++revision;
        batch->revision = revision;
        batch->records.term = term;
        for (const core::RecordName& name : touched) {
            const ports::RecordKey key{static_cast<ports::RecordKind>(name.kind), name.id};
            if (auto bytes = core::encode_record(state, name))
                batch->records.puts.push_back({key, *std::move(bytes)});
            else
                batch->records.drops.push_back(key);
        }
        touched.clear();
        const bool archives = std::ranges::any_of(batch->commands, [](const core::Command& c) {
            return std::holds_alternative<core::Archive>(c);
        });
        if (view_due() || archives) {
            view_wanted = false;
            dirty = false;
            viewed = Steady::now();
            auto next = std::make_shared<core::View>(state.tables);
            next->revision = batch->revision;
            next->at = hooks.now();
            batch->view = std::move(next);
        }
        {
            const std::lock_guard lock(commit_mutex);
            handed = std::move(batch);
        }
        commit_changed.notify_all();
    }

    // ---- the committing thread -----------------------------------------------------------------

    void commit_all() {
        name_thread("commit");
        for (;;) {
            std::unique_ptr<Batch> batch;
            {
                std::unique_lock lock(commit_mutex);
                commit_changed.wait(lock, [&] { return handed != nullptr || loop_done; });
                if (handed == nullptr) return;
                batch = std::move(handed);
                committing = true;
            }
            if (batch->durable() && !make_durable(batch->records)) {
                const std::lock_guard lock(commit_mutex);
                gave_up = true;
                commit_changed.notify_all();
                return;
            }
            act(*batch);
            {
                const std::lock_guard lock(commit_mutex);
                committing = false;
            }
            commit_changed.notify_all();
            { const std::lock_guard lock(inbox_mutex); }
            inbox_changed.notify_one();
        }
    }

    bool make_durable(const ports::Batch& batch_records) {
        for (bool told = false;; told = true) {
            const Status done = store.commit(batch_records);
            if (done) {
                if (stuck.exchange(false))
                    hooks.log("the disk has room again: the waiting batch is durable");
                ++batches;
                records += batch_records.puts.size() + batch_records.drops.size();
                return true;
            }
            if (done.error().code != Code::NoSpace) {
                hooks.fatal(done.error());
                return false;
            }
            stuck = true;
            if (!told)
                hooks.log("disk full: nothing is acknowledged until there is room: " +
                          done.error().message);
            // Nobody was told of the batch: a stop may forget it.
            std::unique_lock lock(inbox_mutex);
            if (stop_asked.wait_for(lock, std::chrono::milliseconds(200), [&] { return stopping; }))
                return false;
        }
    }

    void act(Batch& batch) {
        const auto latest = batch.view ? batch.view : current_view();
        if (!batch.commands.empty()) hooks.carry_out(std::move(batch.commands), latest);
        for (auto& [reply, answer] : batch.replies)
            reply(Answered{std::move(answer), batch.revision});
        if (!batch.records.events.empty()) hooks.on_events(batch.records.events.back().sequence);
        if (batch.view) publish(std::move(batch.view));
    }

    std::shared_ptr<const core::View> current_view() const {
        const std::lock_guard lock(view_mutex);
        return view;
    }

    void publish(std::shared_ptr<const core::View> next) {
        ++views;
        std::vector<std::function<void()>> due;
        {
            const std::lock_guard lock(view_mutex);
            view = std::move(next);
            const auto end = waiting.upper_bound(view->revision);
            for (auto at = waiting.begin(); at != end; ++at) due.push_back(std::move(at->second));
            waiting.erase(waiting.begin(), end);
        }
        for (const auto& then : due) then();
    }
};

Loop::Loop(core::State state, ports::Store& store, LoopOptions options, LoopHooks hooks)
    : impl_(std::make_unique<Impl>(std::move(state), store, options, std::move(hooks))) {}

Loop::~Loop() {
    stop();
}

void Loop::stop() {
    {
        const std::lock_guard lock(impl_->inbox_mutex);
        impl_->stopping = true;
    }
    impl_->inbox_changed.notify_all();
    impl_->stop_asked.notify_all();
    if (impl_->loop_thread.joinable()) impl_->loop_thread.join();
    if (impl_->commit_thread.joinable()) impl_->commit_thread.join();
}

void Loop::start() {
    impl_->commit_thread = std::thread([this] { impl_->commit_all(); });
    impl_->loop_thread = std::thread([this] { impl_->run(); });
}

void Loop::post(core::Event event, Reply reply) {
    if (reply && is_new_work(event) && (impl_->stuck || impl_->store.nearly_full())) {
        reply(Error{Code::NoSpace, "the controller's disk is nearly full: new work is refused",
                    "less room is left than the watermark of the state folder",
                    "make room on the controller's disk; ends and cancels still work",
                    errors::kDiskFull});
        return;
    }
    bool full = false;
    {
        const std::lock_guard lock(impl_->inbox_mutex);
        full = reply && impl_->inbox.size() >= impl_->options.queue_max;
        if (!full) impl_->inbox.push_back({std::move(event), std::move(reply), Steady::now()});
    }
    if (full) {
        reply(Error{
            Code::Unavailable,
            "the controller has " + std::to_string(impl_->options.queue_max) + " requests waiting",
            "", "try again in a moment", errors::kNotReady});
        return;
    }
    impl_->inbox_changed.notify_one();
}

std::shared_ptr<const core::View> Loop::view() const {
    return impl_->current_view();
}

void Loop::when_published(std::uint64_t revision, std::function<void()> then) {
    {
        const std::lock_guard lock(impl_->view_mutex);
        if (impl_->view->revision < revision) {
            impl_->waiting.emplace(revision, std::move(then));
            then = nullptr;
        }
    }
    if (then) return then();
    impl_->view_wanted = true;
    impl_->inbox_changed.notify_one();
}

LoopStats Loop::stats() const {
    LoopStats stats{impl_->inputs, impl_->refused, impl_->batches, impl_->records, impl_->views, 0,
                    impl_->stuck};
    if (const std::int64_t since = impl_->busy_since; since != 0)
        stats.lag_ms = steady_ms() - since;
    const std::lock_guard lock(impl_->inbox_mutex);
    if (!impl_->inbox.empty()) {
        stats.lag_ms = std::max(
            stats.lag_ms,
            static_cast<std::int64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                          Steady::now() - impl_->inbox.front().at)
                                          .count()));
    }
    return stats;
}

}  // namespace muster::controller
