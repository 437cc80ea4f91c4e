#include "production.h"

#include <utility>
#include <variant>

#include "spec/queue_file.h"

namespace muster::compare {
namespace {

using namespace simulator;

class Ends : public study::Sink {
public:
    explicit Ends(const std::function<bool(std::string_view)>& measured) : measured_(measured) {}
    void ended(const study::JobOutcome& job) override {
        if (!job.end) return;
        if (job.state != model::JobState::Succeeded) fault = std::string(job.name) + " failed";
        if (measured_ && !measured_(job.name)) return;
        spans.jobs[std::string(job.name)] = {job.submit.ms, job.end->ms};
    }
    void refused(const study::Refusal& refusal) override {
        fault = std::string(refusal.name) + " was refused: " + std::string(refusal.reason);
    }
    Spans spans;
    std::string fault;

private:
    const std::function<bool(std::string_view)>& measured_;
};

}  // namespace

Result<Spans> run_production(const study::Cluster& cluster, std::vector<study::TraceJob> jobs,
                             const study::Options& options, std::size_t wanted,
                             const std::function<bool(std::string_view)>& measured) {
    Ends ends(measured);
    study::JobList list(std::move(jobs));
    study::Options own = options;
    own.progress = [&](const study::Progress&) {
        return ends.fault.empty() && (wanted == 0 || ends.spans.jobs.size() < wanted);
    };
    MUSTER_LET(summary, study::run(cluster, list, own, ends));
    if (!ends.fault.empty()) return Error{Code::Internal, "job " + ends.fault};
    if (summary.unfinished > 0 && ends.spans.jobs.size() < wanted)
        return Error{Code::Internal, std::to_string(summary.unfinished) + " jobs did not end"};
    ends.spans.preemptions = summary.preemptions;
    return std::move(ends.spans);
}

Result<study::Cluster> production_cluster(std::vector<model::NodeFacts> nodes,
                                          const std::string& queue_file) {
    study::Cluster cluster;
    cluster.nodes = std::move(nodes);
    auto parsed = spec::parse_queue_file(queue_file, "the comparison's queues");
    if (const auto* problems = std::get_if<spec::Problems>(&parsed))
        return Error{Code::Internal, problems->front().message};
    auto& file = std::get<spec::QueueFile>(parsed);
    cluster.queues = std::move(file.queues);
    cluster.rules = std::move(file.rules);
    return cluster;
}

double mean_hours(const Spans& spans) {
    double sum = 0;
    for (const auto& [name, span] : spans.jobs)
        sum += static_cast<double>(span.end_ms - span.submit_ms);
    return sum / static_cast<double>(spans.jobs.size()) / 3'600'000;
}

model::NodeFacts single_device_node(int number, const std::string& kind, const std::string& leaf) {
    return study::make_node("n" + std::to_string(number), kind, 1, {8'000},
                            {std::int64_t{64} << 30}, leaf);
}

study::TraceJob gang_of_single_devices(std::string name, std::int64_t submit_ms,
                                       std::int64_t devices, std::int64_t devices_max) {
    study::TraceJob job;
    job.name = std::move(name);
    job.submit = {submit_ms};
    job.spec.roles.resize(1);
    model::Role& role = job.spec.roles[0];
    role.nodes = devices;
    role.nodes_max = devices_max;
    role.devices = {{.kind = "", .count = 1, .memory_min = {}, .vendor = ""}};
    role.run = "train";
    return job;
}

}  // namespace muster::compare
