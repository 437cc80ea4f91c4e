// How many submits, starts and ends one thread carries through step(), and how long planning takes
// over many waiting jobs. One JSON line a figure.
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "core/step.h"

namespace {

using namespace muster;
using namespace muster::core;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}
void print(const char* what, double value, const char* unit, const char* better, double goal) {
    std::printf(
        "{\"bench\": \"core\", \"what\": \"%s\", \"value\": %.4g, \"unit\": \"%s\", "
        "\"better\": \"%s\", \"goal\": %g}\n",
        what, value, unit, better, goal);
}

struct Core {
    State state;
    scheduler::PlanIndex index;
    Time now{1'000'000};
    std::size_t changes = 0;

    Step must(Event event) {
        auto result = core::step(state, {now, std::move(event)});
        if (!result) std::fprintf(stderr, "%s\n", result.error().message.c_str()), std::abort();
        for (const auto& change : result->planning) index.apply(change);
        changes += result->changes.size();
        return *std::move(result);
    }
    void nodes(int count, int gpus) {
        for (int i = 1; i <= count; ++i) {
            model::NodeFacts facts;
            facts.name = "n" + std::to_string(i);
            facts.addresses = {"10.0.0.1"};
            facts.cpus = {256'000};
            facts.memory = {std::int64_t{1} << 40};
            facts.boot_id = "b";
            for (int d = 0; d < gpus; ++d) {
                model::Device device;
                device.id = facts.name + "-gpu" + std::to_string(d);
                device.kind = "h100";
                facts.devices.push_back(device);
            }
            must(LinkOpened{static_cast<std::uint64_t>(i), facts.name, "", {0, facts, {}}});
        }
    }
};

model::JobSpec job(const std::string& name, std::int64_t gpus) {
    model::JobSpec spec;
    spec.name = name;
    spec.roles.resize(1);
    spec.roles[0].run = "python3 train.py --name " + name;
    spec.roles[0].cpus = {1000};
    if (gpus > 0) spec.roles[0].devices = {{"gpu", gpus, {}, ""}};
    return spec;
}

void submit_rate() {
    constexpr int kJobs = 100'000;
    Core core;
    core.must(BecomeLeader{1});
    const auto start = Clock::now();
    for (int i = 0; i < kJobs; ++i)
        core.must(SubmitJob{{"alice", false},
                            job("job-" + std::to_string(i), 1),
                            "key-" + std::to_string(i),
                            static_cast<std::uint64_t>(i),
                            {}});
    print("submits", kJobs / seconds_since(start), "1/s", "higher", 20'000);
}

void start_end_rate() {
    constexpr int kJobs = 50'000;
    Core core;
    core.must(BecomeLeader{1});
    core.nodes(4, 8);
    for (int i = 0; i < kJobs; ++i)
        core.must(SubmitJob{{"alice", false}, job("noop", 1), "", 0, {}});
    double stepping = 0, planning = 0;
    for (int ended = 0; ended < kJobs;) {
        auto start = Clock::now();
        scheduler::Plan plan = core.index.plan(core.now);
        planning += seconds_since(start);
        start = Clock::now();
        const Step step = core.must(PlanProposed{std::move(plan)});
        std::vector<JobId> archived;
        for (const Command& command : step.commands) {
            const auto* send = std::get_if<Send>(&command);
            const auto* order = send ? std::get_if<protocol::StartTask>(&send->message) : nullptr;
            if (order == nullptr) continue;
            protocol::TaskStatus status;
            status.key = order->key;
            status.term = 1;
            status.state = protocol::TaskState::Running;
            core.must(FromAgent{send->session, status});
            status.state = protocol::TaskState::Ended;
            status.end.cause = model::Cause::Success;
            status.end.exit_code = 0;
            core.must(FromAgent{send->session, status});
            archived.push_back(order->key.job);
        }
        ended += static_cast<int>(archived.size());
        core.must(Archived{std::move(archived)});
        stepping += seconds_since(start);
    }
    print("start_end_pairs", kJobs / stepping, "1/s", "higher", 10'000);
    print("start_end_pairs_with_planning", kJobs / (stepping + planning), "1/s", "higher", 10'000);
}

void plan_blocked(int nodes, int jobs, int shapes) {
    Core core;
    core.must(BecomeLeader{1});
    core.nodes(nodes, 8);
    for (int i = 0; i < nodes; ++i)
        core.must(SubmitJob{{"alice", false}, job("full", 8), "", 0, {}});
    for (bool more = true; more;) {
        scheduler::Plan plan = core.index.plan(core.now);
        more = !plan.starts.empty();
        core.must(PlanProposed{std::move(plan)});
    }
    for (int i = 0; i < jobs; ++i) {
        model::JobSpec spec = job("wait", 1 + i % 8);
        spec.roles[0].memory = {1 + (i % shapes) / 8};
        core.must(SubmitJob{{"bob", false}, spec, "", 0, {}});
    }
    const std::string suffix = std::to_string(nodes) + "n_" + std::to_string(jobs / 1000) + "k_" +
                               std::to_string(shapes) + "s_ms";
    auto start = Clock::now();
    (void)core.index.plan(core.now);
    print(("plan_first_" + suffix).c_str(), seconds_since(start) * 1000, "ms", "lower", 50);
    start = Clock::now();
    (void)core.index.plan(core.now);
    print(("plan_again_" + suffix).c_str(), seconds_since(start) * 1000, "ms", "lower", 20);
    start = Clock::now();
    (void)core.index.why({static_cast<std::uint64_t>(nodes + jobs)}, core.now);
    print(("why_" + suffix).c_str(), seconds_since(start) * 1000, "ms", "lower", 10);
}

void memory_of_a_job() {
    const auto resident = [] {
        std::FILE* file = std::fopen("/proc/self/statm", "r");
        long total = 0, pages = 0;
        if (file == nullptr || std::fscanf(file, "%ld %ld", &total, &pages) != 2) pages = 0;
        if (file != nullptr) std::fclose(file);
        return static_cast<double>(pages) * 4096;
    };
    constexpr int kJobs = 100'000;
    Core core;
    core.must(BecomeLeader{1});
    const double before = resident();
    for (int i = 0; i < kJobs; ++i)
        core.must(SubmitJob{{"alice", false},
                            job("job-" + std::to_string(i), 1),
                            "key-" + std::to_string(i),
                            static_cast<std::uint64_t>(i),
                            {}});
    print("bytes_per_queued_job", (resident() - before) / kJobs, "B", "lower", 1024);
}

}  // namespace

int main() {
    memory_of_a_job();
    submit_rate();
    start_end_rate();
    plan_blocked(100, 100'000, 8);
    plan_blocked(1'000, 100'000, 64);
    plan_blocked(1'000, 100'000, 1'000);
}
