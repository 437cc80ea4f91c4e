#include "rest/job_filter.h"

#include <algorithm>

#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "rest/body.h"
#include "rest/ids.h"

namespace muster::rest {
namespace {

using model::JobState;

constexpr JobState kStates[] = {JobState::Pending,  JobState::Starting, JobState::Running,
                                JobState::Stopping, JobState::Fencing,  JobState::Succeeded,
                                JobState::Failed,   JobState::Cancelled};

constexpr std::uint32_t bit(JobState state) {
    return std::uint32_t{1} << static_cast<unsigned>(state);
}

Status parse_states(const std::vector<std::string>& words, JobFilter& filter) {
    std::uint32_t states = 0;
    for (const std::string& word : words) {
        const std::string name = lower(word);
        if (name == "held") {
            filter.held = true;
            continue;
        }
        std::uint32_t add = 0;
        for (const JobState state : kStates) {
            const bool live = !model::ended(state);
            const bool is_active = model::active(state);
            if (name == model::to_text(state) || (name == "active" && is_active) ||
                (name == "live" && live) || (name == "ended" && !live) || name == "all") {
                add |= bit(state);
            }
        }
        if (add == 0) {
            return bad_parameter("state", word,
                                 "pending, held, starting, running, stopping, fencing, "
                                 "succeeded, failed, cancelled, or active, live, ended, all")
                .error;
        }
        states |= add;
    }
    filter.states = states;
    return Ok{};
}

constexpr std::uint32_t kEnded =
    bit(JobState::Succeeded) | bit(JobState::Failed) | bit(JobState::Cancelled);

bool one_of(const std::vector<std::string>& wanted, std::string_view have) {
    return wanted.empty() || std::ranges::find(wanted, have) != wanted.end();
}

std::string_view unquoted(std::string_view json) {
    return json.size() < 2 || json.front() != '"' ? json : json.substr(1, json.size() - 2);
}
std::string quoted(std::string_view text) {
    JsonWriter json;
    json.value(text);
    return std::move(json).text();
}

/// Of a history record, as the job was rendered when it ended.
bool ran_on(std::string_view record, std::string_view node) {
    // Names of nodes are letters that stand for themselves; a string ends where its quotes do.
    return member_of(record, "node_names").find(quoted(node)) != std::string_view::npos;
}
bool has_labels(std::string_view record,
                const std::vector<std::pair<std::string, std::string>>& wanted) {
    const std::string_view labels = member_of(record, "labels");
    return std::ranges::all_of(wanted, [&](const auto& label) {
        const std::string name = quoted(label.first), value = quoted(label.second);
        bool found = false;
        for_each_member(labels, [&](std::string_view have, std::string_view is) {
            found = found || (have == unquoted(name) && (label.second == "*" || is == value));
        });
        return found;
    });
}

}  // namespace

bool glob(std::string_view pattern, std::string_view text) {
    std::size_t p = 0, t = 0, star = std::string_view::npos, retry = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            retry = t;
        } else if (p < pattern.size() && pattern[p] == text[t]) {
            ++p, ++t;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            t = ++retry;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
}

Result<JobFilter> parse_job_filter(const Call& call) {
    JobFilter filter;
    const auto states = list_parameter(call, "state");
    filter.states = 0x1f;  // Live ones.
    if (!states.empty()) {
        MUSTER_TRY(parse_states(states, filter));
    } else {
        // A job that has just ended is shown until history has it.
        filter.states |= kEnded;
    }
    filter.ended = call.query_flag("all") || (!states.empty() && (filter.states & kEnded) != 0);
    if (call.query_flag("all") && states.empty()) filter.states = 0xff;
    filter.live = filter.held || (filter.states & ~kEnded) != 0;
    filter.users = list_parameter(call, "user");
    for (std::string& user : filter.users) {
        if (user == "me") user = call.who.caller.user;
    }
    filter.queues = list_parameter(call, "queue");
    filter.name = call.query("name");
    filter.node = call.query("node");
    for (const auto& [name, value] : call.request.query) {
        if (name != "label" || value.empty()) continue;
        const std::size_t equals = value.find('=');
        if (equals == std::string::npos)
            filter.labels.emplace_back(value, "*");
        else
            filter.labels.emplace_back(value.substr(0, equals), value.substr(equals + 1));
    }
    const std::string array = call.query("array");
    if (!array.empty()) {
        MUSTER_LET(path, parse_job_path(array));
        filter.array = path.job.value;
    }
    for (std::string& id : list_parameter(call, "id")) {
        if (const auto path = parse_job_path(id); !path) return path.error();
        filter.ids.insert(std::move(id));
    }
    MUSTER_LET(since, since_parameter(call, "since"));
    filter.since = since;
    return filter;
}

JobMatcher::JobMatcher(const JobFilter& filter, const core::View& view, JobFactsCache& facts)
    : filter_(filter), view_(view), facts_(facts) {
    if (!filter.users.empty()) {
        view.users.for_each([&](std::uint64_t id, const core::User& user) {
            if (one_of(filter.users, user.name)) users_.insert(static_cast<std::uint32_t>(id));
        });
        none_ = none_ || users_.empty();
    }
    if (!filter.queues.empty()) {
        view.queues.for_each([&](std::uint64_t id, const core::Queue& queue) {
            if (one_of(filter.queues, queue.name)) queues_.insert(static_cast<std::uint32_t>(id));
        });
        none_ = none_ || queues_.empty();
    }
    if (!filter.node.empty()) {
        const core::Node* node = find_node_named(view, filter.node);
        if (node != nullptr) node_ = node->id;
        none_ = none_ || node == nullptr;
    }
}

bool JobMatcher::matches(const core::Job& job) const {
    const bool held = filter_.held && job.held && job.state == JobState::Pending;
    if (none_ || !(held || filter_.accepts_state(job.state))) return false;
    if (!users_.empty() && !users_.contains(job.user)) return false;
    if (!queues_.empty() && !queues_.contains(job.queue)) return false;
    if (filter_.array != 0 && job.array_job != filter_.array) return false;
    if (filter_.since.ms != 0 && model::ended(job.state) && job.since < filter_.since) return false;
    if (!filter_.ids.empty() && !filter_.ids.contains(job_name(job)) &&
        !filter_.ids.contains(std::to_string(job.id.value))) {
        return false;
    }
    if (!filter_.name.empty()) {
        const core::Spec* spec = view_.specs.find(job.spec.value);
        if (spec == nullptr || !spec->name || !glob(filter_.name, *spec->name)) return false;
    }
    if (node_) {
        // Where it runs; of an ended one, where it ran last.
        const core::JobExtra& extra = core::extra_of(job);
        const bool here =
            extra.allocation
                ? std::ranges::find(extra.allocation->slots, node_, &core::Placed::node) !=
                      extra.allocation->slots.end()
                : model::ended(job.state) &&
                      std::ranges::find(extra.last_nodes, node_) != extra.last_nodes.end();
        if (!here) return false;
    }
    if (filter_.labels.empty()) return true;
    const auto facts = facts_.get(view_, job.spec);
    return std::ranges::all_of(filter_.labels, [&](const auto& wanted) {
        return std::ranges::any_of(facts->labels, [&](const auto& label) {
            return label.first == wanted.first &&
                   (wanted.second == "*" || label.second == wanted.second);
        });
    });
}

bool matches(const JobFilter& filter, const ports::EndedJob& job) {
    bool state_wanted = false;
    for (const JobState state : kStates) {
        state_wanted =
            state_wanted || (filter.accepts_state(state) && job.state == model::to_text(state));
    }
    if (!state_wanted || !one_of(filter.users, job.user) || !one_of(filter.queues, job.queue)) {
        return false;
    }
    if (!filter.name.empty() && !glob(filter.name, job.name)) return false;
    if (job.ended_ms < filter.since.ms) return false;
    if (!filter.ids.empty()) {
        const std::string element =
            std::to_string(job.array_job) + "_" + std::to_string(job.array_element);
        if (!filter.ids.contains(std::to_string(job.job.value)) &&
            !(job.array_job != 0 && filter.ids.contains(element))) {
            return false;
        }
    }
    return (filter.node.empty() || ran_on(job.json, filter.node)) &&
           (filter.labels.empty() || has_labels(job.json, filter.labels));
}

}  // namespace muster::rest
