#include "simulator/report/metrics.h"

#include <algorithm>
#include <map>

namespace muster::simulator::report {
namespace {

constexpr double kHourMs = 3'600'000;
constexpr double kSlowdownFloorMs = 10'000;  // The usual bound of bounded slowdown.
constexpr double kArrivalsLeastMs = 60'000;  // Else all came at once.
constexpr std::size_t kCdfPoints = 201;
constexpr std::size_t kGroupsMax = 50;

double seconds(std::int64_t ms) {
    return static_cast<double>(ms) / 1000;
}
std::optional<double> ratio(double part, double whole) {
    if (whole <= 0) return std::nullopt;
    return part / whole;
}

/// How many jobs were live at each moment, as its integral over time.
class Contention {
public:
    explicit Contention(const std::vector<JobRecord>& jobs, Time stop) {
        std::vector<std::pair<std::int64_t, int>> steps;
        steps.reserve(jobs.size() * 2);
        for (const JobRecord& job : jobs) {
            steps.emplace_back(job.submit.ms, 1);
            steps.emplace_back(job.jct_ms < 0 ? stop.ms : job.submit.ms + job.jct_ms, -1);
        }
        std::ranges::sort(steps);
        std::int64_t live = 0;
        double area = 0;
        for (const auto& [at, step] : steps) {
            if (!at_.empty())
                area += static_cast<double>(live) * static_cast<double>(at - at_.back());
            if (at_.empty() || at_.back() != at) {
                at_.push_back(at);
                area_.push_back(area);
                live_.push_back(0);
            }
            live += step;
            live_.back() = live;
        }
    }
    /// The mean number of live jobs in between; at least 1.
    double mean(std::int64_t from, std::int64_t to) const {
        if (to <= from) return 1;
        return std::max(1.0, (until(to) - until(from)) / static_cast<double>(to - from));
    }

private:
    double until(std::int64_t when) const {
        const auto after = std::ranges::upper_bound(at_, when);
        if (after == at_.begin()) return 0;
        const auto i = static_cast<std::size_t>(after - at_.begin()) - 1;
        return area_[i] + static_cast<double>(live_[i]) * static_cast<double>(when - at_[i]);
    }
    std::vector<std::int64_t> at_, live_;
    std::vector<double> area_;
};

Cdf cdf_of(const std::vector<double>& sorted) {
    Cdf cdf;
    if (sorted.empty()) return cdf;
    const std::size_t points = std::min(kCdfPoints, sorted.size());
    for (std::size_t i = 0; i < points; ++i) {
        const std::size_t rank =
            points == 1 ? sorted.size() - 1 : i * (sorted.size() - 1) / (points - 1);
        cdf.values.push_back(sorted[rank]);
        cdf.parts.push_back(static_cast<double>(rank + 1) / static_cast<double>(sorted.size()));
    }
    return cdf;
}

struct Group {
    GroupMetrics metrics;
    std::vector<double> wait, jct;
    double ratio_sum = 0, inverse_sum = 0;
    std::int64_t ratios = 0;
};
using Groups = std::map<std::uint32_t, Group>;

void add(Group& group, const JobRecord& job, double finish_ratio) {
    GroupMetrics& m = group.metrics;
    ++m.jobs;
    m.preemptions += job.preemptions;
    m.held_device_h += static_cast<double>(job.held) / kHourMs;
    m.useful_device_h += static_cast<double>(job.useful) / kHourMs;
    m.lost_device_h += static_cast<double>(job.lost) / kHourMs;
    if (job.wait_ms >= 0) group.wait.push_back(seconds(job.wait_ms));
    if (job.jct_ms < 0) return;
    ++m.ended;
    group.jct.push_back(seconds(job.jct_ms));
    if (finish_ratio <= 0) return;
    group.ratio_sum += finish_ratio;
    group.inverse_sum += 1 / finish_ratio;
    ++group.ratios;
}

std::optional<double> jain_of(const Groups& groups) {
    std::vector<double> means;
    for (const auto& [name, group] : groups)
        if (group.ratios > 0)
            means.push_back(group.inverse_sum / static_cast<double>(group.ratios));
    return jain(means);
}

std::vector<GroupMetrics> finished(Groups groups, const std::vector<std::string>& names) {
    std::vector<GroupMetrics> all;
    for (auto& [name, group] : groups) {
        GroupMetrics& m = group.metrics;
        m.name = names[name];
        m.wait_s = distribution(group.wait);
        m.jct_s = distribution(group.jct);
        if (group.ratios > 0)
            m.finish_time_ratio = group.ratio_sum / static_cast<double>(group.ratios);
        all.push_back(std::move(m));
    }
    std::ranges::sort(all, [](const GroupMetrics& a, const GroupMetrics& b) {
        return a.held_device_h != b.held_device_h ? a.held_device_h > b.held_device_h
                                                  : a.name < b.name;
    });
    if (all.size() > kGroupsMax) all.resize(kGroupsMax);
    return all;
}

/// All that goes over the jobs once.
class Measure {
public:
    Measure(const Collector& collector, const study::Summary& summary)
        : collector_(collector),
          summary_(summary),
          contention_(collector.jobs(), summary.ended),
          devices_(static_cast<double>(summary.devices_total)) {
        const double window = static_cast<double>((summary.ended - summary.first_submit).ms);
        cluster_ = window > 0 ? devices_ / window : 0;
    }

    RunMetrics result() && {
        for (const JobRecord& job : collector_.jobs()) job_of(job);
        Metrics& m = out_.metrics;
        m.wait_s = distribution(wait_);
        m.jct_s = distribution(jct_);
        m.slowdown = distribution(slowdown_);
        m.finish_time_ratio = distribution(ratio_);
        if (!ratio_.empty())
            m.unfair_jobs = static_cast<double>(unfair_) / static_cast<double>(ratio_.size());
        m.ettr = ratio(ettr_work_, ettr_wall_);
        m.jain_users = jain_of(users_);
        m.jain_queues = jain_of(queues_);
        if (started_ > 0)
            m.preemptions_per_job =
                static_cast<double>(summary_.preemptions) / static_cast<double>(started_);
        if (failures_ > 0) m.job_mttf_h = run_ms_ / kHourMs / static_cast<double>(failures_);
        whole_cluster(m);
        over_time(m);
        out_.wait_s = cdf_of(wait_);
        out_.jct_s = cdf_of(jct_);
        out_.finish_time_ratio = cdf_of(ratio_);
        out_.queues = finished(std::move(queues_), collector_.names());
        out_.users = finished(std::move(users_), collector_.names());
        return std::move(out_);
    }

private:
    void job_of(const JobRecord& job) {
        const double finish = finish_ratio(job);
        add(queues_[job.queue], job, finish);
        add(users_[job.user], job, finish);
        last_submit_ = std::max(last_submit_, job.submit);
        failures_ += job.failures;
        run_ms_ += static_cast<double>(job.run_ms);
        offered_ += static_cast<double>(job.work_ms) * job.devices;
        if (job.wait_ms >= 0) {
            ++started_;
            wait_.push_back(seconds(job.wait_ms));
        }
        if (job.jct_ms < 0) return;
        jct_.push_back(seconds(job.jct_ms));
        slowdown_.push_back(
            std::max(1.0, static_cast<double>(job.jct_ms) /
                              std::max(static_cast<double>(job.work_ms), kSlowdownFloorMs)));
        if (finish > 0) {
            ratio_.push_back(finish);
            unfair_ += finish > 1 ? 1 : 0;
        }
        if (job.state == model::JobState::Succeeded && job.wait_ms >= 0) {
            const double weight = std::max(job.devices, 1);
            ettr_work_ += weight * static_cast<double>(job.work_ms);
            ettr_wall_ += weight * static_cast<double>(job.jct_ms - job.wait_ms);
        }
    }

    /// Against the same job on a part of the cluster as large as that of each who was there.
    /// 0: it has none (no end, no work, no device).
    double finish_ratio(const JobRecord& job) const {
        if (job.jct_ms < 0 || job.work_ms <= 0 || job.devices <= 0 || cluster_ <= 0) return 0;
        const double others = contention_.mean(job.submit.ms, job.submit.ms + job.jct_ms);
        const double squeezed = std::max(1.0, job.devices * others / cluster_);
        return static_cast<double>(job.jct_ms) / (static_cast<double>(job.work_ms) * squeezed);
    }

    void whole_cluster(Metrics& m) const {
        const auto held = static_cast<double>(summary_.held);
        const auto useful = static_cast<double>(summary_.useful);
        m.allocation_utilisation = ratio(held, devices_).value_or(0);
        m.effective_utilisation = ratio(useful, devices_).value_or(0);
        m.goodput_ratio = ratio(useful, held);
        m.lost_ratio = ratio(static_cast<double>(summary_.lost), held);
        const double arrivals = static_cast<double>((last_submit_ - summary_.first_submit).ms);
        if (arrivals >= kArrivalsLeastMs) m.offered_load = ratio(offered_, cluster_ * arrivals);
        m.makespan_s =
            seconds(std::max<std::int64_t>(0, (summary_.last_end - summary_.first_submit).ms));
        const double failures = static_cast<double>(summary_.node_failures);
        const double window = static_cast<double>((summary_.ended - summary_.first_submit).ms);
        if (failures > 0) {
            m.node_mtbf_days = static_cast<double>(summary_.node_days_up_milli) / 1000 / failures;
            m.cluster_mtbf_h = window / kHourMs / failures;
        }
        m.energy_kwh = static_cast<double>(summary_.energy_mj) / 3.6e9;
        m.kwh_per_useful_device_h = ratio(m.energy_kwh, useful / kHourMs);
    }

    void over_time(Metrics& m) const {
        double held = 0, useful = 0, total = 0, scattered = 0, free = 0;
        for (const Point& point : collector_.points()) {
            const auto weight = static_cast<double>(point.weight);
            scattered += weight * point.scattered;
            free += weight * std::max(0.0, point.up - point.held);
            if (point.at > last_submit_) continue;
            held += weight * point.held;
            useful += weight * point.useful;
            total += weight * point.total;
        }
        if (collector_.knows_scattered()) m.fragmentation = ratio(scattered, free);
        if ((last_submit_ - summary_.first_submit).ms < static_cast<std::int64_t>(kArrivalsLeastMs))
            return;
        m.allocation_utilisation_loaded = ratio(held, total);
        m.effective_utilisation_loaded = ratio(useful, total);
    }

    const Collector& collector_;
    const study::Summary& summary_;
    Contention contention_;
    double devices_ = 0;  // Device-milliseconds in all.
    double cluster_ = 0;  // Devices.
    RunMetrics out_;
    Groups queues_, users_;
    std::vector<double> wait_, jct_, slowdown_, ratio_;
    double ettr_work_ = 0, ettr_wall_ = 0, run_ms_ = 0, offered_ = 0;
    std::int64_t started_ = 0, failures_ = 0, unfair_ = 0;
    Time last_submit_;
};

}  // namespace

Distribution distribution(std::vector<double>& values) {
    Distribution out;
    if (values.empty()) return out;
    std::ranges::sort(values);
    out.count = static_cast<std::int64_t>(values.size());
    double sum = 0;
    for (const double value : values) sum += value;
    out.avg = sum / static_cast<double>(values.size());
    const auto at = [&](std::size_t percent) {
        return values[std::min(values.size() * percent / 100, values.size() - 1)];
    };
    out.p50 = at(50), out.p90 = at(90), out.p99 = at(99), out.max = values.back();
    return out;
}

std::optional<double> jain(std::span<const double> values) {
    double sum = 0, squares = 0;
    for (const double value : values) {
        sum += value;
        squares += value * value;
    }
    if (squares <= 0) return std::nullopt;
    return sum * sum / (static_cast<double>(values.size()) * squares);
}

RunMetrics measure(const Collector& collector, const study::Summary& summary) {
    return Measure(collector, summary).result();
}

const std::vector<MetricRow>& metric_rows() {
    using M = const Metrics&;
    using Maybe = std::optional<double>;
    static constexpr auto of = [](const Distribution& d, double value) -> Maybe {
        if (d.count == 0) return std::nullopt;
        return value;
    };
    static const std::vector<MetricRow> kRows = {
        {"offered_load", "offered load", "%", [](M m) { return m.offered_load; }, false},
        {"allocation_utilisation", "allocated", "%",
         [](M m) -> Maybe { return m.allocation_utilisation; }, true},
        {"effective_utilisation", "effective utilisation", "%",
         [](M m) -> Maybe { return m.effective_utilisation; }, true},
        {"allocation_utilisation_loaded", "allocated, while jobs arrive", "%",
         [](M m) { return m.allocation_utilisation_loaded; }, true},
        {"effective_utilisation_loaded", "effective, while jobs arrive", "%",
         [](M m) { return m.effective_utilisation_loaded; }, true},
        {"wait_avg_s", "wait, mean", "s", [](M m) { return of(m.wait_s, m.wait_s.avg); }, false},
        {"wait_p50_s", "wait, p50", "s", [](M m) { return of(m.wait_s, m.wait_s.p50); }, false},
        {"wait_p90_s", "wait, p90", "s", [](M m) { return of(m.wait_s, m.wait_s.p90); }, false},
        {"wait_p99_s", "wait, p99", "s", [](M m) { return of(m.wait_s, m.wait_s.p99); }, false},
        {"jct_avg_s", "job completion time, mean", "s",
         [](M m) { return of(m.jct_s, m.jct_s.avg); }, false},
        {"jct_p50_s", "job completion time, p50", "s", [](M m) { return of(m.jct_s, m.jct_s.p50); },
         false},
        {"jct_p99_s", "job completion time, p99", "s", [](M m) { return of(m.jct_s, m.jct_s.p99); },
         false},
        {"makespan_s", "makespan", "s", [](M m) -> Maybe { return m.makespan_s; }, false},
        {"bounded_slowdown_avg", "bounded slowdown, mean", "",
         [](M m) { return of(m.slowdown, m.slowdown.avg); }, false},
        {"bounded_slowdown_p99", "bounded slowdown, p99", "",
         [](M m) { return of(m.slowdown, m.slowdown.p99); }, false},
        {"ettr", "effective training time", "%", [](M m) { return m.ettr; }, true},
        {"goodput_ratio", "goodput of what was held", "%", [](M m) { return m.goodput_ratio; },
         true},
        {"lost_ratio", "lost of what was held", "%", [](M m) { return m.lost_ratio; }, false},
        {"fragmentation", "free devices on broken nodes", "%", [](M m) { return m.fragmentation; },
         false},
        {"finish_time_ratio_p50", "finish-time ratio, p50", "",
         [](M m) { return of(m.finish_time_ratio, m.finish_time_ratio.p50); }, false},
        {"finish_time_ratio_max", "finish-time ratio, worst", "",
         [](M m) { return of(m.finish_time_ratio, m.finish_time_ratio.max); }, false},
        {"unfair_jobs", "jobs later than fair", "%", [](M m) { return m.unfair_jobs; }, false},
        {"jain_users", "Jain's index of users", "", [](M m) { return m.jain_users; }, true},
        {"jain_queues", "Jain's index of queues", "", [](M m) { return m.jain_queues; }, true},
        {"preemptions_per_job", "preemptions a job", "",
         [](M m) -> Maybe { return m.preemptions_per_job; }, false},
        {"node_mtbf_days", "MTBF of a node", "d", [](M m) { return m.node_mtbf_days; }, true},
        {"cluster_mtbf_h", "MTBF of the cluster", "h", [](M m) { return m.cluster_mtbf_h; }, true},
        {"job_mttf_h", "MTTF of running jobs", "h", [](M m) { return m.job_mttf_h; }, true},
        {"energy_kwh", "energy", "kWh", [](M m) -> Maybe { return m.energy_kwh; }, false},
        {"kwh_per_useful_device_h", "energy a useful device-hour", "kWh",
         [](M m) { return m.kwh_per_useful_device_h; }, false},
    };
    return kRows;
}

}  // namespace muster::simulator::report
