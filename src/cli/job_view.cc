#include "cli/job_view.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "cli/format.h"
#include "cli/terminal.h"
#include "cli/width.h"

namespace muster::cli {
namespace {

ProgressView progress_of(const Json& value) {
    ProgressView progress;
    if (!value.is_object()) return progress;
    progress.step = value["step"].integer(-1);
    progress.total = value["total"].integer();
    for (const auto& [name, metric] : value["metrics"].members())
        if (metric.is_number()) progress.metrics.emplace_back(name, metric.number());
    // What people look for first comes first.
    std::stable_sort(progress.metrics.begin(), progress.metrics.end(),
                     [](const auto& a, const auto& b) {
                         const auto order = [](const std::string& name) {
                             return name == "loss" ? 0 : name.ends_with("_per_s") ? 1 : 2;
                         };
                         return order(a.first) < order(b.first);
                     });
    return progress;
}

std::optional<std::int64_t> maybe(const Json& value) {
    return value.is_number() ? std::optional(value.integer()) : std::nullopt;
}

std::string array_words(const Json& array) {
    if (!array["count"].is_number()) return "";
    std::string out;
    for (const char* name : {"waiting", "live", "succeeded", "failed", "cancelled"}) {
        const std::int64_t count = array[name].integer();
        if (count > 0) out += (out.empty() ? "" : ", ") + grouped(count) + " " + name;
    }
    return counted(array["count"].integer(), "element") + (out.empty() ? "" : ": ") + out;
}

RankView rank_of(const Json& rank) {
    return {.rank = rank["rank"].integer(),
            .node = rank["node"].text(),
            .role = rank["role"].text(),
            .state = rank["state"].text(),
            .node_state = rank["node_state"].text(),
            .cause = rank["cause"].text(),
            .message = rank["message"].text(),
            .pulled = rank["pulled_bytes"].integer(),
            .pull_total = rank["pull_total_bytes"].integer(),
            .exit_code = maybe(rank["exit_code"]),
            .signal = maybe(rank["signal"]),
            .progress = progress_of(rank["progress"])};
}

AttemptView attempt_of(const Json& attempt) {
    return {.attempt = attempt["attempt"].integer(),
            .queued = moment_of(attempt["queued"]),
            .started = moment_of(attempt["started"]),
            .running = moment_of(attempt["running"]),
            .ended = moment_of(attempt["ended"]),
            .cause = attempt["cause"].text(),
            .node = attempt["node"].text(),
            .message = attempt["message"].text(),
            .rank = attempt["rank"].integer(),
            .last_step = attempt["last_step"].integer(-1),
            .resumed_step = attempt["resumed_step"].integer(-1),
            .lost_ms = attempt["lost_ms"].integer(),
            .exit_code = maybe(attempt["exit_code"]),
            .signal = maybe(attempt["signal"]),
            .beneficiary = attempt["beneficiary"].text(),
            .preempted_for = attempt["preempted_for"].text()};
}

bool is_fault(const std::string& cause) {
    return cause == "node-lost" || cause == "device-fault" || cause == "vanished" ||
           cause == "fenced" || cause == "launch";
}

std::string hosts(const std::vector<std::string>& names) {
    return names.empty() ? "" : " on " + host_list(names);
}

}  // namespace

const char* const kJobViewFields =
    "id,name,user,queue,state,cause,reason,code,gpus_per_node,message,held,priority,nodes,gpus,"
    "attempt,restarts,faults,lost_ms,steps_repeated,run_ms,wait_ms,attempts_total,submitted,since,"
    "started,ended,expected_start,node_names,progress,checkpoint,exit_code,signal,ranks,attempts,"
    "array";

/// Why an attempt ended that was not the job's last word, for people.
std::string attempt_end_words(const AttemptView& attempt) {
    const std::string node = attempt.node.empty() ? "a node" : attempt.node;
    if (attempt.cause == "node-lost") return node + " fell silent";
    if (attempt.cause == "device-fault") return "a device of " + node + " failed";
    if (attempt.cause == "vanished") return node + " no longer has its task";
    if (attempt.cause == "fenced") return node + " was cut off";
    const std::string why = attempt.message.empty() ? "" : ": " + printable(attempt.message);
    if (attempt.cause == "launch") return node + " could not start it" + why;
    if (attempt.cause == "preempted") return "preempted";
    if (attempt.cause == "requeued") return "requeued";
    if (attempt.cause == "oom") return "out of memory on " + node;
    if (attempt.cause == "image") return node + " could not get its image" + why;
    if (attempt.cause == "user-error" && attempt.exit_code && *attempt.exit_code >= 0)
        return "exited with " + std::to_string(*attempt.exit_code) + " on " + node;
    if (attempt.cause == "user-error" && attempt.signal && *attempt.signal > 0)
        return "ended by signal " + std::to_string(*attempt.signal) + " on " + node;
    std::string words = attempt.cause.empty() ? "ended" : attempt.cause;
    if (attempt.exit_code && *attempt.exit_code >= 0)
        words += ", exit " + std::to_string(*attempt.exit_code);
    return words + " on " + node;
}

JobView job_view(const Json& job) {
    JobView view{.id = job["id"].text(),
                 .name = job["name"].text(),
                 .user = job["user"].text(),
                 .queue = job["queue"].text(),
                 .state = job["state"].text(),
                 .cause = job["cause"].text(),
                 .reason = job["reason"].text(),
                 .code = job["code"].text(),
                 .gpus_per_node = job["gpus_per_node"].text(),
                 .message = job["message"].text(),
                 .array = array_words(job["array"]),
                 .held = job["held"].truth(),
                 .priority = job["priority"].integer(50),
                 .nodes = job["nodes"].integer(1),
                 .gpus = job["gpus"].integer(),
                 .attempt = job["attempt"].integer(),
                 .restarts = job["restarts"].integer(),
                 .faults = job["faults"].integer(),
                 .lost_ms = job["lost_ms"].integer(),
                 .steps_repeated = job["steps_repeated"].integer(),
                 .run_ms = job["run_ms"].integer(),
                 .wait_ms = job["wait_ms"].integer(),
                 .attempts_total = job["attempts_total"].integer(),
                 .submitted = moment_of(job["submitted"]),
                 .since = moment_of(job["since"]),
                 .started = moment_of(job["started"]),
                 .ended = moment_of(job["ended"]),
                 .expected_start = moment_of(job["expected_start"]),
                 .node_names = {},
                 .progress = progress_of(job["progress"]),
                 .checkpoint_step = job["checkpoint"]["step"].integer(-1),
                 .checkpoint_path = job["checkpoint"]["path"].text(),
                 .checkpoint_at = moment_of(job["checkpoint"]["at"]),
                 .exit_code = maybe(job["exit_code"]),
                 .signal = maybe(job["signal"]),
                 .ranks = {},
                 .attempts = {}};
    for (Json name = job["node_names"].first(); name.exists(); name = name.next())
        view.node_names.push_back(name.text());
    for (Json rank = job["ranks"].first(); rank.exists(); rank = rank.next())
        view.ranks.push_back(rank_of(rank));
    for (Json attempt = job["attempts"].first(); attempt.exists(); attempt = attempt.next())
        view.attempts.push_back(attempt_of(attempt));
    return view;
}

std::string size_text(const JobView& job) {
    std::string text = counted(job.nodes, "node");
    const std::string& gpus = job.gpus_per_node;
    if (!gpus.empty()) text += " × " + gpus;
    if (!gpus.empty() && std::ranges::all_of(gpus, [](char c) { return c >= '0' && c <= '9'; }))
        text += gpus == "1" ? " gpu" : " gpus";
    return text;
}

std::string end_detail(const JobView& job) {
    std::string text;
    if (!job.cause.empty() && job.cause != "success" && job.cause != job.state) text = job.cause;
    if (job.exit_code && (*job.exit_code != 0 || job.state == "succeeded") && *job.exit_code >= 0)
        text += (text.empty() ? "" : ", ") + ("exit " + std::to_string(*job.exit_code));
    std::string message = printable(job.message);
    // Said already.
    if (job.exit_code && message == "exited with " + std::to_string(*job.exit_code)) message = "";
    if (!job.cause.empty() && message.starts_with(job.cause + " ")) text = "";
    if (!message.empty()) text += (text.empty() ? "" : ": ") + message;
    return text;
}

std::string end_text(const JobView& job) {
    const std::string detail = end_detail(job);
    return job.state + (detail.empty() ? "" : job.state == "succeeded" ? ", " : ": ") + detail;
}

std::string header_line(const JobView& job, Time now, bool color) {
    const CellText state = job_state(job.state, job.held);
    std::string out = paint("job " + job.id, Tone::Bold, color) + " " + printable(job.name) + "  " +
                      paint(state.text, state.tone, color);
    if (job.since.ms != 0 && !has_ended(job.state))
        out += " " + length_text(std::max<std::int64_t>(now.ms - job.since.ms, 0));
    out += "  " + size_text(job);
    if (job.attempt > 0) out += "  attempt " + std::to_string(job.attempt);
    if (job.faults > 0) out += "  " + counted(job.faults, "fault");
    return out;
}

std::string metric_words(const std::string& name, double value) {
    if (name.ends_with("_per_s") && name.size() > 6) {
        const std::string number =
            value >= 1000 ? grouped(static_cast<std::int64_t>(value)) : metric_text(value);
        return number + " " + name.substr(0, name.size() - 6) + "/s";
    }
    return name + " " + metric_text(value);
}

namespace {

std::string percent(const ProgressView& progress) {
    if (progress.total <= 0) return "";
    return std::to_string(std::clamp<std::int64_t>(progress.step * 100 / progress.total, 0, 100)) +
           "%";
}

std::string time_left(const ProgressView& progress, double steps_per_s) {
    if (steps_per_s <= 0 || progress.total <= progress.step) return "";
    const double left = static_cast<double>(progress.total - progress.step) / steps_per_s * 1000;
    return left < 3.6e9 ? length_text(static_cast<std::int64_t>(left) / 1000 * 1000) : "";
}

std::string steps(const ProgressView& progress) {
    return std::to_string(progress.step) +
           (progress.total > 0 ? "/" + std::to_string(progress.total) : "");
}

}  // namespace

std::string progress_line(const JobView& job, double steps_per_s, std::size_t width, bool color) {
    const ProgressView& progress = job.progress;
    if (!progress.known()) return "";
    // The count keeps its place while it grows.
    std::string count = steps(progress);
    if (progress.total > 0) {
        const std::size_t most = std::to_string(progress.total).size() * 2 + 1;
        if (count.size() < most) count.insert(0, most - count.size(), ' ');
        const std::string part = percent(progress);
        count += " " + std::string(4 - std::min<std::size_t>(part.size(), 4), ' ') + part;
    }
    std::vector<std::string> words;
    for (const auto& [name, value] : progress.metrics) words.push_back(metric_words(name, value));
    const std::string left = time_left(progress, steps_per_s);
    const std::string eta = left.empty() ? "" : "  ETA " + left;
    std::size_t cells = progress.total > 0 ? std::clamp<std::size_t>(width / 4, 10, 40) : 0;
    std::string tail;
    const std::size_t fixed = cells + 2 + count.size() + eta.size();
    for (const std::string& word : words) {
        if (fixed + display_width(tail) + 2 + display_width(word) > width) break;
        tail += "  " + word;
    }
    std::string out;
    if (cells > 0) {
        const double part =
            static_cast<double>(progress.step) / static_cast<double>(progress.total);
        out =
            paint(bar(part, cells), job.state == "running" ? Tone::Good : Tone::Warn, color) + "  ";
    } else {
        out = "step ";
    }
    return out + count + paint(tail, Tone::Busy, color) + paint(eta, Tone::Dim, color);
}

std::string progress_words(const JobView& job, double steps_per_s) {
    const ProgressView& progress = job.progress;
    if (!progress.known()) return "";
    std::string out = "step " + steps(progress);
    if (progress.total > 0) out += " (" + percent(progress) + ")";
    for (const auto& [name, value] : progress.metrics) out += ", " + metric_words(name, value);
    const std::string left = time_left(progress, steps_per_s);
    if (!left.empty()) out += ", " + left + " left";
    return out;
}

std::string rank_line(const JobView& job, std::size_t width, bool color) {
    if (job.ranks.empty()) return "";
    const auto look = [](const RankView& rank) -> std::pair<std::string, Tone> {
        if (rank.node_state == "lost") return {"lost", Tone::Bad};
        if (rank.node_state == "suspect") return {"silent", Tone::Warn};
        if (rank.state == "ended" && !rank.cause.empty() && rank.cause != "success")
            return {rank.cause, Tone::Bad};
        return {std::string(1, state_letter(rank.state)), state_tone(rank.state)};
    };
    std::string out;
    std::size_t used = 0;
    for (const RankView& rank : job.ranks) {
        const auto [word, tone] = look(rank);
        std::string tail = " " + rank.node;
        if (rank.state == "pulling" && rank.pull_total > 0)
            tail += " image " + std::to_string(rank.pulled * 100 / rank.pull_total) + "%";
        else if (rank.progress.known())
            tail += " " + std::to_string(rank.progress.step);
        const std::string head = std::to_string(rank.rank) + " ";
        const std::size_t length = display_width(head + word + tail) + (used == 0 ? 0 : 3);
        used += length;
        if (used > width) break;
        if (!out.empty()) out += paint(" · ", Tone::Dim, color);
        out += paint(head, Tone::Dim, color) + paint(word, tone, color) + tail;
    }
    if (used <= width) return out;
    // Too many to name each: how many are in which state, and who is behind.
    std::map<std::string, std::pair<std::size_t, Tone>> counts;
    const RankView* slowest = nullptr;
    for (const RankView& rank : job.ranks) {
        const auto [word, tone] = look(rank);
        auto& count = counts[word];
        ++count.first;
        count.second = tone;
        if (rank.progress.known() &&
            (slowest == nullptr || rank.progress.step < slowest->progress.step))
            slowest = &rank;
    }
    out = std::to_string(job.ranks.size()) + " ranks:";
    for (const auto& [word, count] : counts)
        out += "  " + paint(word, count.second, color) + "×" + std::to_string(count.first);
    if (slowest != nullptr)
        out += paint("  slowest ", Tone::Dim, color) + std::to_string(slowest->rank) + " " +
               slowest->node + " at " + std::to_string(slowest->progress.step);
    return out;
}

std::vector<Moment> timeline(const JobView& job) {
    std::vector<Moment> out;
    out.push_back(
        {.at = job.submitted, .what = "queued", .detail = size_text(job) + ", queue " + job.queue});
    const AttemptView* before = nullptr;
    const auto began = [&](std::int64_t number, Time started, Time running, std::int64_t resumed,
                           const std::string& where) {
        const Time at = running.ms != 0 ? running : started;
        if (at.ms == 0) return;
        if (before == nullptr) {
            out.push_back({.at = at,
                           .what = "started",
                           .detail = "attempt " + std::to_string(number) + where});
            return;
        }
        std::string detail = "attempt " + std::to_string(number) + where;
        if (resumed >= 0) detail += ", from step " + std::to_string(resumed);
        std::string cost;
        if (before->last_step >= 0 && resumed >= 0)
            cost = counted(std::max<std::int64_t>(before->last_step - resumed, 0), "step") +
                   " repeated";
        if (before->lost_ms > 0)
            cost += (cost.empty() ? "" : ", ") + length_text(before->lost_ms) + " lost";
        if (!cost.empty()) detail += ": " + cost;
        out.push_back({.at = at,
                       .what = is_fault(before->cause) ? "recovered" : "restarted",
                       .detail = detail,
                       .good = true});
    };
    const bool over = has_ended(job.state);
    for (std::size_t i = 0; i < job.attempts.size(); ++i) {
        const AttemptView& attempt = job.attempts[i];
        const bool last = over && i + 1 == job.attempts.size();
        began(attempt.attempt, attempt.started, attempt.running, attempt.resumed_step,
              last ? hosts(job.node_names) : "");
        before = &attempt;
        if (last) continue;
        std::string detail = attempt_end_words(attempt);
        if (detail == attempt.cause) detail = "attempt " + std::to_string(attempt.attempt);
        if (attempt.last_step >= 0) detail += ", at step " + std::to_string(attempt.last_step);
        const bool fault = is_fault(attempt.cause);
        out.push_back({.at = attempt.ended,
                       .what = fault                          ? "lost"
                               : attempt.cause == "preempted" ? "preempted"
                               : attempt.cause == "requeued"  ? "requeued"
                                                              : "failed",
                       .detail = detail,
                       .bad = true});
    }
    if (job.state == "running") {
        // What this attempt began from follows from the sum and from what the others repeated.
        std::int64_t repeated = job.steps_repeated;
        for (std::size_t i = 1; i < job.attempts.size(); ++i)
            repeated -=
                std::max<std::int64_t>(job.attempts[i - 1].last_step -
                                           std::max<std::int64_t>(job.attempts[i].resumed_step, 0),
                                       0);
        const std::int64_t resumed =
            before == nullptr || before->last_step < 0 ? -1 : before->last_step - repeated;
        began(job.attempt, job.since, job.since, resumed, hosts(job.node_names));
    }
    if (job.state == "fencing")
        out.push_back({.at = job.since, .what = "silent", .detail = job.reason, .bad = true});
    if (over) {
        std::string detail = end_detail(job);
        detail += (detail.empty() ? "ran " : "; ran ") + length_text(job.run_ms);
        if (job.lost_ms > 0) detail += ", of which " + length_text(job.lost_ms) + " lost";
        if (job.steps_repeated > 0)
            detail += ", " + counted(job.steps_repeated, "step") + " repeated";
        out.push_back({.at = job.ended,
                       .what = job.state == "succeeded" ? "done" : job.state,
                       .detail = detail,
                       .bad = job.state == "failed",
                       .good = job.state == "succeeded"});
    }
    return out;
}

std::string timeline_text(const JobView& job, Time now, bool color, std::size_t width) {
    constexpr std::size_t kIndent = 34;
    std::string out;
    for (const Moment& moment : timeline(job)) {
        const std::string after =
            moment.at.ms == 0 ? "" : "+" + length_text(moment.at.ms - job.submitted.ms);
        std::string line = "  " + clock_text(moment.at, now);
        line.append(line.size() < 12 ? 12 - line.size() : 1, ' ');
        line += std::string(after.size() < 8 ? 8 - after.size() : 0, ' ') + after + "  ";
        std::string what = moment.what;
        what.append(what.size() < 11 ? 11 - what.size() : 1, ' ');
        out += paint(line, Tone::Dim, color) +
               paint(what,
                     moment.bad    ? Tone::Bad
                     : moment.good ? Tone::Good
                                   : Tone::Bold,
                     color) +
               wrap(printable(moment.detail),
                    width == 0 ? SIZE_MAX : std::max<std::size_t>(width, 60), kIndent) +
               "\n";
    }
    return out;
}

std::string result_line(const JobView& job, bool color) {
    std::string out;
    for (const auto& [name, value] : job.progress.metrics)
        out += (out.empty() ? "" : ", ") + name + " " + metric_text(value);
    if (out.empty()) return "";
    return paint("Result", Tone::Bold, color) + "  " + out + "\n";
}

int job_exit_code(const JobView& job) {
    if (job.state == "succeeded") return 0;
    if (job.exit_code && *job.exit_code > 0) return static_cast<int>(*job.exit_code);
    for (const RankView& rank : job.ranks) {
        if (rank.signal && *rank.signal > 0) return static_cast<int>(128 + *rank.signal);
        if (rank.exit_code && *rank.exit_code > 0) return static_cast<int>(*rank.exit_code);
    }
    return job.signal && *job.signal > 0 ? static_cast<int>(128 + *job.signal) : 1;
}

}  // namespace muster::cli
