// Clusters, queues and plans as lines of text, for the scheduler's tests.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/text.h"
#include "scheduler/plan.h"

namespace muster::scheduler {

/// Lines of words. What is not given has a default; sizes are whole numbers of GiB.
///   node N gpus=8 kind=h100 cpus=64 mem=256 label=k:v down
///   job N nodes=1 gpus=1 kind=gpu cpus=0 mem=0 prio=50 time=0 at=N count=1 avoid=3 exclusive
///   only=k:v run N node=1,2 (and as job)    end N    drain N
class Cluster {
public:
    explicit Cluster(const std::string& text) {
        for (const std::string_view line : split(text, '\n')) add(std::string(line));
    }
    Cluster() = default;

    PlanIndex index;
    std::vector<Change> changes;

    void add(const std::string& line) {
        std::vector<std::string> words;
        for (const std::string_view word : split(line, ' '))
            if (!trim(word).empty()) words.emplace_back(trim(word));
        if (words.empty()) return;
        const std::string verb = words[0];
        const std::uint64_t id = std::stoull(words.at(1));
        if (verb == "node") put(node(id, words));
        if (verb == "drain") put(NodeChanged{{id}, facts_.at(id), false});
        if (verb == "job") queue(id, words);
        if (verb == "run") run(id, words);
        if (verb == "end") put(JobReleased{{id}});
    }
    void put(Change change) {
        index.apply(change);
        changes.push_back(std::move(change));
    }
    /// "1:n2,n3 2:n1" and the reasons of shapes that wait.
    std::string show(Time now = {1000}) {
        const Plan plan = index.plan(now);
        if (plan.bookings) put(BookingsChanged{*plan.bookings});
        std::string out;
        for (const Start& start : plan.starts) {
            out += (out.empty() ? "" : " ") + std::to_string(start.job.value) + ":";
            for (std::size_t i = 0; i < start.slots.size(); ++i)
                out += (i > 0 ? "," : "") + ("n" + std::to_string(start.slots[i].node.value));
        }
        return out;
    }
    std::string why(std::uint64_t job, Time now = {1000}) const {
        const Blocked why = index.why({job}, now);
        static const char* const kWords[] = {
            "not-evaluated", "never-fits", "no-nodes",   "not-enough-free", "reserved",
            "not-eligible",  "held",       "dependency", "parallel"};
        std::string out = kWords[static_cast<int>(why.reason)];
        const auto number = [&](const char* name, std::int64_t n) {
            if (n != 0) out += std::string(" ") + name + "=" + std::to_string(n);
        };
        number("wanted", why.nodes_wanted), number("total", why.nodes_total);
        number("unusable", why.nodes_unusable), number("unfit", why.nodes_unfit);
        number("busy", why.nodes_busy), number("fit", why.nodes_fit);
        number("devices", why.devices_wanted), number("free", why.devices_free);
        number("of", why.devices_total);
        number("behind", static_cast<std::int64_t>(why.behind.value));
        number("ahead", why.ahead), number("start", why.expected_start.ms);
        return out;
    }
    static std::string value(const std::vector<std::string>& words, const std::string& key,
                             const std::string& usual) {
        for (const std::string& word : words)
            if (word.starts_with(key + "=")) return word.substr(key.size() + 1);
        return usual;
    }
    static std::int64_t number(const std::vector<std::string>& words, const std::string& key,
                               std::int64_t usual) {
        return std::stoll(value(words, key, std::to_string(usual)));
    }

private:
    NodeChanged node(std::uint64_t id, const std::vector<std::string>& words) {
        auto facts = std::make_shared<model::NodeFacts>();
        facts->name = "n" + std::to_string(id);
        facts->cpus = {number(words, "cpus", 64) * 1000};
        facts->memory = {number(words, "mem", 256) << 30};
        facts->disk = {std::int64_t{1} << 40};
        for (std::int64_t i = 0; i < number(words, "gpus", 0); ++i) {
            model::Device device;
            device.id = facts->name + "-" + std::to_string(1000 + i);
            device.kind = value(words, "kind", "h100");
            device.memory = {std::int64_t{80} << 30};
            facts->devices.push_back(device);
        }
        for (const std::string& word : words) {
            if (!word.starts_with("label=")) continue;
            const std::size_t colon = word.find(':');
            facts->labels.emplace_back(word.substr(6, colon - 6), word.substr(colon + 1));
        }
        std::ranges::sort(facts->labels);
        facts_[id] = facts;
        return {{id}, facts, std::ranges::find(words, "down") == words.end()};
    }
    Shape shape(const std::vector<std::string>& words) {
        Shape shape;
        shape.queue = {1};
        GroupAsk group;
        group.nodes = number(words, "nodes", 1);
        const std::int64_t gpus = number(words, "gpus", 0);
        const std::string kinds = value(words, "kind", "gpu");
        for (const std::string_view kind : split(kinds, ','))
            if (gpus > 0) group.devices.push_back({std::string(kind), gpus, {}, ""});
        group.cpus = {number(words, "cpus", 0) * 1000};
        group.memory = {number(words, "mem", 0) << 30};
        shape.groups.push_back(group);
        shape.exclusive = std::ranges::find(words, "exclusive") != words.end();
        shape.time = {number(words, "time", 0)};
        for (const std::string& word : words) {
            if (!word.starts_with("only=")) continue;
            const std::size_t colon = word.find(':');
            shape.constraint.push_back({word.substr(5, colon - 5),
                                        model::ConstraintTerm::Op::In,
                                        {word.substr(colon + 1)}});
        }
        const auto known = shapes_.find(encode(shape));
        if (known != shapes_.end()) {
            shape.id = known->second;
            return shape;
        }
        shape.id = {shapes_.size() + 1};
        shapes_[encode(shape)] = shape.id;
        put(ShapeAdded{shape});
        return shape;
    }
    void queue(std::uint64_t id, const std::vector<std::string>& words) {
        JobQueued job;
        job.id = {id};
        job.shape = shape(words).id;
        job.priority = number(words, "prio", 50);
        job.submitted = {number(words, "at", static_cast<std::int64_t>(id))};
        job.eligible = {number(words, "begin", 0)};
        job.count = number(words, "count", 1);
        if (const auto node = number(words, "avoid", 0)) job.avoid.push_back({std::uint64_t(node)});
        put(job);
    }
    void run(std::uint64_t id, const std::vector<std::string>& words) {
        const Shape what = shape(words);
        JobStarted job{{id}, what.id, {}, kNever};
        if (what.time.ms > 0) job.expected_end = {what.time.ms};
        const std::string nodes = value(words, "node", "1");
        for (const std::string_view node : split(nodes, ',')) {
            Slot slot;
            slot.node = {std::stoull(std::string(node))};
            const model::NodeFacts& facts = *facts_.at(slot.node.value);
            const GroupAsk& group = what.groups[0];
            const std::size_t count =
                group.devices.empty() ? 0 : static_cast<std::size_t>(group.devices[0].count);
            auto& taken = taken_[slot.node.value];
            for (std::size_t i = 0; i < count; ++i)
                slot.devices.push_back(facts.devices[taken++].id);
            slot.cpus = group.cpus.value > 0 ? group.cpus : MilliCpu{1000};
            slot.memory = group.memory;
            job.slots.push_back(slot);
        }
        put(job);
    }

    std::map<std::uint64_t, std::shared_ptr<const model::NodeFacts>> facts_;
    std::map<std::uint64_t, std::size_t> taken_;
    std::map<std::string, ShapeId> shapes_;
};

}  // namespace muster::scheduler
