#include "simulator/report/report.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/json_writer.h"
#include "base/units.h"

namespace muster::simulator::report {
namespace {

/// Six digits that matter, however large: short, and the same on every machine.
void write_number(JsonWriter& json, double value) {
    char text[64];
    const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 6);
    const std::string_view digits(text, static_cast<std::size_t>(end.ptr - text));
    if (digits.find_first_not_of("0123456789+-.e") != std::string_view::npos)
        json.null();
    else
        json.raw(digits);
}
void write_number(JsonWriter& json, std::optional<double> value) {
    if (value)
        write_number(json, *value);
    else
        json.null();
}
void write_numbers(JsonWriter& json, std::string_view name, std::span<const double> values) {
    json.key(name).begin_array();
    for (const double value : values) write_number(json, value);
    json.end_array();
}

void write_distribution(JsonWriter& json, std::string_view name, const Distribution& d) {
    json.key(name).begin_object().field("count", d.count);
    const std::pair<const char*, double> parts[] = {
        {"avg", d.avg}, {"p50", d.p50}, {"p90", d.p90}, {"p99", d.p99}, {"max", d.max}};
    for (const auto& [part, value] : parts) write_number(json.key(part), value);
    json.end_object();
}

void write_groups(JsonWriter& json, std::string_view name, std::span<const GroupMetrics> groups) {
    json.key(name).begin_array();
    for (const GroupMetrics& group : groups) {
        json.begin_object().field("name", group.name).field("jobs", group.jobs);
        json.field("ended", group.ended).field("preemptions", group.preemptions);
        write_distribution(json, "wait_s", group.wait_s);
        write_distribution(json, "jct_s", group.jct_s);
        write_number(json.key("held_device_h"), group.held_device_h);
        write_number(json.key("useful_device_h"), group.useful_device_h);
        write_number(json.key("lost_device_h"), group.lost_device_h);
        write_number(json.key("finish_time_ratio"), group.finish_time_ratio);
        json.end_object();
    }
    json.end_array();
}

void write_cdf(JsonWriter& json, std::string_view name, const Cdf& cdf) {
    json.key(name).begin_object();
    write_numbers(json, "values", cdf.values);
    write_numbers(json, "parts", cdf.parts);
    json.end_object();
}

/// Columns, each an array as long as "at_s" (seconds since the first submit).
void write_series(JsonWriter& json, const RunReport& run) {
    json.key("series").begin_object();
    const auto column = [&](std::string_view name, auto get) {
        json.key(name).begin_array();
        for (const Point& point : run.points) write_number(json, double{get(point)});
        json.end_array();
    };
    column("at_s", [&](const Point& p) {
        return static_cast<double>((p.at - run.summary.first_submit).ms) / 1000;
    });
    column("total", [](const Point& p) { return p.total; });
    column("up", [](const Point& p) { return p.up; });
    column("held", [](const Point& p) { return p.held; });
    column("useful", [](const Point& p) { return p.useful; });
    column("pending", [](const Point& p) { return p.pending; });
    column("running", [](const Point& p) { return p.running; });
    column("draw_kw", [](const Point& p) { return p.draw_mw / 1e6; });
    json.key("queues").begin_array();
    for (std::size_t i = 0; i < run.queues.size(); ++i) {
        json.begin_object().field("name", run.queues[i]);
        const auto part = [&](std::string_view name, std::vector<double> Point::*values) {
            column(name, [&, values](const Point& p) {
                return i < (p.*values).size() ? (p.*values)[i] : 0.0;
            });
        };
        part("pending", &Point::queue_pending);
        part("devices", &Point::queue_devices);
        json.end_object();
    }
    json.end_array().end_object();
}

void write_facts(JsonWriter& json, const RunFacts& facts) {
    json.field("policy", facts.policy).field("seed", facts.seed);
    json.key("trace").begin_object().field("file", facts.trace).field("format", facts.format);
    json.field("jobs", facts.jobs).field("bad_rows", facts.bad_rows);
    json.key("left_out").begin_object();
    for (const auto& [what, count] : facts.left_out) json.field(what, count);
    json.end_object().end_object();
    json.field("cluster", facts.cluster);
    json.key("settings").begin_object();
    for (const auto& [name, value] : facts.settings) json.field(name, value);
    json.end_object();
}

void write_summary(JsonWriter& json, const study::Summary& s) {
    char digest[17];
    const auto end = std::to_chars(digest, digest + 16, s.digest, 16);
    const std::string hex(digest, end.ptr);
    json.key("summary").begin_object();
    json.field("complete", s.complete).field("digest", std::string(16 - hex.size(), '0') + hex);
    json.field("events", s.events).field("plans", s.plans);
    json.field("submitted", s.submitted).field("refused", s.refused);
    json.field("succeeded", s.succeeded).field("failed", s.failed);
    json.field("cancelled", s.cancelled).field("unfinished", s.unfinished);
    json.field("live_max", s.live_max);
    json.field("first_submit", format_time(s.first_submit));
    json.field("ended", format_time(s.ended));
    json.field("node_failures", s.node_failures).field("leaf_failures", s.leaf_failures);
    json.field("interruptions", s.interruptions).field("preemptions", s.preemptions);
    const std::pair<const char*, std::int64_t> hours[] = {{"devices_total_h", s.devices_total},
                                                          {"devices_up_h", s.devices_up},
                                                          {"held_h", s.held},
                                                          {"useful_h", s.useful},
                                                          {"lost_h", s.lost}};
    for (const auto& [name, ms] : hours)
        write_number(json.key(name), static_cast<double>(ms) / 3'600'000);
    json.end_object();
}

void write_run(JsonWriter& json, const RunReport& run) {
    json.begin_object().field("name", run.name());
    write_facts(json, run.facts);
    write_summary(json, run.summary);
    json.key("metrics").begin_object();
    for (const MetricRow& row : metric_rows())
        write_number(json.key(row.name), row.get(run.measured.metrics));
    json.end_object();
    json.key("refusals").begin_object();
    for (const auto& [reason, count] : run.refusals) json.field(reason, count);
    json.end_object();
    if (!run.standing.empty()) {
        json.key("standing").begin_array();
        for (const StandingJob& job : run.standing) {
            json.begin_object().field("job", job.name).field("queue", job.queue);
            for (const auto& [name, ms] :
                 {std::pair("start_s", job.start_ms), std::pair("end_s", job.end_ms)}) {
                std::optional<double> seconds;
                if (ms) seconds = static_cast<double>(*ms) / 1000;
                write_number(json.key(name), seconds);
            }
            json.end_object();
        }
        json.end_array();
    }
    write_groups(json, "queues", run.measured.queues);
    write_groups(json, "users", run.measured.users);
    json.key("cdf").begin_object();
    write_cdf(json, "wait_s", run.measured.wait_s);
    write_cdf(json, "jct_s", run.measured.jct_s);
    write_cdf(json, "finish_time_ratio", run.measured.finish_time_ratio);
    json.end_object();
    write_series(json, run);
    json.end_object();
}

void write_comparison(JsonWriter& json, std::span<const RunReport> runs) {
    json.key("comparison").begin_array();
    for (const ComparedPolicy& policy : compare(runs)) {
        json.begin_object().field("policy", policy.policy).key("metrics").begin_object();
        for (std::size_t i = 0; i < metric_rows().size(); ++i) {
            json.key(metric_rows()[i].name);
            const auto& spread = policy.metrics[i];
            if (!spread) {
                json.null();
                continue;
            }
            json.begin_object().field("runs", spread->runs);
            write_number(json.key("mean"), spread->mean);
            write_number(json.key("least"), spread->least);
            write_number(json.key("most"), spread->most);
            json.end_object();
        }
        json.end_object().end_object();
    }
    json.end_array();
}

/// What the page needs to name and format a metric.
void write_rows(JsonWriter& json) {
    json.key("rows").begin_array();
    for (const MetricRow& row : metric_rows()) {
        json.begin_object().field("name", row.name).field("head", row.head);
        json.field("unit", row.unit).field("more_is_better", row.more_is_better);
        json.end_object();
    }
    json.end_array();
}

std::string decimals(double value, int digits) {
    char text[64];
    const auto end =
        std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, digits);
    return {text, end.ptr};
}

constexpr std::string_view kPageHead =
#include "simulator/report/page_head.inc"
    ;
constexpr std::string_view kPageTail =
#include "simulator/report/page_tail.inc"
    ;

}  // namespace

std::string RunReport::name() const {
    return facts.policy + ", seed " + std::to_string(facts.seed);
}

RunReport make_report(RunFacts facts, const study::Summary& summary, const Collector& collector) {
    RunReport report;
    report.facts = std::move(facts);
    report.summary = summary;
    report.measured = measure(collector, summary);
    report.points = collector.points();
    report.queues = collector.queues();
    report.refusals = collector.refusals();
    return report;
}

std::vector<ComparedPolicy> compare(std::span<const RunReport> runs) {
    std::vector<ComparedPolicy> out;
    std::set<std::string> whole;  // Policies with a run that was not cut short.
    for (const RunReport& run : runs)
        if (run.summary.complete) whole.insert(run.facts.policy);
    for (const RunReport& run : runs) {
        // Half a run beside whole ones would only look like chance.
        if (!run.summary.complete && whole.contains(run.facts.policy)) continue;
        auto at = std::ranges::find(out, run.facts.policy, &ComparedPolicy::policy);
        if (at == out.end()) {
            out.push_back({run.facts.policy, {}});
            out.back().metrics.resize(metric_rows().size());
            at = out.end() - 1;
        }
        for (std::size_t i = 0; i < metric_rows().size(); ++i) {
            const auto value = metric_rows()[i].get(run.measured.metrics);
            if (!value) continue;
            auto& spread = at->metrics[i];
            if (!spread) spread = Spread{0, 0, *value, *value};
            spread->mean += (*value - spread->mean) / static_cast<double>(++spread->runs);
            spread->least = std::min(spread->least, *value);
            spread->most = std::max(spread->most, *value);
        }
    }
    return out;
}

std::string to_json(std::span<const RunReport> runs) {
    JsonWriter json;
    json.begin_object().field("muster_simulation", 1);
    write_rows(json);
    json.key("runs").begin_array();
    for (const RunReport& run : runs) write_run(json, run);
    json.end_array();
    write_comparison(json, runs);
    json.end_object();
    return std::move(json).text() + "\n";
}

std::string to_html(std::span<const RunReport> runs) {
    std::string page(kPageHead);
    // No text of the data may end the script that holds it.
    for (const char c : to_json(runs)) {
        if (c == '<')
            page += "\\u003c";
        else
            page += c;
    }
    return page.append(kPageTail);
}

std::string metric_text(const MetricRow& row, std::optional<double> value) {
    if (!value) return "-";
    if (row.unit == "%") return decimals(*value * 100, 2) + " %";
    if (row.unit == "s") {
        if (*value < 100) return decimals(*value, 1) + "s";
        return format_age({static_cast<std::int64_t>(*value * 1000)});
    }
    const int digits = *value < 10 ? 3 : *value < 1000 ? 1 : 0;
    return decimals(*value, digits) + (row.unit.empty() ? "" : " ") + std::string(row.unit);
}

}  // namespace muster::simulator::report
