// For tests only: random valid specs, to hold laws against.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/prng.h"
#include "base/units.h"
#include "model/job_spec.h"

namespace muster::spec {

/// From every field and every odd text that a field may hold.
class SpecMaker {
public:
    explicit SpecMaker(std::uint64_t seed) : random_(seed) {}

    model::JobSpec spec() {
        model::JobSpec s;
        s.name =
            pick({"train", "012", "null", "on", "训练 🚀", "- a", "a: b", "#x", "!y", "1e-4", "~"});
        if (half()) s.queue = pick({"prod", "a/b", "0", "true"});
        if (half()) s.priority = random_.between(0, 100);
        for (const std::string& key : some({"team", "a.b/c", "on", "null", "7"}))
            s.labels.emplace_back(key, pick({"nlp", "1", "null", "a, b", "{x}", "'q'"}));
        std::sort(s.labels.begin(), s.labels.end());
        roles(s);
        times(s);
        if (half()) s.image = pick({"repo/img:1", "a@sha256:0", "oci:/x"});
        if (half()) s.workdir = pick({"/", "/a b", "/工作", "/a#b"});
        s.env = variables({"A", "B", "null", "on", "_x"});
        if (half()) s.setup = command();
        for (const std::string& target : some({"/m", "/n o", "/p"}))
            s.mounts.push_back({pick({"/a", "/b c", "/"}), target, half()});
        for (const std::string& name : some({"HF_TOKEN", "KEY"})) s.secrets.push_back({name, "/k"});
        if (s.image.empty()) {
            s.mounts.clear();
            for (model::Role& each : s.roles) each.shm = {};
        }
        launch(s);
        rules(s);
        series(s);
        s.exclusive = half();
        s.mixed_kinds = half();
        s.share_unenforced = half();
        s.preemptible = half();
        topology(s);
        s.hold = half();
        s.pty = s.array.count == 0 && half();
        constraint(s);
        return s;
    }

private:
    bool half() { return random_.chance(500); }
    std::string pick(std::vector<std::string> from) { return from[random_.below(from.size())]; }
    std::vector<std::string> some(std::vector<std::string> from) {
        std::vector<std::string> out;
        for (std::string& word : from)
            if (random_.chance(300)) out.push_back(std::move(word));
        return out;
    }
    Duration between(std::int64_t low_s, std::int64_t high_s) {
        return Duration{random_.between(low_s * 1000, high_s * 1000)};
    }
    std::string value() {
        return pick({"",
                     " ",
                     "x",
                     "1e-4",
                     "on",
                     "null",
                     "~",
                     "a\nb",
                     "a\n",
                     "\n",
                     "\ttab",
                     "\"q\"",
                     "it's",
                     "é 中 🚀",
                     "a: b # c",
                     "{a: 1}",
                     "[x]",
                     "*a",
                     "&a",
                     "!a",
                     "%",
                     "@",
                     "`",
                     "|",
                     ">",
                     "\x01\x7f\x1b",
                     "0..4",
                     "  two\n spaces",
                     "\\n",
                     "a\r\nb",
                     "\xc2\x85\xe2\x80\xa8",
                     std::string(300, 'x')});
    }
    std::string command() {
        return pick({"python train.py --lr 3e-4", "a\nb", "a\nb\n", "a\n\n  b\n\n", " x", "# c\nx",
                     "a\n\tb\n", "echo \"a: b\" | cat > /x # y", "- x", "echo '中'\necho é\n",
                     "---\nx", "x\\\n  y"});
    }
    std::vector<model::EnvVar> variables(std::vector<std::string> names) {
        std::vector<model::EnvVar> out;
        for (const std::string& name : some(std::move(names))) out.push_back({name, value()});
        return out;
    }
    std::vector<model::DeviceAsk> devices() {
        std::vector<model::DeviceAsk> out;
        for (const std::string& kind : some({"", "h100", "4090", "8", "null", "mig-1g.5gb"})) {
            model::DeviceAsk& ask = out.emplace_back();
            ask.kind = kind;
            ask.count = random_.between(1, model::kGpusPerNodeMax);
            const std::uint64_t part = random_.below(6);
            if (part < 3) ask.count = 1;
            if (part == 0) ask.fraction = random_.between(1, 999);
            if (part == 1) ask.share_memory = size(kBytesMax);
            if (part == 2) ask.profile = pick({"1g.10gb", "7", "null", "1g.10gb+me"});
            if (half()) ask.memory_min = size(kBytesMax);
            if (half()) ask.vendor = pick({"nvidia", "0", "on"});
        }
        return out;
    }
    Bytes size(std::int64_t max) {
        const std::int64_t shift = static_cast<std::int64_t>(random_.below(20));
        return {std::max<std::int64_t>(1 << 20, random_.between(1 << 20, max) >> shift << shift)};
    }
    model::Role role(std::string name) {
        model::Role out;
        out.name = std::move(name);
        out.nodes = out.nodes_max = half() ? 1 : random_.between(1, 1000);
        out.devices = devices();
        if (half()) out.cpus = {random_.between(1, kMilliCpuMax)};
        if (half()) out.memory = size(kBytesMax);
        if (half()) out.disk = size(kDiskBytesMax);
        if (half()) out.shm = size(kBytesMax);
        out.run = command();
        return out;
    }
    void roles(model::JobSpec& s) {
        for (const std::string& name : some({"ps", "worker", "0", "null", "on"})) {
            s.roles.push_back(role(name));
            s.roles.back().env = variables({"R", "S"});
        }
        if (s.roles.empty()) s.roles.push_back(role(""));
        if (half()) s.roles[0].nodes_max += random_.between(1, 1000);
    }
    void topology(model::JobSpec& s) {
        model::TopologyAsk& ask = s.topology;
        if (half()) ask.required = pick({"leaf", "null", "on", "7", "a.b/c_d-e"});
        if (half()) ask.preferred = pick({"nvlink", "node", "0"});
        if (half()) ask.spares = random_.between(0, s.nodes());
        if (half()) return;
        const std::int64_t least = s.nodes(), extra = s.roles[0].nodes_max - s.roles[0].nodes;
        ask.slice = random_.between(1, 8);
        while (least % ask.slice != 0 || extra % ask.slice != 0) --ask.slice;
        ask.slice_required = pick({"nvlink", "1", "link"});
    }
    void times(model::JobSpec& s) {
        if (half()) s.time = between(1, kDurationMax.ms / 1000);
        if (half()) s.expected_time = between(1, s.time.ms > 0 ? s.time.ms / 1000 : 1000);
        if (half()) s.begin = Time{random_.between(1, 4'000'000'000) * 1000};
        if (half()) s.deadline = Time{s.begin.ms + random_.between(1, 1'000'000) * 1000};
    }
    void launch(model::JobSpec& s) {
        s.launch = static_cast<model::Launch>(random_.below(4));
        const bool any = std::any_of(s.roles.begin(), s.roles.end(),
                                     [](const model::Role& r) { return !r.devices.empty(); });
        if (s.launch == model::Launch::PerGpu && !any) s.launch = model::Launch::PerNode;
    }
    void rules(model::JobSpec& s) {
        if (half()) s.restart.max = random_.between(-1, model::kRestartsMax);
        if (s.restart.max != 0) {
            s.restart.on_any = half();
            s.restart.on_oom = !s.restart.on_any && half();
            std::set<int> codes;
            while (!s.restart.on_any && (codes.empty() || half()))
                codes.insert(static_cast<int>(random_.between(1, 255)));
            s.restart.exit_codes.assign(codes.begin(), codes.end());
            if (half()) s.restart.backoff = between(0, 600);
        }
        for (const std::string& match : some({"a+", "\"q\": [x]", "^\\s*$", "中"}))
            s.log_rules.push_back({match, static_cast<model::LogRule::Action>(random_.below(3))});
        if (half()) s.checkpoint.dir = pick({"/c", "/c d/中"});
        if (half()) s.checkpoint.signal = pick({"USR1", "USR2", "TERM"});
        if (half()) s.checkpoint.grace = between(1, 86'400);
        if (half()) s.checkpoint.interval = between(1, 86'400);
    }
    void series(model::JobSpec& s) {
        for (const std::string& id : some({"1", "12", "2147483647"}))
            s.depends.push_back({static_cast<model::Dependency::When>(random_.below(3)),
                                 JobId{static_cast<std::uint64_t>(std::stoll(id))}});
        if (half()) return;
        if (half()) {
            s.array.first = random_.between(0, 1000);
            s.array.step = random_.between(1, 9);
            s.array.count = random_.between(1, 1000);
            if (s.array.count == 1) s.array.step = 1;
        } else {
            s.array.count = 1;
            for (const std::string name : {"lr", "null", "on"}) {
                model::SweepAxis& axis = s.array.sweep.emplace_back();
                axis.name = name + "_s";
                if (half()) {
                    const std::int64_t first = random_.between(-50, 50),
                                       step = random_.between(0, 3);
                    for (std::int64_t i = random_.between(0, 6); i >= 0; --i)
                        axis.values.push_back(std::to_string(first + i * step));
                    if (half()) std::reverse(axis.values.begin(), axis.values.end());
                }
                while (axis.values.empty() || random_.chance(300)) axis.values.push_back(value());
                s.array.count *= static_cast<std::int64_t>(axis.values.size());
            }
        }
        if (half()) s.array.parallel = random_.between(1, 100);
    }
    void constraint(model::JobSpec& s) {
        using Op = model::ConstraintTerm::Op;
        for (const std::string& key : some({"ssd", "gpu-gen", "a/b", "null"})) {
            model::ConstraintTerm term{key, static_cast<Op>(random_.below(4)), {}};
            if (term.op == Op::In || term.op == Op::NotIn) {
                term.values = some({"a", "b", "null"});
                if (term.values.empty()) term.values = {"3"};
            }
            s.constraint.push_back(term);
        }
    }

    Prng random_;
};

}  // namespace muster::spec
