// The metrics of a run. docs/metrics.md defines each; the names there are the names here.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simulator/report/collector.h"

namespace muster::simulator::report {

/// Of a sorted sample: quantile q is the value at index ⌊q·n⌋, at most the last.
struct Distribution {
    std::int64_t count = 0;
    double avg = 0, p50 = 0, p90 = 0, p99 = 0, max = 0;
};
Distribution distribution(std::vector<double>& values);  // Sorts them.

/// A queue or a user.
struct GroupMetrics {
    std::string name;
    std::int64_t jobs = 0, ended = 0, preemptions = 0;
    Distribution wait_s, jct_s;
    double held_device_h = 0, useful_device_h = 0, lost_device_h = 0;
    double finish_time_ratio = 0;  // Mean.
};

struct Metrics {
    double allocation_utilisation = 0, effective_utilisation = 0;
    /// The same between the first and the last arrival, without the tail in which it drains.
    std::optional<double> allocation_utilisation_loaded, effective_utilisation_loaded;
    std::optional<double> offered_load;
    Distribution wait_s, jct_s, slowdown, finish_time_ratio;
    double makespan_s = 0;
    std::optional<double> ettr, goodput_ratio, lost_ratio;
    std::optional<double> fragmentation;
    std::optional<double> jain_users, jain_queues, unfair_jobs;
    double preemptions_per_job = 0;
    std::optional<double> node_mtbf_days, cluster_mtbf_h, job_mttf_h;
    double energy_kwh = 0;
    std::optional<double> kwh_per_useful_device_h;
};

/// Values at equal steps of rank, from the least to the greatest, at most `points`.
struct Cdf {
    std::vector<double> values, parts;
};

struct RunMetrics {
    Metrics metrics;
    std::vector<GroupMetrics> queues, users;  // By device-hours held, most first; at most 50.
    Cdf wait_s, jct_s, finish_time_ratio;
};
RunMetrics measure(const Collector& collector, const study::Summary& summary);

/// (Σx)² / (n·Σx²): 1 when all are equal. Empty without values above 0.
std::optional<double> jain(std::span<const double> values);

/// One row of the table of metrics: its name in JSON, its head for people, its unit.
struct MetricRow {
    std::string_view name, head, unit;
    std::optional<double> (*get)(const Metrics&);
    bool more_is_better;
};
/// In the order in which they are shown.
const std::vector<MetricRow>& metric_rows();

}  // namespace muster::simulator::report
