// Metrics by hand, and what the reports say of them.
#include "simulator/report/report.h"

#include <gtest/gtest.h>

namespace muster::simulator::report {
namespace {

using study::JobOutcome;
constexpr std::int64_t kHour = 3'600'000;

JobOutcome outcome(const char* user, std::int64_t submit, std::int64_t wait, std::int64_t run,
                   std::int64_t devices, std::int64_t work) {
    JobOutcome job;
    job.user = user, job.queue = "q";
    job.submit = {submit};
    job.first_start = Time{submit + wait};
    job.end = Time{submit + wait + run};
    job.state = model::JobState::Succeeded;
    job.work_ms = work;
    job.devices = devices, job.nodes = 1;
    job.held = run * devices, job.useful = work * devices;
    job.running_ms = run;
    return job;
}
study::Sample sample(std::int64_t at, std::int64_t held, std::int64_t empty, std::int64_t pending) {
    static const study::QueueSample kQueue{"q", 3, 1, 2500};
    study::Sample s;
    s.at = {at};
    s.devices_total = s.devices_up = 16;
    s.devices_held = s.devices_useful = held;
    s.nodes_up = 2, s.nodes_empty = empty, s.pending = pending;
    s.draw_mw = 2'000'000;
    s.queues = {&kQueue, 1};
    return s;
}

/// Two nodes of 8; a and b each 8 devices for an hour, b an hour after a on the same node.
struct World {
    Collector collector{8};
    study::Summary summary;
    World() {
        collector.ended(outcome("a", 0, 0, kHour, 8, kHour));
        JobOutcome b = outcome("b", 0, kHour, 2 * kHour, 8, kHour);
        b.lost = 8 * kHour / 2;
        b.failures = 2, b.preemptions = 1;
        collector.ended(b);
        collector.sample(sample(0, 12, 0, 1));
        collector.sample(sample(kHour, 0, 2, 0));
        summary.first_submit = {0};
        summary.ended = summary.last_end = {3 * kHour};
        summary.devices_total = summary.devices_up = 16 * 3 * kHour;
        summary.held = 24 * kHour, summary.useful = 16 * kHour, summary.lost = 4 * kHour;
        summary.node_failures = 2, summary.node_days_up_milli = 250;
        summary.preemptions = 1;
        summary.energy_mj = 7'200'000'000;
        summary.submitted = summary.succeeded = 2;
    }
};

TEST(Metrics, by_hand) {
    const World world;
    const RunMetrics run = measure(world.collector, world.summary);
    const Metrics& m = run.metrics;
    EXPECT_DOUBLE_EQ(m.allocation_utilisation, 0.5);
    EXPECT_DOUBLE_EQ(m.effective_utilisation, 1.0 / 3);
    EXPECT_FALSE(m.allocation_utilisation_loaded || m.offered_load) << "both came at once";
    EXPECT_DOUBLE_EQ(*m.goodput_ratio, 2.0 / 3);
    EXPECT_DOUBLE_EQ(*m.lost_ratio, 1.0 / 6);
    EXPECT_DOUBLE_EQ(m.wait_s.avg, 1800);
    EXPECT_DOUBLE_EQ(m.wait_s.p50, 3600) << "the value at index 1 of 2";
    EXPECT_DOUBLE_EQ(m.jct_s.avg, 2 * 3600);
    EXPECT_DOUBLE_EQ(m.makespan_s, 3 * 3600);
    EXPECT_DOUBLE_EQ(m.slowdown.avg, 2) << "1 and 3";
    EXPECT_DOUBLE_EQ(*m.ettr, 2.0 / 3) << "two hours of work in three after the starts";
    EXPECT_DOUBLE_EQ(*m.fragmentation, 4.0 / 20) << "4 of 4 + 16 free devices";
    // a met two jobs, so half the cluster, 8 devices, was its share: as fast as alone. b met 4/3.
    EXPECT_DOUBLE_EQ(m.finish_time_ratio.max, 3);
    EXPECT_DOUBLE_EQ(m.finish_time_ratio.avg, 2);
    EXPECT_DOUBLE_EQ(*m.unfair_jobs, 0.5);
    EXPECT_DOUBLE_EQ(*m.jain_users, (4.0 / 3) * (4.0 / 3) / (2 * (1 + 1.0 / 9)));
    EXPECT_DOUBLE_EQ(*m.jain_queues, 1);
    EXPECT_DOUBLE_EQ(m.preemptions_per_job, 0.5);
    EXPECT_DOUBLE_EQ(*m.node_mtbf_days, 0.125);
    EXPECT_DOUBLE_EQ(*m.cluster_mtbf_h, 1.5);
    EXPECT_DOUBLE_EQ(*m.job_mttf_h, 1.5) << "three hours of running, two failures";
    EXPECT_DOUBLE_EQ(m.energy_kwh, 2);
    EXPECT_DOUBLE_EQ(*m.kwh_per_useful_device_h, 2.0 / 16);
    ASSERT_EQ(run.users.size(), 2u);
    EXPECT_EQ(run.users[0].name, "b") << "most device-hours first";
    EXPECT_DOUBLE_EQ(run.users[0].held_device_h, 16);
}

TEST(Metrics, while_jobs_arrive) {
    World world;
    world.collector.ended(outcome("a", kHour / 2, 0, 0, 1, 0));
    const Metrics m = measure(world.collector, world.summary).metrics;
    EXPECT_DOUBLE_EQ(*m.allocation_utilisation_loaded, 0.75) << "only the sample at 0";
    EXPECT_DOUBLE_EQ(*m.offered_load, 2) << "16 device-hours in half an hour, on 16 devices";
}

TEST(Metrics, of_nothing_are_absent_and_not_zero) {
    const Collector collector(0);
    const RunMetrics run = measure(collector, {});
    EXPECT_FALSE(run.metrics.ettr || run.metrics.goodput_ratio || run.metrics.jain_users ||
                 run.metrics.node_mtbf_days || run.metrics.fragmentation ||
                 run.metrics.kwh_per_useful_device_h);
    EXPECT_EQ(run.metrics.wait_s.count, 0);
    EXPECT_TRUE(run.wait_s.values.empty());
}

TEST(Metrics, a_million_zero_length_jobs) {
    Collector collector(8);
    for (int i = 0; i < 1'000'000; ++i) collector.ended(outcome("u", i, 0, 0, 1, 0));
    study::Summary summary;
    summary.ended = {1'000'000};
    const RunMetrics run = measure(collector, summary);
    EXPECT_EQ(run.metrics.jct_s.count, 1'000'000);
    EXPECT_DOUBLE_EQ(run.metrics.jct_s.max, 0);
    EXPECT_DOUBLE_EQ(run.metrics.slowdown.avg, 1);
    EXPECT_EQ(run.jct_s.values.size(), 201u);
}

TEST(Collector, a_series_stays_short_and_keeps_its_mean) {
    Collector collector(8);
    const int samples = 10'000;
    for (int i = 0; i < samples; ++i) collector.sample(sample(i, i % 2 == 0 ? 0 : 10, 0, i));
    EXPECT_LE(collector.points().size(), Collector::kPointsMax);
    EXPECT_GE(collector.points().size(), Collector::kPointsMax / 2 - 1);
    double held = 0, pending = 0, weight = 0;
    for (const Point& point : collector.points()) {
        held += point.held * static_cast<double>(point.weight);
        pending += point.pending * static_cast<double>(point.weight);
        weight += static_cast<double>(point.weight);
        EXPECT_DOUBLE_EQ(point.queue_devices.at(0), 2.5);
    }
    EXPECT_EQ(weight, samples);
    EXPECT_NEAR(held / weight, 5, 1e-9);
    EXPECT_NEAR(pending / weight, (samples - 1) / 2.0, 1e-6);
}

TEST(Collector, queues_beyond_the_bound_are_one) {
    Collector collector(8);
    std::vector<std::string> names;
    for (int i = 0; i < 40; ++i) names.push_back("q" + std::to_string(i));
    std::vector<study::QueueSample> queues;
    for (const std::string& name : names) queues.push_back({name, 1, 0, 1000});
    study::Sample s = sample(0, 0, 0, 40);
    s.queues = queues;
    collector.sample(s);
    ASSERT_EQ(collector.queues().size(), Collector::kQueuesMax);
    EXPECT_EQ(collector.queues().back(), "(others)");
    double pending = 0;
    for (const double value : collector.points()[0].queue_pending) pending += value;
    EXPECT_DOUBLE_EQ(pending, 40);
}

TEST(Report, compares_seeds_with_their_spread) {
    const World world;
    std::vector<RunReport> runs;
    for (const std::uint64_t seed : {1u, 2u})
        runs.push_back(make_report({.policy = "muster", .seed = seed, .trace = "t</script>"},
                                   world.summary, world.collector));
    runs[1].measured.metrics.makespan_s = 4 * 3600;
    const auto compared = compare(runs);
    ASSERT_EQ(compared.size(), 1u);
    const auto row = static_cast<std::size_t>(
        std::ranges::find(metric_rows(), "makespan_s", &MetricRow::name) - metric_rows().begin());
    ASSERT_TRUE(compared[0].metrics[row]);
    EXPECT_DOUBLE_EQ(compared[0].metrics[row]->mean, 3.5 * 3600);
    EXPECT_DOUBLE_EQ(compared[0].metrics[row]->most, 4 * 3600);
    EXPECT_EQ(to_json(runs), to_json(runs));
    runs[1].summary.complete = false;
    EXPECT_EQ(compare(runs)[0].metrics[row]->runs, 1) << "a run that was cut short is left out";
    runs[0].summary.complete = false;
    EXPECT_EQ(compare(runs)[0].metrics[row]->runs, 2) << "unless all were";
}

TEST(Report, page_needs_nothing_else_and_no_text_leaves_its_script) {
    const World world;
    const std::vector<RunReport> runs = {make_report(
        {.policy = "muster", .trace = "</script><img src=x>"}, world.summary, world.collector)};
    const std::string page = to_html(runs);
    EXPECT_EQ(page.find("</script><img"), std::string::npos);
    EXPECT_NE(page.find("\\u003c/script>\\u003cimg"), std::string::npos) << page.substr(0, 300);
    for (const char* outside : {" src=\"", "@import", "fetch(", "<link", "url("})
        EXPECT_EQ(page.find(outside), std::string::npos) << outside;
    EXPECT_EQ(page.find("https://"), std::string::npos);
    EXPECT_TRUE(page.ends_with("</html>\n"));
}

}  // namespace
}  // namespace muster::simulator::report
