// Gathers what a study yields, small: one record a job, and a series of bounded length.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/study/study.h"

namespace muster::simulator::report {

/// What a metric needs of a job.
struct JobRecord {
    Time submit;
    std::int64_t wait_ms = -1;  // To its first start; -1: it never started.
    std::int64_t jct_ms = -1;   // To its end; -1: it was live when the study ended.
    std::int64_t work_ms = 0;
    std::int64_t run_ms = 0;                      // Wall time of all its attempts.
    std::int64_t held = 0, useful = 0, lost = 0;  // Device-milliseconds.
    std::int32_t devices = 0, nodes = 0;
    std::uint32_t user = 0, queue = 0;  // Indexes into Collector::names().
    std::int32_t preemptions = 0, failures = 0;
    model::JobState state = model::JobState::Pending;
};

/// The mean of one stretch of time, or of several that were merged.
struct Point {
    Time at;                  // Where it begins.
    std::int64_t weight = 0;  // Samples in it.
    double total = 0, up = 0, held = 0, useful = 0;
    double pending = 0, running = 0;
    double draw_mw = 0;
    double scattered = 0;  // Free devices on nodes that are not wholly free.
    std::vector<double> queue_pending, queue_devices;  // By Collector::queues(); may be shorter.
};

class Collector : public study::Sink {
public:
    static constexpr std::size_t kPointsMax = 480;
    static constexpr std::size_t kQueuesMax = 24;  // Of the series; the rest is one: "(others)".

    /// Of a cluster whose nodes all have so many devices; 0: they differ, and how scattered the
    /// free ones are is not known.
    explicit Collector(std::int64_t devices_per_node) : devices_per_node_(devices_per_node) {}

    void ended(const study::JobOutcome& job) override;
    void refused(const study::Refusal& job) override;
    void sample(const study::Sample& sample) override;

    const std::vector<JobRecord>& jobs() const { return jobs_; }
    const std::vector<Point>& points() const { return points_; }
    const std::vector<std::string>& names() const { return names_; }
    const std::vector<std::string>& queues() const { return queues_; }
    bool knows_scattered() const { return devices_per_node_ > 0; }
    /// Of jobs that the controller refused, how often each reason was given, at most 20 of them.
    const std::map<std::string, std::int64_t, std::less<>>& refusals() const { return refusals_; }

private:
    std::uint32_t index_of(std::string_view name);
    std::size_t queue_index(std::string_view name);
    void merge_pairs();

    std::int64_t devices_per_node_;
    std::vector<JobRecord> jobs_;
    std::vector<std::string> names_;
    std::map<std::string, std::uint32_t, std::less<>> index_;
    std::vector<std::string> queues_;
    std::vector<Point> points_;
    std::int64_t merged_ = 1;  // Samples in each point.
    std::map<std::string, std::int64_t, std::less<>> refusals_;
};

}  // namespace muster::simulator::report
