#include "experiment/runner.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

namespace muster::experiment {
namespace {

using sim::report::RunReport;

/// The jobs that are there, then the trace's.
class Chain : public sim::study::JobSource {
public:
    Chain(const std::vector<sim::study::TraceJob>& standing, const sim::traces::Trace& trace,
          const sim::traces::Play& play)
        : standing_(standing), rest_(trace, play) {}
    std::optional<sim::study::TraceJob> next() override {
        if (at_ < standing_.size()) return standing_[at_++];
        auto job = rest_.next();
        // A waiting job comes a moment after the trace's first would.
        if (job && !standing_.empty()) job->submit = std::max(job->submit, standing_.back().submit);
        return job;
    }

private:
    const std::vector<sim::study::TraceJob>& standing_;
    sim::traces::TraceSource rest_;
    std::size_t at_ = 0;
};

/// A collector that also remembers when the jobs that were there started and ended.
class Witness : public sim::report::Collector {
public:
    Witness(std::int64_t devices_per_node, const std::vector<sim::study::TraceJob>& standing)
        : Collector(devices_per_node) {
        for (const auto& job : standing) names_of_standing_.insert(job.name);
    }
    void ended(const sim::study::JobOutcome& job) override {
        Collector::ended(job);
        if (!names_of_standing_.contains(job.name)) return;
        sim::report::StandingJob& one = seen_.emplace_back();
        one.name = job.name, one.queue = job.queue;
        if (job.first_start) one.start_ms = (*job.first_start - job.submit).ms;
        if (job.end) one.end_ms = (*job.end - job.submit).ms;
    }
    std::vector<sim::report::StandingJob> take() { return std::move(seen_); }

private:
    std::set<std::string, std::less<>> names_of_standing_;
    std::vector<sim::report::StandingJob> seen_;
};

class Runner {
public:
    Runner(const Plan& plan, Gauge& gauge)
        : plan_(plan), gauge_(gauge), reports_(plan.runs()), live_(plan.runs()) {}

    Result<std::vector<RunReport>> run(const std::function<void()>& watch) {
        const std::size_t workers =
            std::min(static_cast<std::size_t>(plan_.parallel), plan_.runs());
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < workers; ++i) threads.emplace_back([this] { work(); });
        {
            std::unique_lock lock(mutex_);
            while (done_ < workers) {
                changed_.wait_for(lock, std::chrono::milliseconds(100));
                lock.unlock();
                sum_up();
                watch();
                lock.lock();
            }
        }
        for (std::thread& thread : threads) thread.join();
        if (error_) return *error_;
        std::vector<RunReport> out;
        for (auto& report : reports_)
            if (report) out.push_back(*std::move(report));
        return out;
    }

private:
    /// What one run has done; by its own thread alone.
    struct Live {
        std::atomic<std::int64_t> ended{0}, waiting{0};
        std::atomic<std::uint64_t> events{0};
    };

    void work() {
        for (;;) {
            const std::size_t index = next_.fetch_add(1);
            if (index >= plan_.runs() || gauge_.stop) break;
            auto report = run_one(index);
            const std::lock_guard lock(mutex_);
            if (report)
                reports_[index] = *std::move(report);
            else if (!error_)
                error_ = report.error(), gauge_.stop = true;
            ++gauge_.runs;
        }
        const std::lock_guard lock(mutex_);
        ++done_;
        changed_.notify_all();
    }

    Result<RunReport> run_one(std::size_t index) {
        const Policy& policy = plan_.policies[index / plan_.seeds.size()];
        sim::study::Cluster cluster = policy.changed ? plan_.changed->cluster : plan_.paper.cluster;
        if (policy.queues) {
            if (cluster.queues.empty()) cluster.queues.emplace_back().name = "default";
            for (model::Queue& queue : cluster.queues) queue.settings.policy = *policy.queues;
        }
        sim::study::Options options = plan_.options;
        options.seed = plan_.seeds[index % plan_.seeds.size()];
        Live& live = live_[index];
        options.progress = [&](const sim::study::Progress& progress) {
            live.ended = progress.ended;
            live.waiting = progress.pending;
            live.events = progress.events;
            return !gauge_.stop;
        };
        MUSTER_LET(report, run_study(plan_, cluster, plan_.play, options));
        live.ended = plan_.jobs;
        live.waiting = 0;
        live.events = report.summary.events;
        report.facts.policy = policy.name;
        if (policy.changed) report.facts.cluster = plan_.changed->words;
        return report;
    }

    void sum_up() {
        std::int64_t ended = 0, waiting = 0;
        std::uint64_t events = 0;
        for (const Live& live : live_) {
            ended += live.ended;
            waiting += live.waiting;
            events += live.events;
        }
        gauge_.ended = ended;
        gauge_.waiting = waiting;
        gauge_.events = events;
    }

    const Plan& plan_;
    Gauge& gauge_;
    std::vector<std::optional<RunReport>> reports_;
    std::vector<Live> live_;
    std::atomic<std::size_t> next_{0};
    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t done_ = 0;
    std::optional<Error> error_;
};

}  // namespace

Result<RunReport> run_study(const Plan& plan, const sim::study::Cluster& cluster,
                            const sim::traces::Play& play, const sim::study::Options& given) {
    sim::study::Options options = given;
    sim::models::MeasuredRate rates(plan.rates());
    options.rates = &rates;
    Chain source(plan.standing, plan.trace, play);
    Witness collector(plan.paper.uniform ? plan.paper.devices_per_node : 0, plan.standing);
    MUSTER_LET(summary, sim::study::run(cluster, source, options, collector));
    sim::report::RunFacts facts;
    facts.seed = options.seed;
    facts.trace = plan.trace.file.substr(plan.trace.file.rfind('/') + 1);
    facts.format = plan.trace.format;
    facts.jobs = plan.jobs;
    facts.bad_rows = plan.trace.bad.count;
    facts.left_out = plan.trace.left_out;
    facts.cluster = plan.paper.words;
    facts.settings = plan.settings;
    RunReport report = sim::report::make_report(std::move(facts), summary, collector);
    report.standing = collector.take();
    return report;
}

Result<std::vector<RunReport>> run_all(const Plan& plan, Gauge& gauge,
                                       const std::function<void()>& watch) {
    return Runner(plan, gauge).run(watch);
}

}  // namespace muster::experiment
