// Utilisation: the Philly subset on its virtual clusters, shared three ways, arrivals ever faster.
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "compare.h"
#include "simulator/reference/philly_world.h"

namespace muster::compare {
namespace {

using namespace simulator;
using reference::Sharing;

constexpr std::array kSharings = {Sharing::Static, Sharing::Fifo, Sharing::Muster};
constexpr std::int64_t kWaitMost = 3'600'000;
constexpr int kFactors = 12;

struct Point {
    Status status = Ok{};
    double offered = 0;                      // Percent of all devices during the span of arrivals.
    double effective = 0;                    // Percent that made progress, of all, in that span.
    double allocated = 0;                    // Percent that was held.
    std::int64_t p50 = 0, p90 = 0, p99 = 0;  // Of waits, in milliseconds.
    std::int64_t preemptions = 0;
    double seconds = 0;
};

class Watch : public study::Sink {
public:
    explicit Watch(Time last) : last_(last) {}
    void ended(const study::JobOutcome& job) override {
        if (job.first_start) waits_.push_back((*job.first_start - job.submit).ms);
    }
    void sample(const study::Sample& sample) override {
        if (last_ < sample.at) return;
        total_ += sample.devices_total;
        useful_ += sample.devices_useful;
        held_ += sample.devices_held;
    }
    std::int64_t wait(int percent) {
        std::ranges::sort(waits_);
        if (waits_.empty()) return 0;
        const auto index = waits_.size() * static_cast<std::size_t>(percent) / 100;
        return waits_[std::min(index, waits_.size() - 1)];
    }
    double share(std::int64_t of) const {
        return total_ == 0 ? 0 : 100.0 * static_cast<double>(of) / static_cast<double>(total_);
    }
    double effective() const { return share(useful_); }
    double allocated() const { return share(held_); }

private:
    Time last_;
    std::vector<std::int64_t> waits_;
    std::int64_t total_ = 0, useful_ = 0, held_ = 0;
};

Point measure(const reference::PhillyWorld& world, Sharing sharing, std::int64_t compress) {
    Point point;
    point.offered =
        static_cast<double>(world.offered_ppm()) / 1e4 * static_cast<double>(compress) / 1000;
    const std::int64_t span = (world.trace.last() - world.trace.first()).ms * 1000 / compress;
    const auto jobs_all = static_cast<std::int64_t>(world.trace.rows.size());
    Watch watch(world.trace.first() + Duration{span});
    study::Options options;
    options.plan_every = reference::kPhillyPlanEvery;
    options.sample_every = {600'000};
    // All have started: what runs on says nothing of waits, nor of the span of arrivals.
    options.progress = [&](const study::Progress& progress) {
        return progress.submitted < jobs_all || progress.pending > 0;
    };
    const study::Cluster cluster = philly_cluster(world, sharing);
    reference::PhillyJobs jobs(world, sharing, compress);
    const Result<study::Summary> summary = study::run(cluster, jobs, options, watch);
    if (!summary) {
        point.status = summary.error();
        return point;
    }
    point.effective = watch.effective();
    point.allocated = watch.allocated();
    point.p50 = watch.wait(50), point.p90 = watch.wait(90), point.p99 = watch.wait(99);
    point.preemptions = summary->preemptions;
    return point;
}

std::string note_of(const Point& point) {
    char text[200];
    std::snprintf(text, sizeof text,
                  "offered %.1f %%, allocated %.1f %%, wait p50 %.0f s, p90 %.0f s, p99 %.0f s, "
                  "%ld preemptions",
                  point.offered, point.allocated, static_cast<double>(point.p50) / 1e3,
                  static_cast<double>(point.p90) / 1e3, static_cast<double>(point.p99) / 1e3,
                  static_cast<long>(point.preemptions));
    return text;
}

}  // namespace

Status philly(const Options& options, const Report& report) {
    MUSTER_LET(world, reference::read_philly_world(options.traces + "/philly"));
    std::vector<int> factors;
    for (int factor = 1; factor <= kFactors; ++factor)
        if (!options.quick || factor % 3 == 0) factors.push_back(factor);
    std::vector<Sharing> sharings;
    for (const Sharing sharing : kSharings)
        if (options.list.empty() || options.list == reference::to_text(sharing))
            sharings.push_back(sharing);
    const auto count = static_cast<int>(factors.size() * sharings.size());
    const auto at = [&](int i) { return static_cast<std::size_t>(i) % factors.size(); };
    const std::vector<Point> points = in_parallel<Point>(count, options.parallel, [&](int i) {
        return measure(world, sharings[static_cast<std::size_t>(i) / factors.size()],
                       factors[at(i)] * 1000);
    });
    std::map<Sharing, double> best;
    for (int i = 0; i < count; ++i) {
        const Point& point = points[static_cast<std::size_t>(i)];
        MUSTER_TRY(point.status);
        const Sharing sharing = sharings[static_cast<std::size_t>(i) / factors.size()];
        const std::string key = "philly_" + std::string(reference::to_text(sharing));
        report({.key = key + "_x" + std::to_string(factors[at(i)]),
                .value = point.effective,
                .unit = "% effective",
                .note = note_of(point)});
        if (point.p90 <= kWaitMost) best[sharing] = std::max(best[sharing], point.effective);
    }
    for (const Sharing sharing : sharings) {
        Figure figure{.key = "philly_" + std::string(reference::to_text(sharing)) + "_util",
                      .value = best[sharing],
                      .unit = "% effective"};
        figure.note = "the highest with a p90 wait of at most an hour";
        if (sharing == Sharing::Muster && !options.quick && best.contains(Sharing::Static)) {
            figure.bound = "at least 70 %, and twice the static partitions'";
            figure.inside = figure.value >= 70 && figure.value >= 2 * best[Sharing::Static];
        }
        report(figure);
    }
    return Ok{};
}

}  // namespace muster::compare
