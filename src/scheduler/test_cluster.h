// Clusters, queues and plans as lines of text, for the scheduler's tests; plans are carried out
// here as core does it, by device ids.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/text.h"
#include "scheduler/place.h"
#include "scheduler/plan.h"
#include "scheduler/test_bind.h"

namespace muster::scheduler {

/// Lines of words. What is not given has a default; sizes are whole numbers of GiB, times are
/// milliseconds, devices and CPUs of queues whole numbers.
///   levels zone leaf
///   node N gpus=8 kind=h100 class=gpu dmem=80 cpus=64 mem=256 label=k:v path=z1/l1 down
///        link=4 numa=4 (devices of one group) profile=1g.10gb unenforced sick=2 (of its devices)
///   queue N name=q parent=M guarantee=gpus:8,cpus:4 limit= borrow= lend= user_limit= weight=
///        policy=fifo max_jobs= user_max_jobs= min_runtime= aging= aging_max= fixed
///   rules bookings= per_minute= preemptions= resize= nodefrag conservative half_life=
///   user N NAME        usage Q U devices=N at=T
///   reserve N nodes=1,2 from=T to=T users=a queues=q maintenance       unreserve N
///   job N nodes=1 (or 2..4) gpus=1 kind=gpu (or a,b) cpus=0 mem=0 prio=50 time=0 at=N count=1
///       avoid=3,4 only=k:v queue=1 user=1 begin=0 fraction=500 share=10 profile=p vendor=v dmem=40
///       required=leaf slice=8/leaf spares=1 expected= p50= attained= mixed exclusive fixed any
///       role=2x4 (a second group: nodes, devices)
///   run N node=1,2 started=0 end=T saved=T preempted=N grace=1000 (and as job)
///   promise N node=1,2 (to a job that waits)
///   stop N for=M until=T     saved N T     end N     cancel N     drain N     undrain N
///   step T (plan and carry out)    freed T (what was told to stop has stopped)
class Cluster {
public:
    using Words = std::vector<std::string>;

    explicit Cluster(const std::string& text) { read(text); }
    Cluster() = default;

    PlanIndex index;
    std::vector<Change> changes;
    // As core would know them.
    std::map<NodeId, NodeChanged> nodes;
    std::map<ShapeId, Shape> shapes;
    std::map<QueueId, model::Queue> queues;
    std::map<UserId, std::string> users;
    std::map<ReservationId, model::Reservation> reservations;
    std::map<JobId, JobQueued> queued;
    std::map<JobId, JobStarted> started;
    std::map<JobId, JobStopping> stopping;
    std::map<JobId, JobQueued> asked;   // By those that started.
    std::map<JobId, Claim> own_claims;  // Of those that are being resized.
    std::map<JobId, int> preempted;
    std::vector<Booking> bookings;
    std::vector<Change> rest;  // Levels, rules, usage.
    Owners owners;

    void read(const std::string& text) {
        for (const std::string_view line : split(text, '\n')) add(std::string(line));
    }
    void add(const std::string& line) {
        Words words;
        for (const std::string_view word : split(line, ' '))
            if (!trim(word).empty()) words.emplace_back(trim(word));
        if (words.empty()) return;
        const std::string verb = words[0];
        if (verb == "levels") return put_rest(LevelsChanged{{words.begin() + 1, words.end()}});
        if (verb == "rules") return rules(words);
        const std::uint64_t id = std::stoull(words.at(1));
        if (verb == "node") put(node(id, words));
        if (verb == "drain" || verb == "undrain") {
            NodeChanged node = nodes.at({id});
            node.usable = verb == "undrain";
            put(node);
        }
        if (verb == "queue") queue_of(id, words);
        if (verb == "user") put(UserNamed{{id}, words.at(2)});
        if (verb == "usage")
            put_rest(UsageChanged{{id},
                                  {std::stoull(words.at(2))},
                                  number(words, "devices", 0) * 1000,
                                  0,
                                  0,
                                  {number(words, "at", 0)}});
        if (verb == "reserve") reserve(id, words);
        if (verb == "unreserve") put(ReservationRemoved{{id}});
        if (verb == "job") queue(id, words);
        if (verb == "run") run(id, words);
        if (verb == "saved") {
            started.at({id}).saved = {std::stoll(words.at(2))};
            put(JobSaved{{id}, {std::stoll(words.at(2))}});
        }
        if (verb == "stop")
            put(JobStopping{
                {id}, {std::uint64_t(number(words, "for", 0))}, {number(words, "until", 0)}});
        if (verb == "promise") promise(id, words);
        if (verb == "end") end({id});
        if (verb == "cancel") put(JobUnqueued{{id}});
        if (verb == "step") step({std::stoll(words.at(1))});
        if (verb == "freed") freed({std::stoll(words.at(1))});
    }
    void put(Change change) {
        if (const auto* node = std::get_if<NodeChanged>(&change)) nodes[node->id] = *node;
        if (const auto* one = std::get_if<ShapeAdded>(&change)) shapes[one->shape.id] = one->shape;
        if (const auto* one = std::get_if<QueueChanged>(&change))
            queues[one->queue.id] = one->queue;
        if (const auto* one = std::get_if<UserNamed>(&change)) users[one->id] = one->name;
        if (const auto* one = std::get_if<JobQueued>(&change)) queued[one->id] = *one;
        if (const auto* one = std::get_if<JobUnqueued>(&change)) queued.erase(one->id);
        if (const auto* one = std::get_if<JobStarted>(&change)) started[one->id] = *one;
        if (const auto* one = std::get_if<JobStopping>(&change)) stopping[one->id] = *one;
        if (const auto* one = std::get_if<JobReleased>(&change))
            started.erase(one->id), stopping.erase(one->id);
        if (const auto* one = std::get_if<BookingsChanged>(&change)) bookings = one->bookings;
        if (const auto* one = std::get_if<ReservationChanged>(&change))
            reservations[one->reservation.id] = one->reservation;
        if (const auto* one = std::get_if<ReservationRemoved>(&change)) reservations.erase(one->id);
        if (std::holds_alternative<JobUnqueued>(change))  // As core: bookings of those that wait.
            std::erase_if(bookings, [&](const Booking& b) { return !queued.contains(b.job); });
        index.apply(change);
        changes.push_back(std::move(change));
    }
    void end(JobId id) {
        owners.give(started.at(id));
        put(JobReleased{id});
    }
    /// An index of what is known now, as a controller that starts makes it.
    PlanIndex anew() const {
        PlanIndex out;
        for (const Change& change : rest) out.apply(change);
        for (const auto& [id, name] : users) out.apply(UserNamed{id, name});
        for (const auto& [id, queue] : queues) out.apply(QueueChanged{queue});
        for (const auto& [id, reservation] : reservations)
            out.apply(ReservationChanged{reservation});
        for (const auto& [id, node] : nodes) out.apply(node);
        for (const auto& [id, shape] : shapes) out.apply(ShapeAdded{shape});
        for (const auto& [id, job] : started) out.apply(job);
        for (const auto& [id, job] : stopping) out.apply(job);
        for (const auto& [id, job] : queued) out.apply(job);
        out.apply(BookingsChanged{bookings});
        return out;
    }

    // ---- as core does it

    /// Plans, and carries the plan out.
    Plan step(Time now) {
        Plan plan = index.plan(now);
        carry(plan, now);
        return plan;
    }
    void carry(const Plan& plan, Time now) {
        for (const Start& start : plan.starts) begin(start, now);
        for (const Promise& promise : plan.promises) {
            const Claim claim{promise.slots, now + Duration{600'000}};
            const auto waits = queued.find(promise.job);
            if (waits == queued.end()) {
                own_claims[promise.job] = claim;
                continue;
            }
            JobQueued job = waits->second;
            job.claim = std::make_shared<const Claim>(claim);
            put(job);
        }
        for (const Stop& stop : plan.stops) {
            EXPECT_FALSE(stopping.contains(stop.job)) << stop.job.value << " stopped twice";
            const bool resize =
                stop.reason == StopReason::Shrink || stop.reason == StopReason::Grow;
            if (!resize) ++preempted[stop.job];
            put(JobStopping{stop.job, stop.beneficiary, now + started.at(stop.job).grace});
        }
        if (plan.bookings) put(BookingsChanged{*plan.bookings});
    }
    /// Those told to stop are gone, and wait again.
    void freed(Time now) {
        const auto gone = stopping;
        for (const auto& [id, stop] : gone) {
            JobQueued again = asked.at(id);
            again.eligible = now;
            again.claim = nullptr;
            const auto own = own_claims.find(id);
            if (own != own_claims.end()) {
                again.claim = std::make_shared<const Claim>(own->second);
                own_claims.erase(own);
            }
            end(id);
            put(again);
        }
    }
    void begin(const Start& start, Time now) {
        JobQueued ask = queued.at(start.job);
        const Shape& shape = shapes.at(ask.shape);
        JobStarted job{start.job, shape.id, start.slots, kNever};
        if (shape.time.ms > 0)
            job.expected_end = now + shape.time;
        else if (ask.predicted.p50.ms > 0)
            job.expected_end = now + ask.predicted.p50;
        job.user = ask.user, job.priority = ask.priority, job.started = now;
        job.grace = {1000}, job.checkpoints = true;
        if (ask.count > 1) {
            --ask.count;
            const auto nodes_of = [](const Slot& slot) { return slot.node; };
            if (ask.claim &&
                std::ranges::equal(ask.claim->slots, start.slots, {}, nodes_of, nodes_of))
                ask.claim = nullptr;  // Used.
            put(ask);
            job.id = {start.job.value * 1000 + static_cast<std::uint64_t>(ask.count)};
            ask.id = job.id, ask.count = 1;
        } else {
            put(JobUnqueued{start.job});
        }
        job.preemptions = preempted[job.id];
        std::string fault;
        if (!owners.bind(job, shape, nodes, fault))
            ADD_FAILURE() << "job " << start.job.value << " does not bind: " << fault;
        asked[job.id] = ask;
        put(std::move(job));
    }

    // ---- what the tests look at

    /// "1:n2,n3 2:n1", then "stop 9 for 1 (priority)", then "promised 1:n1".
    std::string show(Time now = {1000}) {
        const Plan plan = index.plan(now);
        if (plan.bookings) put(BookingsChanged{*plan.bookings});
        return text_of(plan);
    }
    static std::string text_of(const Plan& plan) {
        std::string out;
        const auto add = [&](const std::string& word) { out += (out.empty() ? "" : " ") + word; };
        const auto slots = [](JobId job, const std::vector<Slot>& of) {
            std::string text = std::to_string(job.value) + ":";
            for (std::size_t i = 0; i < of.size(); ++i)
                text += (i > 0 ? "," : "") + ("n" + std::to_string(of[i].node.value)) +
                        (of[i].spare ? "*" : "");
            return text;
        };
        for (const Start& start : plan.starts) add(slots(start.job, start.slots));
        static const char* const kStops[] = {"priority", "reclaim", "defragment", "shrink", "grow"};
        for (const Stop& stop : plan.stops)
            add("stop " + std::to_string(stop.job.value) + " for " +
                std::to_string(stop.beneficiary.value) + " (" +
                kStops[static_cast<int>(stop.reason)] + ")");
        for (const Promise& promise : plan.promises)
            add("promised " + slots(promise.job, promise.slots));
        return out;
    }
    std::string why(std::uint64_t job, Time now = {1000}) const {
        return text_of(index.why({job}, now));
    }
    static std::string text_of(const Blocked& why) {
        static const char* const kWords[] = {
            "not-evaluated", "never-fits",   "no-nodes",   "not-enough-free", "reserved",
            "not-eligible",  "held",         "dependency", "parallel",        "queue-limit",
            "borrow-limit",  "lend-limit",   "user-limit", "max-jobs",        "user-max-jobs",
            "guarantee",     "behind-first", "window",     "topology",        "victims"};
        std::string out = kWords[static_cast<int>(why.reason)];
        const auto number = [&](const char* name, std::int64_t n) {
            if (n != 0) out += std::string(" ") + name + "=" + std::to_string(n);
        };
        number("wanted", why.nodes_wanted), number("total", why.nodes_total);
        number("unusable", why.nodes_unusable), number("unfit", why.nodes_unfit);
        number("busy", why.nodes_busy), number("fit", why.nodes_fit);
        number("domain", why.nodes_domain);
        number("devices", why.devices_wanted), number("free", why.devices_free);
        number("of", why.devices_total);
        number("behind", static_cast<std::int64_t>(why.behind.value));
        number("queue", static_cast<std::int64_t>(why.resource.empty() ? 0 : why.queue.value));
        if (!why.resource.empty()) out += " " + why.resource;
        number("limit", why.limit), number("used", why.used), number("asks", why.wanted);
        number("reservation", static_cast<std::int64_t>(why.reservation.value));
        number("ahead", why.ahead), number("start", why.expected_start.ms);
        return out;
    }
    static std::string value(const Words& words, const std::string& key, const std::string& usual) {
        for (const std::string& word : words)
            if (word.starts_with(key + "=")) return word.substr(key.size() + 1);
        return usual;
    }
    static std::int64_t number(const Words& words, const std::string& key, std::int64_t usual) {
        return std::stoll(value(words, key, std::to_string(usual)));
    }
    static bool has(const Words& words, const std::string& word) {
        return std::ranges::find(words, word) != words.end();
    }
    static std::vector<std::string> list(const Words& words, const std::string& key) {
        std::vector<std::string> out;
        const std::string all = value(words, key, "");
        for (const std::string_view one : split(all, ','))
            if (!one.empty()) out.emplace_back(one);
        return out;
    }
    /// As a job of the line would ask.
    Shape shape(const Words& words) {
        Shape shape;
        shape.queue = {std::uint64_t(number(words, "queue", 1))};
        GroupAsk group;
        const std::string nodes_of = value(words, "nodes", "1");
        const std::size_t dots = nodes_of.find("..");
        group.nodes = std::stoll(nodes_of.substr(0, dots));
        if (dots != std::string::npos) group.nodes_max = std::stoll(nodes_of.substr(dots + 2));
        const std::int64_t fraction = number(words, "fraction", 0);
        const Bytes share{number(words, "share", 0) << 30};
        const bool part = fraction > 0 || share.value > 0;
        const std::int64_t gpus = part ? 1 : number(words, "gpus", 0);
        const std::string kinds = value(words, "kind", "gpu");
        for (const std::string_view kind : split(kinds, ','))
            if (gpus > 0)
                group.devices.push_back({std::string(kind),
                                         gpus,
                                         {number(words, "dmem", 0) << 30},
                                         value(words, "vendor", ""),
                                         fraction,
                                         share,
                                         value(words, "profile", "")});
        group.cpus = {number(words, "cpus", 0) * 1000};
        group.memory = {number(words, "mem", 0) << 30};
        shape.groups.push_back(group);
        const std::string role = value(words, "role", "");
        if (!role.empty()) {
            GroupAsk second;
            second.nodes = std::stoll(role);
            second.devices = {{"gpu", std::stoll(role.substr(role.find('x') + 1)), {}, ""}};
            shape.groups.push_back(second);
        }
        shape.exclusive = has(words, "exclusive");
        shape.mixed_kinds = has(words, "mixed");
        shape.preemptible = !has(words, "fixed");
        shape.share_unenforced = has(words, "any");
        shape.time = {number(words, "time", 0)};
        shape.expected_time = {number(words, "expected", 0)};
        shape.topology.required = value(words, "required", "");
        shape.topology.spares = number(words, "spares", 0);
        const std::string slice = value(words, "slice", "");
        if (!slice.empty()) {
            shape.topology.slice = std::stoll(slice);
            shape.topology.slice_required = slice.substr(slice.find('/') + 1);
        }
        for (const std::string& word : words) {
            if (!word.starts_with("only=")) continue;
            const std::size_t colon = word.find(':');
            shape.constraint.push_back({word.substr(5, colon - 5),
                                        model::ConstraintTerm::Op::In,
                                        {word.substr(colon + 1)}});
        }
        return shape;
    }
    JobQueued ask(std::uint64_t id, const Words& words) {
        JobQueued job;
        job.id = {id};
        job.user = {std::uint64_t(number(words, "user", 1))};
        job.priority = number(words, "prio", 50);
        job.submitted = {number(words, "at", static_cast<std::int64_t>(id))};
        job.eligible = {number(words, "begin", 0)};
        job.count = number(words, "count", 1);
        job.attained = number(words, "attained", 0);
        job.predicted.p50 = {number(words, "p50", 0)};
        job.predicted.p10 = job.predicted.p90 = job.predicted.p50;
        job.avoid = avoided(words);
        return job;
    }

private:
    void put_rest(Change change) {
        rest.push_back(change);
        put(std::move(change));
    }
    void rules(const Words& words) {
        model::SchedulingRules rules;
        rules.bookings_max = number(words, "bookings", rules.bookings_max);
        rules.reclaim_per_minute = number(words, "per_minute", rules.reclaim_per_minute);
        rules.preemptions_max = number(words, "preemptions", rules.preemptions_max);
        rules.resize_min_interval = {number(words, "resize", rules.resize_min_interval.ms)};
        rules.half_life = {number(words, "half_life", rules.half_life.ms)};
        rules.defragment = !has(words, "nodefrag");
        rules.conservative = has(words, "conservative");
        for (const std::string& pair : list(words, "speeds"))
            rules.kind_speeds.emplace_back(pair.substr(0, pair.find(':')),
                                           std::stoll(pair.substr(pair.find(':') + 1)));
        put_rest(RulesChanged{rules});
    }
    static model::Amounts amounts(const Words& words, const std::string& key) {
        model::Amounts out;
        for (const std::string& pair : list(words, key)) {
            const std::string name = pair.substr(0, pair.find(':'));
            const std::int64_t n = std::stoll(pair.substr(pair.find(':') + 1));
            out.push_back({name, name == "memory" ? n << 30 : n * 1000});
        }
        std::ranges::sort(out);
        return out;
    }
    void queue_of(std::uint64_t id, const Words& words) {
        model::Queue queue;
        queue.id = {id};
        queue.parent = {std::uint64_t(number(words, "parent", 0))};
        queue.name = value(words, "name", "q" + std::to_string(id));
        model::QueueSettings& to = queue.settings;
        to.guarantee = amounts(words, "guarantee"), to.limit = amounts(words, "limit");
        to.borrow_limit = amounts(words, "borrow"), to.lend_limit = amounts(words, "lend");
        to.user_limit = amounts(words, "user_limit");
        to.weight = number(words, "weight", 100);
        to.policy = *model::parse_queue_policy(value(words, "policy", "priority"));
        to.max_jobs = number(words, "max_jobs", -1);
        to.user_max_jobs = number(words, "user_max_jobs", -1);
        to.min_runtime = {number(words, "min_runtime", 0)};
        to.aging = {number(words, "aging", 0)};
        to.aging_max = number(words, "aging_max", 20);
        to.preemptible = !has(words, "fixed");
        put(QueueChanged{queue});
    }
    void reserve(std::uint64_t id, const Words& words) {
        model::Reservation reservation;
        reservation.id = {id};
        reservation.name = "r" + std::to_string(id);
        reservation.maintenance = has(words, "maintenance");
        reservation.users = list(words, "users");
        reservation.queues = list(words, "queues");
        for (const std::string& node : list(words, "nodes"))
            reservation.nodes.push_back({std::stoull(node)});
        reservation.first = {{number(words, "from", 0)}, {number(words, "to", 0)}};
        reservation.windows = {reservation.first};
        put(ReservationChanged{reservation});
    }
    NodeChanged node(std::uint64_t id, const Words& words) {
        auto facts = std::make_shared<model::NodeFacts>();
        facts->name = "n" + std::to_string(id);
        facts->cpus = {number(words, "cpus", 64) * 1000};
        facts->memory = {number(words, "mem", 256) << 30};
        facts->disk = {std::int64_t{1} << 40};
        const std::int64_t link = number(words, "link", 0), numa = number(words, "numa", 0);
        for (std::int64_t i = 0; i < number(words, "gpus", 0); ++i) {
            model::Device device;
            device.id = facts->name + "-" + std::to_string(1000 + i);
            device.kind = value(words, "kind", "h100");
            device.device_class = value(words, "class", "gpu");
            device.vendor = value(words, "vendor", "");
            device.memory = {number(words, "dmem", 80) << 30};
            if (number(words, "dmib", 0) > 0) device.memory = {number(words, "dmib", 0) << 20};
            if (link > 0) device.link_group = "l" + std::to_string(i / link);
            if (numa > 0) device.numa = static_cast<int>(i / numa);
            device.profile = value(words, "profile", "");
            device.share_enforced = !has(words, "unenforced");
            device.healthy = i >= number(words, "sick", 0);
            facts->devices.push_back(device);
        }
        for (const std::string& word : words) {
            if (!word.starts_with("label=")) continue;
            const std::size_t colon = word.find(':');
            facts->labels.emplace_back(word.substr(6, colon - 6), word.substr(colon + 1));
        }
        std::ranges::sort(facts->labels);
        NodeChanged out{{id}, facts, !has(words, "down"), {}, 0};
        const std::string path = value(words, "path", "");
        for (const std::string_view domain : split(path, '/')) out.path.emplace_back(domain);
        return out;
    }
    Shape known(Shape shape) {
        const auto at = shape_ids_.find(encode(shape));
        if (at != shape_ids_.end()) {
            shape.id = at->second;
            return shape;
        }
        const std::string key = encode(shape);
        shape.id = {shape_ids_.size() + 1};
        shape_ids_[key] = shape.id;
        put(ShapeAdded{shape});
        return shape;
    }
    void queue(std::uint64_t id, const Words& words) {
        JobQueued job = ask(id, words);
        job.shape = known(shape(words)).id;
        put(job);
    }
    void promise(std::uint64_t id, const Words& words) {
        JobQueued job = queued.at({id});
        Claim claim{{}, Time{600'000}};
        for (const std::string& node : list(words, "node")) {
            Slot slot;
            slot.node = {std::stoull(node)};
            claim.slots.push_back(slot);
        }
        job.claim = std::make_shared<const Claim>(claim);
        put(job);
    }
    static std::vector<NodeId> avoided(const Words& words) {
        std::vector<NodeId> out;
        for (const std::string_view node : split(value(words, "avoid", ""), ','))
            if (!node.empty()) out.push_back({std::stoull(std::string(node))});
        return out;
    }
    void run(std::uint64_t id, const Words& words) {
        const Shape what = known(shape(words));
        JobStarted job{{id}, what.id, {}, kNever};
        if (what.time.ms > 0) job.expected_end = {what.time.ms};
        job.expected_end = {number(words, "end", job.expected_end.ms)};
        job.user = {std::uint64_t(number(words, "user", 1))};
        job.priority = number(words, "prio", 50);
        job.started = {number(words, "started", 0)};
        job.saved = {number(words, "saved", 0)};
        job.checkpoints = job.saved.ms > 0 || has(words, "checkpoints");
        job.preemptions = number(words, "preempted", 0);
        job.attained = number(words, "attained", 0);
        job.avoid = avoided(words);
        job.grace = {number(words, "grace", 1000)};
        const std::string all = value(words, "node", "1");
        for (const std::string_view node : split(all, ',')) {
            Slot slot;
            slot.node = {std::stoull(std::string(node))};
            const GroupAsk& group = what.groups[0];
            if (std::ssize(job.slots) >= std::max(group.nodes, group.nodes_max)) slot.spare = true;
            job.slots.push_back(slot);
        }
        std::string fault;
        if (!owners.bind(job, what, nodes, fault))
            ADD_FAILURE() << "run " << id << " does not bind: " << fault;
        for (Slot& slot : job.slots)
            if (what.groups[0].devices.empty() && what.groups[0].cpus.value == 0 && !what.exclusive)
                slot.cpus = {1000};
        JobQueued again = ask(id, words);
        again.shape = what.id;
        asked[job.id] = again;
        preempted[job.id] = static_cast<int>(job.preemptions);
        put(job);
    }

    std::map<std::string, ShapeId> shape_ids_;
};

}  // namespace muster::scheduler
