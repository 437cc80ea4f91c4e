// Readers of how ranks are made and of what happens when they fail: launch, restart, log_rules,
// checkpoint.
#include <algorithm>

#include "spec/normaliser.h"

namespace muster::spec {
namespace {

constexpr std::size_t kPatternMax = 1024;
constexpr std::size_t kRulesMax = 64;
constexpr Duration kBackoffMax{600'000};
constexpr Duration kGraceMax{std::int64_t{24} * 3600 * 1000};

/// `names` as "a, b or c", with the nearest to what was written.
void fail_choice(Normaliser& n, const Value& v, std::string_view written,
                 std::span<const std::string> names) {
    const std::string near = nearest(written, names);
    n.fail(v,
           shorten(written) + ": must be one of " + join(names, ", ") +
               (near.empty() ? "" : "; did you mean " + near + "?"),
           {.limit = join(names, ", "), .suggestion = near});
}

void read_cause(Normaliser& n, const Value& v, std::string_view cause) {
    model::RestartRule& rule = n.spec.restart;
    if (cause == "any") {
        rule.on_any = true;
    } else if (cause == "oom") {
        rule.on_oom = true;
    } else if (cause.substr(0, 5) == "exit:") {
        const auto code = parse_integer(cause.substr(5), 1, 255);
        if (!code)
            return n.fail(v, shorten(cause) + ": the exit code must be in 1..255",
                          {.limit = "1..255"});
        rule.exit_codes.push_back(static_cast<int>(*code));
    } else if (cause == "node" || cause == "preempt") {
        n.fail(v,
               std::string(cause) +
                   ": a job always restarts after this, without using up a restart; leave it out");
    } else {
        static const std::string kCauses[] = {"any", "oom", "exit:CODE"};
        fail_choice(n, v, cause, kCauses);
    }
}

}  // namespace

void read_launch(Normaliser& n, const Value& v) {
    static const std::string kNames[] = {"torchrun", "per-gpu", "per-node", "mpi"};
    const auto written = n.scalar(v);
    if (!written) return;
    if (*written == "torchrun")
        n.spec.launch = model::Launch::Torchrun;
    else if (*written == "per-gpu" || *written == "per-device")
        n.spec.launch = model::Launch::PerGpu;
    else if (*written == "per-node")
        n.spec.launch = model::Launch::PerNode;
    else if (*written == "mpi")
        n.spec.launch = model::Launch::Mpi;
    else
        fail_choice(n, v, *written, kNames);
}

void read_restart(Normaliser& n, const Value& v) {
    if (v.kind != Value::Kind::Map) return read_restart_max(n, v);
    n.read_parts(v, find_field(job_fields(), "restart")->parts);
    const auto has = [&](std::string_view key) {
        return std::any_of(v.entries.begin(), v.entries.end(),
                           [&](const Entry& entry) { return entry.key == key; });
    };
    if (!has("max"))
        n.fail(v, errors::kJobFieldMissing, "max is missing: how many restarts?");
    else if (n.spec.restart.max == 0 && (has("on") || has("backoff")))
        n.fail(v, "max is 0, so that nothing else here has an effect");
}
void read_restart_max(Normaliser& n, const Value& v) {
    if (v.kind == Value::Kind::Scalar && v.text == "none")
        n.spec.restart.max = 0;
    else if (v.kind == Value::Kind::Scalar && v.text == "unlimited")
        n.spec.restart.max = -1;
    else if (const auto max = n.integer(v, 0, model::kRestartsMax))
        n.spec.restart.max = *max;
}
void read_restart_on(Normaliser& n, const Value& v) {
    model::RestartRule& rule = n.spec.restart;
    rule.on_any = false;
    const auto list = n.items(v);
    if (v.kind == Value::Kind::List && list.empty())
        n.fail(v, "an empty list; leave it out for any");
    for (const Value& item : list) {
        const auto written = n.scalar(item);
        if (!written) continue;
        for (const std::string_view cause : split(*written, ',')) read_cause(n, item, trim(cause));
    }
    std::sort(rule.exit_codes.begin(), rule.exit_codes.end());
    rule.exit_codes.erase(std::unique(rule.exit_codes.begin(), rule.exit_codes.end()),
                          rule.exit_codes.end());
    if (rule.on_any) rule.exit_codes.clear(), rule.on_oom = false;  // Any is all of them.
}
void read_restart_backoff(Normaliser& n, const Value& v) {
    if (const auto backoff = n.duration(v, {}, kBackoffMax)) n.spec.restart.backoff = *backoff;
}

void read_log_rules(Normaliser& n, const Value& v) {
    const auto list = n.items(v);
    if (list.size() > kRulesMax)
        return n.fail(v, std::to_string(list.size()) + " rules, over the limit of " +
                             std::to_string(kRulesMax));
    for (std::size_t i = 0; i < list.size(); ++i) {
        const Normaliser::Within within(n, i);
        if (list[i].kind != Value::Kind::Map) {
            n.fail(list[i], "a map expected, as in {match: \"CUDA error\", do: exclude-node}");
            continue;
        }
        model::LogRule rule;
        n.rule = &rule;
        n.read_parts(list[i], find_field(job_fields(), "log_rules")->parts);
        n.rule = nullptr;
        for (const std::string_view key : {"match", "do"})
            if (std::none_of(list[i].entries.begin(), list[i].entries.end(),
                             [&](const Entry& entry) { return entry.key == key; }))
                n.fail(list[i], errors::kJobFieldMissing, std::string(key) + " is missing");
        n.spec.log_rules.push_back(std::move(rule));
    }
}
void read_log_match(Normaliser& n, const Value& v) {
    const auto pattern = n.text(v, kPatternMax);
    if (!pattern) return;
    const std::string error = pattern_error(*pattern);
    if (!error.empty()) return n.fail(v, shorten(*pattern) + ": " + error);
    n.rule->match = *pattern;
}
void read_log_do(Normaliser& n, const Value& v) {
    static const std::string kNames[] = {"fail", "exclude-node", "requeue"};
    const auto written = n.scalar(v);
    if (!written) return;
    if (*written == "fail")
        n.rule->action = model::LogRule::Action::Fail;
    else if (*written == "exclude-node")
        n.rule->action = model::LogRule::Action::ExcludeNode;
    else if (*written == "requeue")
        n.rule->action = model::LogRule::Action::Requeue;
    else
        fail_choice(n, v, *written, kNames);
}

void read_checkpoint(Normaliser& n, const Value& v) {
    if (v.kind != Value::Kind::Map) return read_checkpoint_dir(n, v);
    if (v.entries.empty()) n.fail(v, "empty; give a directory");
    n.read_parts(v, find_field(job_fields(), "checkpoint")->parts);
}
void read_checkpoint_dir(Normaliser& n, const Value& v) {
    const auto written = n.scalar(v);
    if (!written) return;
    if (const auto path = n.path(v, *written)) n.spec.checkpoint.dir = *path;
}
void read_checkpoint_signal(Normaliser& n, const Value& v) {
    static const std::string kNames[] = {"USR1", "USR2", "TERM", "INT",
                                         "HUP",  "QUIT", "CONT", "WINCH"};
    const auto written = n.scalar(v);
    if (!written) return;
    std::string_view name = *written;
    if (name.substr(0, 3) == "SIG") name.remove_prefix(3);
    if (std::find(std::begin(kNames), std::end(kNames), name) == std::end(kNames))
        return fail_choice(n, v, *written, kNames);
    n.spec.checkpoint.signal = std::string(name);
}
void read_checkpoint_grace(Normaliser& n, const Value& v) {
    if (const auto grace = n.duration(v, seconds(1), kGraceMax)) n.spec.checkpoint.grace = *grace;
}
void read_checkpoint_interval(Normaliser& n, const Value& v) {
    if (v.kind == Value::Kind::Scalar && v.text == "auto")
        n.spec.checkpoint.interval = {};
    else if (const auto every = n.duration(v, seconds(1), kDurationMax))
        n.spec.checkpoint.interval = *every;
}

}  // namespace muster::spec
