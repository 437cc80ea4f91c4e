// The production scheduler on the traces of the Muri paper: without knowing how long jobs run.
#include <array>

#include "compare.h"
#include "simulator/reference/muri_world.h"
#include "simulator/study/study.h"
#include "simulator/traces/trace.h"

namespace muster::compare {
namespace {

using namespace simulator;

constexpr std::array kTraces = {"trace1", "trace3", "trace1_pr", "trace3_pr"};
/// As published: Tiresias's 2D-LAS, average JCT in seconds.
constexpr std::array kTiresias = {3330371.307, 347213.248, 6921682.793, 2213110.128};

class Jobs : public study::JobSource {
public:
    explicit Jobs(const traces::Trace& trace) : source_(trace, {}) {}
    std::optional<study::TraceJob> next() override {
        std::optional<study::TraceJob> job = source_.next();
        if (!job) return job;
        // The published rate of all their runs.
        job->model.work_ms = job->model.work_ms * 1015 / 1000;
        std::int64_t gpus = 0;
        for (const model::Role& role : job->spec.roles)
            gpus += role.nodes * role.devices.front().count;
        const double overhead = reference::muri_overhead(job->model.profile, gpus);
        job->model.restart_cost = {static_cast<std::int64_t>(overhead * 1000)};
        return job;
    }

private:
    traces::TraceSource source_;
};

class Watch : public study::Sink {
public:
    double sum = 0;
    std::int64_t count = 0;
    void ended(const study::JobOutcome& job) override {
        if (!job.end) return;
        sum += static_cast<double>((*job.end - job.submit).ms) / 1000;
        ++count;
    }
};

study::Cluster cluster() {
    study::Cluster out;
    for (int i = 0; i < 8; ++i)
        out.nodes.push_back(study::make_node("node" + std::to_string(i), "v100", 8, {64'000},
                                             {std::int64_t{512} << 30}, "leaf0"));
    model::Queue queue;
    queue.name = "default";
    queue.settings.policy = model::QueuePolicy::Las;
    out.queues = {queue};
    out.rules.emplace();
    out.rules->preemptions_max = 1'000'000;
    return out;
}

}  // namespace

Status muri_muster(const Options& options, const Report& report) {
    for (std::size_t i = 0; i < kTraces.size(); ++i) {
        const std::string trace = kTraces[i];
        if (!options.list.empty() ? trace != options.list : options.quick && trace != "trace3")
            continue;
        MUSTER_LET(read, traces::read_trace(options.traces + "/muri/" + trace + ".csv",
                                            {.format = "muri", .strict = true}));
        Jobs jobs(read);
        Watch watch;
        study::Options settings;
        settings.plan_every = {30'000};
        settings.wake_every = {60'000};
        MUSTER_LET(summary, study::run(cluster(), jobs, settings, watch));
        Figure figure{.key = "muri_" + trace + "_muster",
                      .value = watch.count > 0 ? watch.sum / static_cast<double>(watch.count) : 0,
                      .unit = "s average JCT",
                      .published = kTiresias[i]};
        figure.bound = "better than the published 2D-LAS of Tiresias";
        figure.inside = summary.complete && figure.value < kTiresias[i];
        figure.note = std::to_string(summary.preemptions) + " preemptions, " +
                      std::to_string(summary.succeeded) + " jobs";
        report(figure);
    }
    return Ok{};
}

}  // namespace muster::compare
