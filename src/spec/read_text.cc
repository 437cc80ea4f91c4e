// Readers of the fields that are texts, paths, times and switches.
#include <algorithm>

#include "spec/normaliser.h"

namespace muster::spec {
namespace {

constexpr std::size_t kArgumentMax = 131'000;  // Linux passes no longer argument (128 KiB).

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_word(std::string_view text, std::string_view also) {
    return !text.empty() && (is_letter(text.front()) || is_digit(text.front())) &&
           std::all_of(text.begin(), text.end(), [&](char c) {
               return is_letter(c) || is_digit(c) || also.find(c) != std::string_view::npos;
           });
}

/// A variable's name that the job may set. MUSTER_… is Muster's own.
bool check_variable(Normaliser& n, const Entry& entry) {
    Value name = scalar_value(entry.key, entry.source, entry.at);
    if (!is_variable_name(entry.key)) {
        n.fail(name, "not a variable name; letters, digits and _ only, and no digit first");
        return false;
    }
    if (entry.key.substr(0, 7) == "MUSTER_") {
        n.fail(name, "names that start with MUSTER_ are set by Muster; choose another");
        return false;
    }
    return true;
}

std::optional<Time> read_moment(Normaliser& n, const Value& v) {
    const auto written = n.scalar(v);
    if (!written) return std::nullopt;
    const auto at = parse_time(*written, n.options.now);
    if (!at) {
        n.fail(v, at.error());
        return std::nullopt;
    }
    // To the next whole second: never early, and the same when written and read again.
    return Time{(at->ms + 999) / 1000 * 1000};
}

}  // namespace

bool is_variable_name(std::string_view name) {
    return !name.empty() && name.size() <= 256 && !is_digit(name.front()) &&
           std::all_of(name.begin(), name.end(),
                       [](char c) { return is_letter(c) || is_digit(c) || c == '_'; });
}

void read_name(Normaliser& n, const Value& v) {
    const auto name = n.text(v, 128);
    if (!name) return;
    if (name->find('/') != std::string::npos) return n.fail(v, "must not contain /");
    if (trim(*name) != *name) return n.fail(v, "must not begin or end with a space");
    n.spec.name = *name;
}

void read_queue(Normaliser& n, const Value& v) {
    const auto name = n.text(v, 128);
    if (!name) return;
    if (!is_word(*name, "._-/")) return n.fail(v, *name + ": letters, digits, . _ - and / only");
    n.spec.queue = *name;
}

void read_priority(Normaliser& n, const Value& v) {
    if (const auto number = n.integer(v, 0, 100)) n.spec.priority = *number;
}

void read_labels(Normaliser& n, const Value& v) {
    for (const Entry& entry : n.entries(v, "{team: nlp}")) {
        const Normaliser::Within within(n, entry.key);
        if (!is_word(entry.key, "._-/") || entry.key.size() > 128) {
            n.fail(scalar_value(entry.key, entry.source, entry.at),
                   "not a label's name; at most 128 letters, digits, . _ - and /");
            continue;
        }
        if (const auto value = n.text(entry.value, 256))
            n.spec.labels.emplace_back(entry.key, *value);
    }
    std::sort(n.spec.labels.begin(), n.spec.labels.end());
}

void read_time(Normaliser& n, const Value& v) {
    if (v.kind == Value::Kind::Scalar && v.text == "none") {
        n.spec.time = {};
        return;
    }
    if (const auto time = n.duration(v, seconds(1), kDurationMax)) n.spec.time = *time;
}
void read_expected_time(Normaliser& n, const Value& v) {
    if (const auto time = n.duration(v, seconds(1), kDurationMax)) n.spec.expected_time = *time;
}
void read_begin(Normaliser& n, const Value& v) {
    if (const auto at = read_moment(n, v)) n.spec.begin = *at;
}
void read_deadline(Normaliser& n, const Value& v) {
    if (const auto at = read_moment(n, v)) n.spec.deadline = *at;
}

void read_image(Normaliser& n, const Value& v) {
    const auto image = n.text(v, 1024);
    if (!image) return;
    if (image->find(' ') != std::string::npos) return n.fail(v, "an image's name has no spaces");
    n.spec.image = *image;
}

void read_workdir(Normaliser& n, const Value& v) {
    const auto written = n.scalar(v);
    if (!written) return;
    if (const auto path = n.path(v, *written)) n.spec.workdir = *path;
}

void read_env(Normaliser& n, const Value& v) {
    std::vector<model::EnvVar>& env = n.in_role() ? n.role->env : n.spec.env;
    for (const Entry& entry : n.entries(v, "{NAME: value}")) {
        const Normaliser::Within within(n, entry.key);
        if (!check_variable(n, entry)) continue;
        const auto value = n.scalar(entry.value);
        if (!value) continue;
        if (entry.key.size() + value->size() > kArgumentMax) {
            n.fail(entry.value, std::to_string(value->size()) + " bytes, over the limit of " +
                                    std::to_string(kArgumentMax) + " with the name");
            continue;
        }
        env.push_back({entry.key, std::string(*value)});
    }
}

void read_setup(Normaliser& n, const Value& v) {
    if (const auto setup = n.text(v, kArgumentMax, true)) n.spec.setup = *setup;
}
void read_run(Normaliser& n, const Value& v) {
    if (const auto run = n.text(v, kArgumentMax, true)) n.role->run = *run;
}

void read_mounts(Normaliser& n, const Value& v) {
    const auto list = n.items(v);
    for (std::size_t i = 0; i < list.size(); ++i) {
        const Normaliser::Within within(n, i);
        const auto written = n.scalar(list[i]);
        if (!written) continue;
        const auto parts = split(*written, ':');
        const bool mode_known = parts.size() == 3 && (parts[2] == "ro" || parts[2] == "rw");
        if (parts.size() != 2 && !mode_known) {
            n.fail(list[i], shorten(*written) + ": must be SOURCE:TARGET or SOURCE:TARGET:ro");
            continue;
        }
        const auto source = n.path(list[i], parts[0]);
        if (!source) continue;
        if (parts[1].substr(0, 1) != "/") {
            n.fail(list[i], shorten(parts[1]) + ": the target must be an absolute path");
            continue;
        }
        const auto target = n.path(list[i], parts[1]);
        if (!target) continue;
        if (*target == "/") {
            n.fail(list[i], "the target cannot be / itself");
            continue;
        }
        const auto same = [&](const model::Mount& m) { return m.target == *target; };
        if (std::any_of(n.spec.mounts.begin(), n.spec.mounts.end(), same)) {
            n.fail(list[i], *target + ": two mounts have this target");
            continue;
        }
        n.spec.mounts.push_back({*source, *target, mode_known && parts[2] == "ro"});
    }
}

void read_secrets(Normaliser& n, const Value& v) {
    for (const Entry& entry : n.entries(v, "{HF_TOKEN: /home/me/.hf}")) {
        const Normaliser::Within within(n, entry.key);
        if (!check_variable(n, entry)) continue;
        const auto written = n.scalar(entry.value);
        if (!written) continue;
        if (const auto file = n.path(entry.value, *written))
            n.spec.secrets.push_back({entry.key, *file});
    }
}

void read_exclusive(Normaliser& n, const Value& v) {
    if (const auto on = n.flag(v)) n.spec.exclusive = *on;
}
void read_preemptible(Normaliser& n, const Value& v) {
    if (const auto value = n.flag(v)) n.spec.preemptible = *value;
}
void read_hold(Normaliser& n, const Value& v) {
    if (const auto on = n.flag(v)) n.spec.hold = *on;
}
void read_pty(Normaliser& n, const Value& v) {
    if (const auto on = n.flag(v)) n.spec.pty = *on;
}

}  // namespace muster::spec
