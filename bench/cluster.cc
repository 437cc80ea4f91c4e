#include "bench/cluster.h"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

#include <unistd.h>

#include "controller/archiver.h"
#include "controller/loop.h"
#include "controller/planner.h"
#include "core/state.h"
#include "store/sqlite_history.h"
#include "store/sqlite_store.h"

namespace muster::bench {
namespace {

using protocol::TaskState;

constexpr int kDevices = 8, kLeaf = 32;
constexpr std::chrono::milliseconds kBeat{100};
constexpr std::size_t kBeats = 10;  // So many beats make a second: a node sends in one of them.

Time wall_now() {
    using namespace std::chrono;
    return {duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count()};
}

model::NodeFacts facts_of(int number) {
    model::NodeFacts facts;
    facts.name = "n" + std::to_string(number);
    facts.addresses = {"10." + std::to_string(number / 65536) + "." +
                       std::to_string(number / 256 % 256) + "." + std::to_string(number % 256)};
    facts.boot_id = "boot";
    facts.cpus = {128'000};
    facts.memory = {std::int64_t{1} << 40};
    facts.disk = {std::int64_t{1} << 42};
    facts.labels = {{"leaf", "l" + std::to_string((number - 1) / kLeaf)}};
    for (int d = 0; d < kDevices; ++d) {
        model::Device device;
        device.id = facts.name + "-gpu" + std::to_string(d);
        device.kind = "h100";
        device.numa = d / 4;
        device.memory = {std::int64_t{80} << 30};
        facts.devices.push_back(std::move(device));
    }
    return facts;
}

core::FromAgent report(std::uint64_t session, const protocol::TaskKey& key, protocol::Term term,
                       TaskState state) {
    protocol::TaskStatus status;
    status.key = key;
    status.term = term;
    status.state = state;
    if (state == TaskState::Ready && key.rank == 0) status.port = 29'500;
    if (state == TaskState::Ended) status.end.cause = model::Cause::Success;
    return {session, status};
}

}  // namespace

struct Cluster::Impl {
    const Tasks tasks;
    const int nodes;
    std::unique_ptr<store::SqliteStore> store;
    std::unique_ptr<ports::History> history;
    std::unique_ptr<controller::Loop> loop;
    std::unique_ptr<controller::Archiver> archiver;
    std::unique_ptr<controller::Planner> planner;

    mutable std::mutex mutex;
    mutable std::condition_variable changed;
    Counts counts;
    std::string trouble;  // The first refusal, or why the store gave up.
    struct Task {
        std::uint64_t session = 0;
        protocol::TaskKey key;
    };
    std::vector<Task> running;  // With RunOn only.
    bool stopping = false;
    std::thread heart;

    Impl(int count, Tasks how) : tasks(how), nodes(count) {}

    ~Impl() {
        {
            const std::lock_guard lock(mutex);
            stopping = true;
        }
        changed.notify_all();
        if (heart.joinable()) heart.join();
        loop->stop();
        planner.reset();
        archiver.reset();
        loop.reset();
    }

    Status run(const std::string& folder) {
        store::SqliteStoreOptions options;
        options.path = folder + "/state.db";
        MUSTER_LET(opened, store::SqliteStore::open(options));
        store = std::move(opened);
        MUSTER_LET(ended, store::open_sqlite_history(folder + "/history.db"));
        history = std::move(ended);
        MUSTER_TRY(store->take_term(store->term() + 1));
        core::State state;
        planner = std::make_unique<controller::Planner>(
            core::feed_all(state),
            controller::Planner::Hooks{
                [this](scheduler::Plan plan) { loop->post(core::PlanProposed{std::move(plan)}); },
                wall_now});
        loop = std::make_unique<controller::Loop>(std::move(state), *store,
                                                  controller::LoopOptions{}, loop_hooks());
        archiver = std::make_unique<controller::Archiver>(
            *history,
            [this](std::vector<JobId> jobs) { loop->post(core::Archived{std::move(jobs)}); },
            [this](const std::string& line) { complain(line); });
        loop->post(core::BecomeLeader{store->term()});
        loop->start();
        planner->start();
        for (int i = 1; i <= nodes; ++i) {
            protocol::Hello hello;
            hello.facts = facts_of(i);
            std::string name = hello.facts.name;
            loop->post(core::LinkOpened{static_cast<std::uint64_t>(i), std::move(name), "",
                                        std::move(hello)},
                       [this](const auto& answer) { take(answer); });
        }
        heart = std::thread([this] { beat(); });
        if (!wait([this](const Counts& c) { return c.acknowledged + c.refused >= nodes; }))
            return Error{Code::Internal, "the nodes did not join", trouble};
        const std::lock_guard lock(mutex);
        counts = {};
        return Ok{};
    }

    controller::LoopHooks loop_hooks() {
        controller::LoopHooks hooks;
        hooks.carry_out = [this](std::vector<core::Command> commands,
                                 const std::shared_ptr<const core::View>& view) {
            carry_out(commands, view);
        };
        hooks.on_events = [](std::uint64_t) {};
        hooks.feed_planner = [this](std::vector<scheduler::Change> changes, bool plan_done) {
            planner->feed(std::move(changes), plan_done);
        };
        hooks.fatal = [this](const Error& error) { complain(error.message + ": " + error.cause); };
        hooks.log = [this](const std::string& line) { complain(line); };
        hooks.now = wall_now;
        return hooks;
    }

    void complain(const std::string& line) {
        const std::lock_guard lock(mutex);
        if (trouble.empty()) trouble = line;
    }

    void take(const Result<controller::Answered>& answer) {
        if (!answer) complain(answer.error().message);
        const std::lock_guard lock(mutex);
        ++(answer ? counts.acknowledged : counts.refused);
        changed.notify_all();
    }

    // What was durable is sent: here the agents are, and answer.
    void carry_out(const std::vector<core::Command>& commands,
                   const std::shared_ptr<const core::View>& view) {
        Counts more;
        std::vector<JobId> archive;
        std::vector<Task> begun;
        for (const core::Command& command : commands) {
            if (const auto* ended = std::get_if<core::Archive>(&command)) {
                archive.push_back(ended->job);
                ++more.ended;
            }
            const auto* send = std::get_if<core::Send>(&command);
            if (send == nullptr) continue;
            if (const auto* start = std::get_if<protocol::StartTask>(&send->message)) {
                ++more.orders;
                if (start->key.rank == 0) ++more.started;
                if (tasks == Tasks::RunOn) begun.push_back({send->session, start->key});
            }
            answer(*send);
        }
        if (!archive.empty()) archiver->add(std::move(archive), view);
        if (more.orders == 0 && more.ended == 0) return;
        const std::lock_guard lock(mutex);
        counts.orders += more.orders, counts.started += more.started, counts.ended += more.ended;
        running.insert(running.end(), begun.begin(), begun.end());
        changed.notify_all();
    }

    void answer(const core::Send& send) {
        const auto say = [&](const protocol::TaskKey& key, protocol::Term term, TaskState state) {
            loop->post(report(send.session, key, term, state));
        };
        if (const auto* start = std::get_if<protocol::StartTask>(&send.message)) {
            if (start->barrier) return say(start->key, start->term, TaskState::Ready);
            say(start->key, start->term, TaskState::Running);
            if (tasks == Tasks::EndAtOnce) say(start->key, start->term, TaskState::Ended);
        }
        if (const auto* go = std::get_if<protocol::Go>(&send.message)) {
            say(go->key, go->term, TaskState::Running);
            if (tasks == Tasks::EndAtOnce) say(go->key, go->term, TaskState::Ended);
        }
        if (const auto* stop = std::get_if<protocol::StopTask>(&send.message))
            say(stop->key, stop->term, TaskState::Ended);
    }

    void beat() {
        std::unique_lock lock(mutex);
        for (std::uint64_t round = 0; !stopping; ++round) {
            changed.wait_for(lock, kBeat, [this] { return stopping; });
            lock.unlock();
            for (std::uint64_t node = 1 + round % kBeats; node <= static_cast<std::uint64_t>(nodes);
                 node += kBeats)
                loop->post(core::FromAgent{node, protocol::Heartbeat{round}});
            lock.lock();
        }
    }

    bool wait(const std::function<bool(const Counts&)>& enough,
              std::chrono::milliseconds patience = std::chrono::minutes(1)) const {
        std::unique_lock lock(mutex);
        Counts seen = counts;
        while (!enough(counts)) {
            const bool more = changed.wait_for(lock, patience,
                                               [&] { return enough(counts) || !(counts == seen); });
            if (!more) return false;
            seen = counts;
        }
        return true;
    }
};

Result<std::unique_ptr<Cluster>> Cluster::start(const std::string& folder, int nodes, Tasks tasks) {
    auto impl = std::make_unique<Impl>(nodes, tasks);
    MUSTER_TRY(impl->run(folder));
    return std::unique_ptr<Cluster>(new Cluster(std::move(impl)));
}

Cluster::Cluster(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Cluster::~Cluster() = default;

void Cluster::submit(const std::string& user, const std::string& key, model::JobSpec spec) {
    impl_->loop->post(core::SubmitJob{{user, false}, std::move(spec), key, 0, {}},
                      [this](const auto& answer) { impl_->take(answer); });
}

Status Cluster::apply_queues(std::vector<core::QueueWish> queues) {
    const auto before = counts();
    impl_->loop->post(core::ApplyQueues{{"admin", true}, std::move(queues), false},
                      [this](const auto& answer) { impl_->take(answer); });
    const bool done = wait([&](const Counts& c) {
        return c.acknowledged > before.acknowledged || c.refused > before.refused;
    });
    if (!done || counts().refused > before.refused)
        return Error{Code::Internal, "the queues were not made", trouble()};
    return Ok{};
}

Cluster::Counts Cluster::counts() const {
    const std::lock_guard lock(impl_->mutex);
    return impl_->counts;
}
std::string Cluster::trouble() const {
    const std::lock_guard lock(impl_->mutex);
    return impl_->trouble;
}
bool Cluster::wait(const std::function<bool(const Counts&)>& enough,
                   std::chrono::milliseconds patience) const {
    return impl_->wait(enough, patience);
}

bool Cluster::end_one(std::uint64_t choice) {
    Impl::Task task;
    {
        const std::lock_guard lock(impl_->mutex);
        if (impl_->running.empty()) return false;
        Impl::Task& chosen = impl_->running[choice % impl_->running.size()];
        task = std::exchange(chosen, impl_->running.back());
        impl_->running.pop_back();
    }
    impl_->loop->post(report(task.session, task.key, impl_->store->term(), TaskState::Ended));
    return true;
}

/// Of each thread of this process, by name.
std::string Cluster::cpu_times() {
    std::map<std::string, double> all;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream stat(entry.path() / "stat");
        std::string line;
        std::getline(stat, line);
        const auto open = line.find('('), close = line.rfind(')');
        if (open == std::string::npos || close == std::string::npos) continue;
        std::istringstream rest(line.substr(close + 1));
        std::string word;
        double ticks = 0;
        for (int i = 3; i <= 15 && rest >> word; ++i)
            if (i >= 14) ticks += std::stod(word);
        all[line.substr(open + 1, close - open - 1)] +=
            ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
    }
    std::string out;
    for (const auto& [name, seconds] : all) {
        char text[64];
        std::snprintf(text, sizeof text, "%s%s %.2f", out.empty() ? "" : ", ", name.c_str(),
                      seconds);
        out += text;
    }
    return out;
}

std::uint64_t Cluster::batches() const {
    return impl_->loop->stats().batches;
}
std::uint64_t Cluster::plans() const {
    return impl_->planner->plans();
}

}  // namespace muster::bench
