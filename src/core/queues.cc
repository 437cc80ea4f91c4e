// Queues, the topology and the rules, as admins set them: validated whole, then recorded.
#include <algorithm>
#include <map>

#include "base/error_codes.h"
#include "base/text.h"
#include "base/units.h"
#include "core/stepper.h"

namespace muster::core {
namespace {

constexpr std::size_t kNameMax = 128;
constexpr std::int64_t kAmountMax = std::int64_t{1} << 60;
constexpr std::int64_t kCountMax = 1'000'000'000;

bool good_name(std::string_view name) {
    if (name.empty() || name.size() > kNameMax) return false;
    for (const std::string_view part : split(name, '/'))
        if (part.empty()) return false;
    return std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               std::string_view("._-/").find(c) != std::string_view::npos;
    });
}
std::string_view parent_of(std::string_view name) {
    const std::size_t slash = name.rfind('/');
    return slash == std::string_view::npos ? std::string_view() : name.substr(0, slash);
}
std::string text(std::string_view resource, std::int64_t value) {
    return resource == "memory" ? format_bytes({value}) : format_cpus({value});
}

/// The whole tree as it is to be, by name, and everything that is wrong with it.
class Wished {
public:
    std::map<std::string, model::QueueSettings> queues;
    std::vector<std::string> errors;

    void validate() {
        for (const auto& [name, settings] : queues) {
            const std::string queue = "queue " + name + ": ";
            if (!good_name(name))
                errors.push_back(queue +
                                 "a name is of letters, digits, '.', '_' and '-', its levels "
                                 "separated by '/', at most 128 bytes");
            const std::string parent(parent_of(name));
            if (!parent.empty() && !queues.contains(parent))
                errors.push_back(queue + "its parent " + parent + " is not there; apply that too");
            check_numbers(queue, settings);
            for (const auto& [what, amounts] : {std::pair{"guarantee", &settings.guarantee},
                                                {"limit", &settings.limit},
                                                {"borrow_limit", &settings.borrow_limit},
                                                {"lend_limit", &settings.lend_limit},
                                                {"user_limit", &settings.user_limit},
                                                {"job_limit", &settings.job_limit}})
                check_amounts(queue + what, *amounts);
            for (const model::Amount& own : settings.guarantee)
                if (const auto limit = named(settings.limit, own.resource);
                    limit && *limit < own.value)
                    errors.push_back(queue + "its guarantee of " + own.resource + ", " +
                                     text(own.resource, own.value) + ", is above its limit, " +
                                     text(own.resource, *limit));
        }
        check_sums();
    }

private:
    void check_numbers(const std::string& queue, const model::QueueSettings& s) {
        struct Bound {
            const char* field;
            std::int64_t value, low, high;
        };
        const Bound bounds[] = {
            {"weight", s.weight, 1, 1'000'000},
            {"max_jobs", s.max_jobs, -1, kCountMax},
            {"max_pending", s.max_pending, -1, kCountMax},
            {"user_max_jobs", s.user_max_jobs, -1, kCountMax},
            {"user_max_pending", s.user_max_pending, -1, kCountMax},
            {"min_runtime (ms)", s.min_runtime.ms, 0, kDurationMax.ms},
            {"default_time (ms)", s.default_time.ms, 0, kDurationMax.ms},
            {"default_priority", s.default_priority, 0, 100},
            {"max_time (ms)", s.max_time.ms, 0, kDurationMax.ms},
            {"aging (ms)", s.aging.ms, 0, kDurationMax.ms},
            {"aging_max", s.aging_max, 0, 100},
        };
        for (const Bound& bound : bounds)
            if (bound.value < bound.low || bound.value > bound.high)
                errors.push_back(queue + bound.field + ": " + std::to_string(bound.value) +
                                 " is not between " + std::to_string(bound.low) + " and " +
                                 std::to_string(bound.high));
        if (s.max_time.ms > 0 && s.default_time > s.max_time)
            errors.push_back(queue + "its default_time, " + format_duration(s.default_time) +
                             ", is above its max_time, " + format_duration(s.max_time));
        for (const auto* names : {&s.users, &s.groups})
            if (!std::ranges::is_sorted(*names) ||
                std::ranges::adjacent_find(*names) != names->end())
                errors.push_back(queue + "a user or group is named twice or out of order");
    }
    void check_amounts(const std::string& what, const model::Amounts& amounts) {
        for (std::size_t i = 0; i < amounts.size(); ++i) {
            const model::Amount& each = amounts[i];
            if (each.resource.empty()) errors.push_back(what + ": a resource has no name");
            if (each.value < 0 || each.value > kAmountMax)
                errors.push_back(what + " of " + each.resource + ": " + std::to_string(each.value) +
                                 " is not between 0 and " + std::to_string(kAmountMax));
            if (i > 0 && !(amounts[i - 1].resource < each.resource))
                errors.push_back(what + ": " + each.resource + " is named twice or out of order");
        }
    }
    /// What queues are guaranteed their parent has to have.
    void check_sums() {
        std::map<std::string, model::Amounts> sums;
        for (const auto& [name, settings] : queues)
            if (const std::string parent(parent_of(name)); !parent.empty())
                for (const model::Amount& each : settings.guarantee)
                    if (each.value >= 0 && each.value <= kAmountMax / 1024)
                        add_to(sums[parent], {each});
        for (const auto& [parent, sum] : sums) {
            const auto at = queues.find(parent);
            if (at == queues.end()) continue;
            for (const model::Amount& each : sum) {
                const std::int64_t own = amount_of(at->second.guarantee, each.resource);
                if (own < each.value)
                    errors.push_back("queue " + parent + ": its guarantee of " + each.resource +
                                     " is " + text(each.resource, own) +
                                     ", the queues below it are guaranteed " +
                                     text(each.resource, each.value) + " together");
            }
        }
    }
};

Error wrong(int number, const std::vector<std::string>& errors) {
    return {.code = Code::Invalid,
            .message = join(errors, "; "),
            .fix = "correct " + std::string(errors.size() == 1 ? "this" : "all of these") +
                   " and apply again; nothing was changed",
            .number = number};
}

}  // namespace

Status admin_only(const Caller& caller, const std::string& what) {
    if (caller.admin) return Ok{};
    return Error{.code = Code::Denied,
                 .message = what + ": only admins may, " + caller.user + " is none",
                 .fix = "ask an admin",
                 .number = errors::kAdminOnly};
}

/// With the usual settings, and its parents; not below a queue that has jobs.
void Stepper::make_queue(const std::string& name) {
    if (index_.queue_by_name.contains(name) || !good_name(name)) return;
    const std::string parent(parent_of(name));
    QueueId above;
    if (!parent.empty()) {
        make_queue(parent);
        const auto at = index_.queue_by_name.find(parent);
        if (at == index_.queue_by_name.end() || tables_.queue_use.contains(at->second.value))
            return;
        above = at->second;
    }
    Meta meta = tables_.meta;
    record(QueuePut{{QueueId{meta.next_queue++}, above, name, {}}});
    put_meta(meta);
}

Status Stepper::operator()(const ApplyQueues& event) {
    MUSTER_TRY(admin_only(event.caller, "queues"));
    Wished wished;
    std::vector<std::string> dropped;
    tables_.queues.for_each(
        [&](std::uint64_t, const Queue& queue) { wished.queues[queue.name] = queue.settings; });
    const auto before = wished.queues;
    if (event.whole)
        std::erase_if(wished.queues, [](const auto& queue) { return queue.first != "default"; });
    for (const QueueWish& wish : event.queues) {
        if (wish.drop && !before.contains(wish.name))
            wished.errors.push_back("queue " + wish.name + ": there is no such queue");
        if (wish.drop)
            wished.queues.erase(wish.name);
        else
            wished.queues[wish.name] = wish.settings;
    }
    wished.validate();
    bool in_use = false;
    const auto jobs_of = [&](const std::string& name) {
        const QueueUse* use = tables_.queue_use.find(index_.queue_by_name.find(name)->second.value);
        return use == nullptr ? std::int64_t{0} : use->jobs;
    };
    for (const auto& [name, settings] : before) {
        if (wished.queues.contains(name)) continue;
        dropped.push_back(name);
        if (jobs_of(name) == 0 && name != "default") continue;
        in_use = true;
        wished.errors.push_back("queue " + name +
                                (name == "default"
                                     ? ": jobs that name no queue go there, it cannot be dropped"
                                     : ": cannot be dropped, " + std::to_string(jobs_of(name)) +
                                           " jobs are in it; move or cancel them first"));
    }
    for (const auto& [name, settings] : wished.queues) {
        const std::string parent(parent_of(name));
        if (before.contains(name) || !before.contains(parent)) continue;
        const bool leaf = std::ranges::none_of(
            before, [&](const auto& other) { return parent_of(other.first) == parent; });
        if (!leaf || jobs_of(parent) == 0) continue;
        in_use = true;
        wished.errors.push_back("queue " + parent + ": has " + std::to_string(jobs_of(parent)) +
                                " jobs, so no queue can be made below it; move or cancel them "
                                "first");
    }
    if (!wished.errors.empty())
        return wrong(in_use ? errors::kQueueInUse : errors::kQueueTree, wished.errors);

    // Children sort after their parents by name: they are made later and dropped earlier.
    for (auto name = dropped.rbegin(); name != dropped.rend(); ++name) {
        const QueueId id = index_.queue_by_name.find(*name)->second;
        std::vector<UserId> users;
        tables_.usage.for_each([&](std::uint64_t, const Usage& usage) {
            if (usage.queue == id) users.push_back(usage.user);
        });
        for (const UserId user : users) record(UsageDropped{id, user});
        record(QueueDropped{id});
    }
    for (const auto& [name, settings] : wished.queues) {
        make_queue(name);
        Queue queue = tables_.queues.at(index_.queue_by_name.find(name)->second.value);
        if (queue.settings == settings) continue;
        queue.settings = settings;
        record(QueuePut{std::move(queue)});
    }
    tell("queues.applied", std::to_string(event.queues.size()) + " queues by " + event.caller.user);
    return Ok{};
}

Status Stepper::operator()(const SetTopology& event) {
    MUSTER_TRY(admin_only(event.caller, "topology"));
    const model::Topology& wish = event.topology;
    std::vector<std::string> errors;
    if (wish.levels.size() > model::kTopologyLevelsMax)
        errors.push_back("levels: " + std::to_string(wish.levels.size()) + " are named, at most " +
                         std::to_string(model::kTopologyLevelsMax) + " may be");
    for (auto level = wish.levels.begin(); level != wish.levels.end(); ++level) {
        if (level->empty()) errors.push_back("levels: one has no name");
        for (const char* known : {"cluster", "node", "link", "numa"})
            if (*level == known)
                errors.push_back("level " + *level + ": is always there, leave it out");
        if (std::find(wish.levels.begin(), level, *level) != level)
            errors.push_back("level " + *level + ": is named twice");
    }
    for (const auto& [host, path] : wish.hosts) {
        if (path.size() == wish.levels.size()) continue;
        errors.push_back("host " + host + ": has " + std::to_string(path.size()) +
                         " domains, there are " + std::to_string(wish.levels.size()) + " levels");
        if (errors.size() > 20) break;
    }
    if (!errors.empty()) return wrong(errors::kTopologyInvalid, errors);
    if (*tables_.topology == wish) return Ok{};
    record(TopologyPut{std::make_shared<const model::Topology>(wish)});
    tell("topology.set", "levels " + join(wish.levels, ", ") + " by " + event.caller.user);
    return Ok{};
}

Status Stepper::operator()(const SetRules& event) {
    MUSTER_TRY(admin_only(event.caller, "rules"));
    const model::SchedulingRules& wish = event.rules;
    std::vector<std::string> errors;
    const auto within = [&](const std::string& field, std::int64_t value, std::int64_t low,
                            std::int64_t high) {
        if (low <= value && value <= high) return;
        errors.push_back(field + ": " + std::to_string(value) + " is not between " +
                         std::to_string(low) + " and " + std::to_string(high));
    };
    within("half_life (ms)", wish.half_life.ms, 60'000, kDurationMax.ms);
    within("bookings_max", wish.bookings_max, 0, 256);
    within("reclaim_per_minute", wish.reclaim_per_minute, 0, kCountMax);
    within("preemptions_max", wish.preemptions_max, 0, kCountMax);
    within("resize_min_interval (ms)", wish.resize_min_interval.ms, 0, kDurationMax.ms);
    for (const auto& [name, list] : {std::pair{"kind_weights", &wish.kind_weights},
                                     std::pair{"kind_speeds", &wish.kind_speeds}}) {
        if (!std::ranges::is_sorted(*list)) errors.push_back(std::string(name) + ": not sorted");
        for (std::size_t i = 0; i < list->size(); ++i) {
            const auto& [kind, value] = (*list)[i];
            within(std::string(name) + " of " + kind, value, 1, 1'000'000);
            if (i > 0 && (*list)[i - 1].first == kind)
                errors.push_back(std::string(name) + ": " + kind + " is named twice");
        }
    }
    if (!errors.empty()) return wrong(errors::kJobOutOfRange, errors);
    if (tables_.rules == wish) return Ok{};
    // What was used until now was used under the old half-life.
    std::vector<std::pair<QueueId, UserId>> all;
    tables_.usage.for_each(
        [&](std::uint64_t, const Usage& usage) { all.emplace_back(usage.queue, usage.user); });
    for (const auto& [queue, user] : all) advance_usage(queue, user);
    record(RulesPut{wish});
    tell("rules.set", "by " + event.caller.user);
    return Ok{};
}

}  // namespace muster::core
