#include "simulator/report/collector.h"

#include <algorithm>

namespace muster::simulator::report {
namespace {

constexpr std::size_t kReasonsMax = 20;
constexpr std::string_view kOthers = "(others)";

/// `sum` holds the mean of `weight` values; afterwards that of one more stretch too.
void fold(double& sum, double weight, double more, double more_weight) {
    sum = (sum * weight + more * more_weight) / (weight + more_weight);
}
void fold(std::vector<double>& sums, double weight, const std::vector<double>& more,
          double more_weight) {
    sums.resize(std::max(sums.size(), more.size()));
    for (std::size_t i = 0; i < sums.size(); ++i)
        fold(sums[i], weight, i < more.size() ? more[i] : 0, more_weight);
}
void fold(Point& into, const Point& more) {
    const auto a = static_cast<double>(into.weight), b = static_cast<double>(more.weight);
    for (double Point::*field :
         {&Point::total, &Point::up, &Point::held, &Point::useful, &Point::pending, &Point::running,
          &Point::draw_mw, &Point::scattered})
        fold(into.*field, a, more.*field, b);
    fold(into.queue_pending, a, more.queue_pending, b);
    fold(into.queue_devices, a, more.queue_devices, b);
    into.weight += more.weight;
}

}  // namespace

std::uint32_t Collector::index_of(std::string_view name) {
    const auto found = index_.find(name);
    if (found != index_.end()) return found->second;
    const auto index = static_cast<std::uint32_t>(names_.size());
    names_.emplace_back(name);
    index_.emplace(std::string(name), index);
    return index;
}

std::size_t Collector::queue_index(std::string_view name) {
    for (std::size_t i = 0; i < queues_.size(); ++i)
        if (queues_[i] == name) return i;
    if (queues_.size() < kQueuesMax) queues_.emplace_back(name);
    if (queues_.back() != name) queues_.back() = kOthers;
    return queues_.size() - 1;
}

void Collector::ended(const study::JobOutcome& job) {
    JobRecord record;
    record.submit = job.submit;
    if (job.first_start) record.wait_ms = (*job.first_start - job.submit).ms;
    if (job.end) record.jct_ms = (*job.end - job.submit).ms;
    record.work_ms = job.work_ms;
    record.run_ms = job.running_ms;
    record.held = job.held, record.useful = job.useful, record.lost = job.lost;
    record.devices = static_cast<std::int32_t>(job.devices);
    record.nodes = static_cast<std::int32_t>(job.nodes);
    record.user = index_of(job.user), record.queue = index_of(job.queue);
    record.preemptions = static_cast<std::int32_t>(job.preemptions);
    record.failures = static_cast<std::int32_t>(job.failures);
    record.state = job.state;
    jobs_.push_back(record);
}

void Collector::refused(const study::Refusal& job) {
    const auto found = refusals_.find(job.reason);
    if (found != refusals_.end())
        ++found->second;
    else if (refusals_.size() < kReasonsMax)
        refusals_.emplace(std::string(job.reason), 1);
}

void Collector::sample(const study::Sample& sample) {
    Point point;
    point.at = sample.at;
    point.weight = 1;
    point.total = static_cast<double>(sample.devices_total);
    point.up = static_cast<double>(sample.devices_up);
    point.held = static_cast<double>(sample.devices_held);
    point.useful = static_cast<double>(sample.devices_useful);
    point.pending = static_cast<double>(sample.pending);
    point.running = static_cast<double>(sample.running);
    point.draw_mw = static_cast<double>(sample.draw_mw);
    const std::int64_t free = sample.devices_up - sample.devices_held;
    point.scattered = static_cast<double>(
        std::max<std::int64_t>(0, free - sample.nodes_empty * devices_per_node_));
    for (const study::QueueSample& queue : sample.queues) {
        const std::size_t at = queue_index(queue.name);
        point.queue_pending.resize(std::max(point.queue_pending.size(), at + 1));
        point.queue_devices.resize(point.queue_pending.size());
        point.queue_pending[at] += static_cast<double>(queue.pending);
        point.queue_devices[at] += static_cast<double>(queue.devices) / 1000;
    }
    if (!points_.empty() && points_.back().weight < merged_) return fold(points_.back(), point);
    points_.push_back(std::move(point));
    if (points_.size() > kPointsMax) merge_pairs();
}

void Collector::merge_pairs() {
    std::vector<Point> merged;
    for (std::size_t i = 0; i < points_.size(); i += 2) {
        merged.push_back(std::move(points_[i]));
        if (i + 1 < points_.size()) fold(merged.back(), points_[i + 1]);
    }
    points_ = std::move(merged);
    merged_ *= 2;
}

}  // namespace muster::simulator::report
