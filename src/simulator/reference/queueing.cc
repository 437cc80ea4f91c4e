#include "simulator/reference/queueing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "base/require.h"

namespace muster::simulator::reference {
namespace {

constexpr double kLater = std::numeric_limits<double>::infinity();

struct Live {
    const QueueingJob* job = nullptr;
    std::size_t index = 0;
    double left = 0;  // Iterations.
    bool running = false;
    double since = 0;     // Last looked at.
    double attained = 0;  // Seconds on devices, overhead and all.
    std::size_t level = 0;
    double remaining() const { return left * job->iteration_seconds; }
    double service() const { return remaining() * static_cast<double>(job->gpus); }
};

class Run {
public:
    Run(std::span<const QueueingJob> jobs, const QueueingOptions& options)
        : options_(options), live_(jobs.size()), levels_(options.thresholds.size() + 1) {
        result_.jct.resize(jobs.size());
        std::vector<std::size_t> order(jobs.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::ranges::stable_sort(order, {}, [&](std::size_t i) { return jobs[i].submit; });
        for (std::size_t i = 0; i < jobs.size(); ++i) {
            const QueueingJob& job = jobs[order[i]];
            live_[i] = {.job = &job, .index = order[i], .left = job.iterations};
        }
    }

    QueueingResult run() {
        while (next_ < live_.size() || !runnable_.empty()) {
            const double arrival = next_ < live_.size() ? live_[next_].job->submit : kLater;
            const double now = std::min({arrival, completion_, jump_});
            MUSTER_REQUIRE(now < kLater);
            ++result_.events;
            if (now == completion_) complete(now);
            for (; next_ < live_.size() && live_[next_].job->submit == now; ++next_) {
                runnable_.push_back(&live_[next_]);
                levels_[0].push_back(&live_[next_]);
            }
            advance(now);
            if (options_.policy == QueueingPolicy::Las)
                place_by_level(now);
            else
                place_by_work(now);
            look_ahead(now);
        }
        std::vector<double> sorted = result_.jct;
        std::ranges::sort(sorted);
        const auto count = static_cast<double>(sorted.size());
        if (sorted.empty()) return std::move(result_);
        result_.average = std::accumulate(result_.jct.begin(), result_.jct.end(), 0.0) / count;
        result_.p99 = sorted[static_cast<std::size_t>(count * 0.99)];
        return std::move(result_);
    }

private:
    void complete(double now) {
        for (Live* job : ending_) {
            result_.jct[job->index] = now - job->job->submit;
            result_.makespan = std::max(result_.makespan, now);
            std::erase(runnable_, job);
            std::erase(levels_[job->level], job);
        }
    }

    void advance(double now) {
        for (Live* job : runnable_) {
            if (!job->running) continue;
            const double lost = options_.overhead ? job->job->overhead : 0;
            // In this order: a job stands on a jump's moment exactly, not a rounding before it.
            job->attained = job->attained + now - job->since;
            const double progress = std::max(now - job->since - lost, 0.0);
            job->left -= progress / job->job->iteration_seconds;
            job->since = now;
            if (options_.policy != QueueingPolicy::Las ||
                job->level >= options_.thresholds.size() ||
                job->attained * static_cast<double>(job->job->gpus) <
                    options_.thresholds[job->level])
                continue;
            std::erase(levels_[job->level], job);
            levels_[++job->level].push_back(job);
        }
    }

    void run_it(Live& job, bool runs, double now) {
        if (runs && !job.running) job.since = now;
        job.running = runs;
    }

    /// The shortest first; each on one node, or on whole ones, else passed over.
    void place_by_work(double now) {
        const bool service = options_.policy == QueueingPolicy::Srsf;
        std::ranges::stable_sort(runnable_, {}, [&](const Live* job) {
            return service ? job->service() : job->remaining();
        });
        std::vector<std::int64_t> free(static_cast<std::size_t>(options_.nodes), options_.gpus);
        for (Live* job : runnable_) {
            std::int64_t wanted = job->job->gpus;
            if (wanted <= options_.gpus) {
                const auto node =
                    std::ranges::find_if(free, [&](std::int64_t left) { return left >= wanted; });
                if (node != free.end()) *node -= wanted, wanted = 0;
            } else if (std::ranges::count(free, options_.gpus) * options_.gpus >= wanted) {
                for (std::int64_t& left : free)
                    if (left == options_.gpus && wanted > 0) wanted -= left, left = 0;
            }
            run_it(*job, wanted == 0, now);
        }
    }

    /// By level, then order of entry; devices are counted, nodes are not looked at. Those left out
    /// go behind those of their level that run.
    void place_by_level(double now) {
        std::int64_t free = options_.nodes * options_.gpus;
        for (std::vector<Live*>& level : levels_) {
            for (Live* job : level) {
                const bool fits = job->job->gpus <= free;
                if (fits) free -= job->job->gpus;
                run_it(*job, fits, now);
            }
            std::ranges::stable_partition(level, [](const Live* job) { return job->running; });
        }
    }

    void look_ahead(double now) {
        completion_ = jump_ = kLater;
        ending_.clear();
        for (Live* job : runnable_) {
            if (!job->running) continue;
            const double end = now + job->remaining();
            if (end < completion_) completion_ = end, ending_.clear();
            if (end == completion_) ending_.push_back(job);
            if (options_.policy != QueueingPolicy::Las || job->level >= options_.thresholds.size())
                continue;
            const double gpus = static_cast<double>(job->job->gpus);
            const double jump =
                std::ceil(options_.thresholds[job->level] / gpus) - job->attained + now;
            if (jump > now) jump_ = std::min(jump_, jump);
        }
    }

    const QueueingOptions& options_;
    std::vector<Live> live_;       // By submission.
    std::size_t next_ = 0;         // Of them: the next to come.
    std::vector<Live*> runnable_;  // Kept in the order of the last look.
    std::vector<std::vector<Live*>> levels_;
    std::vector<Live*> ending_;
    double completion_ = kLater, jump_ = kLater;
    QueueingResult result_;
};

}  // namespace

std::string_view to_string(QueueingPolicy policy) {
    switch (policy) {
        case QueueingPolicy::Srtf: return "srtf";
        case QueueingPolicy::Srsf: return "srsf";
        case QueueingPolicy::Las: return "las";
    }
    return "";
}

Result<QueueingResult> run_queueing(std::span<const QueueingJob> jobs,
                                    const QueueingOptions& options) {
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        const std::int64_t gpus = jobs[i].gpus;
        const bool whole = gpus <= options.gpus || gpus % options.gpus == 0;
        if (gpus > 0 && gpus <= options.nodes * options.gpus && whole) continue;
        return Error{.code = Code::Invalid,
                     .message = "job " + std::to_string(i) + " wants " + std::to_string(gpus) +
                                " devices of a cluster of " + std::to_string(options.nodes) +
                                " × " + std::to_string(options.gpus) +
                                "; it may have part of a node, or whole ones",
                     .fix = "give a larger cluster, or leave the job out"};
    }
    return Run(jobs, options).run();
}

}  // namespace muster::simulator::reference
