#include "spec/render.h"

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "spec/yaml_out.h"

namespace muster::spec {
namespace {

using model::JobSpec;
using model::Role;

const char* name_of(model::Launch launch) {
    switch (launch) {
        case model::Launch::PerNode: return "per-node";
        case model::Launch::Torchrun: return "torchrun";
        case model::Launch::PerGpu: return "per-gpu";
        case model::Launch::Mpi: return "mpi";
    }
    return "";
}
const char* name_of(model::Dependency::When when) {
    switch (when) {
        case model::Dependency::When::AfterOk: return "afterok";
        case model::Dependency::When::AfterAny: return "afterany";
        case model::Dependency::When::AfterNotOk: return "afternotok";
    }
    return "";
}
const char* name_of(model::LogRule::Action action) {
    switch (action) {
        case model::LogRule::Action::Fail: return "fail";
        case model::LogRule::Action::ExcludeNode: return "exclude-node";
        case model::LogRule::Action::Requeue: return "requeue";
    }
    return "";
}

/// "0..4" or "0..40:10" of at least three whole numbers with equal steps; else "".
std::string range_text(const std::vector<std::string>& values) {
    constexpr std::int64_t kMax = (std::int64_t{1} << 31) - 1;
    if (values.size() < 3) return {};
    std::int64_t first = 0, step = 0, last = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto number = parse_integer(values[i], -kMax, kMax);
        if (!number || std::to_string(*number) != values[i]) return {};
        if (i == 0) first = *number;
        if (i == 1) step = *number - first;
        if (i > 0 && (step < 1 || step > kMax || *number - last != step)) return {};
        last = *number;
    }
    return std::to_string(first) + ".." + std::to_string(last) +
           (step == 1 ? "" : ":" + std::to_string(step));
}

std::string term_text(const model::ConstraintTerm& term) {
    using Op = model::ConstraintTerm::Op;
    switch (term.op) {
        case Op::Exists: return term.key;
        case Op::NotExists: return "!" + term.key;
        case Op::In:
        case Op::NotIn: break;
    }
    const bool in = term.op == Op::In;
    if (term.values.size() == 1) return term.key + (in ? "=" : "!=") + term.values[0];
    return term.key + (in ? " in (" : " not in (") + join(term.values, ",") + ")";
}

/// Writes the normal form through `Out`, which has map(), list(), key(), end() and text().
template <class Out>
class Renderer {
public:
    Renderer(Out& out, const JobSpec& spec) : out_(out), spec_(spec) {}

    void write() {
        out_.map(false);
        text("name", spec_.name);
        if (!spec_.queue.empty()) text("queue", spec_.queue);
        if (spec_.priority != usual_.priority) number("priority", spec_.priority);
        if (!spec_.labels.empty()) {
            begin_map("labels");
            for (const auto& [key, value] : spec_.labels) text(key, value);
            out_.end();
        }
        const bool plain = spec_.roles.size() == 1 && spec_.roles[0].name.empty();
        if (plain) write_resources(spec_.roles[0]);
        if (spec_.mixed_kinds) word("kinds", "mixed");
        if (spec_.share_unenforced) number("share_unenforced", "true");
        write_times();
        if (!spec_.image.empty()) text("image", spec_.image);
        if (!spec_.workdir.empty()) text("workdir", spec_.workdir);
        write_env(spec_.env);
        if (!spec_.setup.empty()) text("setup", spec_.setup);
        if (plain) text("run", spec_.roles[0].run);
        write_mounts();
        const bool several = spec_.nodes() > 1 || spec_.roles[0].nodes_max > 1;
        const model::Launch usual_launch =
            several ? model::Launch::Torchrun : model::Launch::PerNode;
        if (spec_.launch != usual_launch) word("launch", name_of(spec_.launch));
        write_restart();
        write_log_rules();
        write_checkpoint();
        write_series();
        if (spec_.exclusive) number("exclusive", "true");
        write_constraint();
        write_topology();
        if (!spec_.preemptible) number("preemptible", "false");
        if (spec_.hold) number("hold", "true");
        if (spec_.pty) number("pty", "true");
        if (!plain) write_roles();
        out_.end();
    }

private:
    // A number or a switch, which JSON writes without quotes; a word, which YAML does.
    void number(std::string_view key, std::int64_t value) { number(key, std::to_string(value)); }
    void number(std::string_view key, const std::string& value) {
        out_.key(key);
        out_.plain(value, true);
    }
    void word(std::string_view key, const std::string& value) {
        out_.key(key);
        out_.plain(value, false);
    }
    void text(std::string_view key, const std::string& value) {
        out_.key(key);
        out_.text(value);
    }
    void begin_map(std::string_view key) {
        out_.key(key);
        out_.map(true);
    }
    void begin_list(std::string_view key) {
        out_.key(key);
        out_.list();
    }

    void write_ask(const model::DeviceAsk& ask) {
        if (ask.vendor.empty() && ask.memory_min.value == 0 && ask.share_memory.value == 0 &&
            ask.profile.empty() && ask.fraction == 0)
            return out_.plain(ask.kind.empty() ? std::to_string(ask.count)
                                               : ask.kind + ":" + std::to_string(ask.count),
                              ask.kind.empty());
        out_.map(true);
        if (!ask.kind.empty()) text("kind", ask.kind);
        if (ask.fraction != 0)
            number("fraction", format_cpus({ask.fraction}));  // Thousandths, too.
        else if (ask.share_memory.value != 0)
            word("share", exact_bytes(ask.share_memory));
        else if (!ask.profile.empty())
            text("profile", ask.profile);
        else
            number("count", ask.count);
        if (ask.memory_min.value != 0) word("memory", exact_bytes(ask.memory_min));
        if (!ask.vendor.empty()) text("vendor", ask.vendor);
        out_.end();
    }
    void write_resources(const Role& role) {
        if (role.nodes_max > role.nodes)
            word("nodes", std::to_string(role.nodes) + ".." + std::to_string(role.nodes_max));
        else if (role.nodes != 1)
            number("nodes", role.nodes);
        if (role.devices.size() == 1) {
            out_.key("gpus");
            write_ask(role.devices[0]);
        } else if (!role.devices.empty()) {
            begin_list("gpus");
            for (const model::DeviceAsk& ask : role.devices) write_ask(ask);
            out_.end();
        }
        if (role.cpus.value != 0) number("cpus", format_cpus(role.cpus));
        if (role.memory.value != 0) word("memory", exact_bytes(role.memory));
        if (role.disk.value != 0) word("disk", exact_bytes(role.disk));
        if (role.shm.value != 0) word("shm", exact_bytes(role.shm));
    }
    void write_times() {
        if (spec_.time.ms != 0) word("time", format_duration(spec_.time));
        if (spec_.expected_time.ms != 0)
            word("expected_time", format_duration(spec_.expected_time));
        if (spec_.begin.ms != 0) text("begin", format_time(spec_.begin));
        if (spec_.deadline.ms != 0) text("deadline", format_time(spec_.deadline));
    }
    void write_env(const std::vector<model::EnvVar>& env) {
        if (env.empty()) return;
        begin_map("env");
        for (const model::EnvVar& var : env) text(var.name, var.value);
        out_.end();
    }
    void write_mounts() {
        if (!spec_.mounts.empty()) {
            begin_list("mounts");
            for (const model::Mount& mount : spec_.mounts)
                out_.text(mount.source + ":" + mount.target + (mount.read_only ? ":ro" : ""));
            out_.end();
        }
        if (spec_.secrets.empty()) return;
        begin_map("secrets");
        for (const model::Secret& secret : spec_.secrets) text(secret.name, secret.file);
        out_.end();
    }
    void write_restart() {
        const model::RestartRule& rule = spec_.restart;
        if (rule == usual_.restart) return;
        model::RestartRule counted = usual_.restart;
        counted.max = rule.max;
        const std::string max = rule.max < 0 ? "unlimited" : std::to_string(rule.max);
        out_.key("restart");
        if (rule == counted) return out_.plain(max, rule.max >= 0);
        out_.map(true);
        out_.key("max");
        out_.plain(max, rule.max >= 0);
        if (!rule.on_any) {
            begin_list("on");
            if (rule.on_oom) out_.plain("oom", false);
            for (const int code : rule.exit_codes)
                out_.plain("exit:" + std::to_string(code), false);
            out_.end();
        }
        if (rule.backoff != usual_.restart.backoff) word("backoff", format_duration(rule.backoff));
        out_.end();
    }
    void write_log_rules() {
        if (spec_.log_rules.empty()) return;
        begin_list("log_rules");
        for (const model::LogRule& rule : spec_.log_rules) {
            out_.map(true);
            text("match", rule.match);
            word("do", name_of(rule.action));
            out_.end();
        }
        out_.end();
    }
    void write_checkpoint() {
        const model::Checkpoint& checkpoint = spec_.checkpoint;
        if (checkpoint == usual_.checkpoint) return;
        model::Checkpoint simple;
        simple.dir = checkpoint.dir;
        if (checkpoint == simple) return text("checkpoint", checkpoint.dir);
        begin_map("checkpoint");
        if (!checkpoint.dir.empty()) text("dir", checkpoint.dir);
        if (checkpoint.signal != simple.signal) word("signal", checkpoint.signal);
        if (checkpoint.grace != simple.grace) word("grace", format_duration(checkpoint.grace));
        if (checkpoint.interval != simple.interval)
            word("interval", format_duration(checkpoint.interval));
        out_.end();
    }
    void write_series() {
        if (!spec_.depends.empty()) {
            begin_list("depends");
            for (const model::Dependency& dependency : spec_.depends)
                out_.plain(std::string(name_of(dependency.when)) + ":" +
                               std::to_string(dependency.job.value),
                           false);
            out_.end();
        }
        const model::Array& array = spec_.array;
        if (array.sweep.empty() && array.count > 0) {
            std::string range = std::to_string(array.first) + ".." +
                                std::to_string(array.first + (array.count - 1) * array.step);
            if (array.step != 1) range += ":" + std::to_string(array.step);
            word("array", range);
        }
        if (!array.sweep.empty()) {
            begin_map("sweep");
            for (const model::SweepAxis& axis : array.sweep) {
                if (const std::string range = range_text(axis.values); !range.empty()) {
                    word(axis.name, range);
                    continue;
                }
                begin_list(axis.name);
                for (const std::string& value : axis.values) out_.text(value);
                out_.end();
            }
            out_.end();
        }
        if (array.parallel != 0) number("parallel", array.parallel);
    }
    void write_constraint() {
        if (spec_.constraint.empty()) return;
        begin_list("constraint");
        for (const model::ConstraintTerm& term : spec_.constraint) out_.text(term_text(term));
        out_.end();
    }
    void write_topology() {
        const model::TopologyAsk& ask = spec_.topology;
        if (ask == usual_.topology) return;
        begin_map("topology");
        if (!ask.required.empty()) text("required", ask.required);
        if (!ask.preferred.empty()) text("preferred", ask.preferred);
        if (ask.slice != 0) {
            begin_map("slice");
            number("size", ask.slice);
            text("required", ask.slice_required);
            out_.end();
        }
        if (ask.spares != 0) number("spares", ask.spares);
        out_.end();
    }
    void write_roles() {
        out_.key("roles");
        out_.map(false);
        for (const Role& role : spec_.roles) {
            out_.key(role.name);
            out_.map(false);
            write_resources(role);
            write_env(role.env);
            text("run", role.run);
            out_.end();
        }
        out_.end();
    }

    Out& out_;
    const JobSpec& spec_;
    const JobSpec usual_;
};

class JsonOut {
public:
    explicit JsonOut(JsonWriter& out) : out_(out) {}
    void map(bool) { out_.begin_object(), open_.push_back('}'); }
    void list() { out_.begin_array(), open_.push_back(']'); }
    void end() {
        if (open_.back() == '}')
            out_.end_object();
        else
            out_.end_array();
        open_.pop_back();
    }
    void key(std::string_view name) { out_.key(name); }
    void text(const std::string& value) { out_.value(std::string_view(value)); }
    void plain(const std::string& value, bool is_json) {
        if (is_json)
            out_.raw(value);
        else
            text(value);
    }

private:
    JsonWriter& out_;
    std::string open_;
};

}  // namespace

void write_json(JsonWriter& out, const JobSpec& spec) {
    JsonOut json(out);
    Renderer(json, spec).write();
}

std::string to_json(const JobSpec& spec) {
    JsonWriter out;
    write_json(out, spec);
    return std::move(out).text();
}

std::string to_yaml(const JobSpec& spec) {
    YamlOut out;
    Renderer(out, spec).write();
    return std::move(out).take();
}

}  // namespace muster::spec
