// What is told of one or more runs: one JSON document, one page that needs nothing else, and the
// rows of a table for a terminal.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "simulator/report/metrics.h"

namespace muster::simulator::report {

/// What was run, in words and numbers.
struct RunFacts {
    std::string policy;  // "muster", or the name of what stood in its place.
    std::uint64_t seed = 1;
    std::string trace, format;  // The file's name.
    std::int64_t jobs = 0, bad_rows = 0;
    std::map<std::string, std::int64_t> left_out;
    std::string cluster;                                        // "352 nodes, 2816 devices: v100".
    std::vector<std::pair<std::string, std::string>> settings;  // As they were given.
};

/// A job that was there when the study began; times since then.
struct StandingJob {
    std::string name, queue;
    std::optional<std::int64_t> start_ms, end_ms;
};

struct RunReport {
    RunFacts facts;
    study::Summary summary;
    RunMetrics measured;
    std::vector<Point> points;
    std::vector<std::string> queues;  // Of the points.
    std::map<std::string, std::int64_t, std::less<>> refusals;
    std::vector<StandingJob> standing;

    /// "muster, seed 1".
    std::string name() const;
};
RunReport make_report(RunFacts facts, const study::Summary& summary, const Collector& collector);

/// Runs of one policy with several seeds, of one metric.
struct Spread {
    std::int64_t runs = 0;
    double mean = 0, least = 0, most = 0;
};
struct ComparedPolicy {
    std::string policy;
    std::vector<std::optional<Spread>> metrics;  // By metric_rows().
};
/// In the order in which the policies first appear.
std::vector<ComparedPolicy> compare(std::span<const RunReport> runs);

/// Equal runs, equal bytes: nothing in it depends on the machine or the hour.
std::string to_json(std::span<const RunReport> runs);
/// One file: styles, scripts and data in it, nothing fetched; light and dark.
std::string to_html(std::span<const RunReport> runs);

/// 0.6312 as "63.12 %", 7265 s as "2h01m"; "-" for nothing.
std::string metric_text(const MetricRow& row, std::optional<double> value);

}  // namespace muster::simulator::report
