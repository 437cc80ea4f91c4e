#include "rest/log_sources.h"

#include <charconv>

#include "base/error_codes.h"
#include "rest/body.h"
#include "rest/ids.h"

namespace muster::rest {
namespace {

Error no_attempt(const std::string& job, std::uint32_t attempt) {
    return Error{.code = Code::NotFound,
                 .message = "job " + job + " has no attempt " + std::to_string(attempt),
                 .fix = "see its attempts with `muster status " + job + "`",
                 .number = errors::kNoSuchRank};
}

std::uint32_t number_in(std::string_view text, std::uint32_t fallback) {
    std::uint32_t number = fallback;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

/// Only the node that decided how an old attempt ended is remembered.
void add_decider(const core::View& view, std::uint32_t rank, std::string_view node,
                 std::vector<LogRank>& ranks) {
    const core::Node* known = find_node_named(view, node);
    for (std::uint32_t r = 0; r <= rank; ++r)
        ranks.push_back({.rank = r, .node = {}, .node_name = {}});
    ranks.back().node_name = node;
    if (known != nullptr) ranks.back().node = known->id;
}

}  // namespace

Result<LogSources> log_sources(const core::View& view, const core::Job& job,
                               std::optional<std::uint32_t> attempt) {
    const core::JobExtra& extra = core::extra_of(job);
    LogSources sources{.job = job.id, .ranks = {}};
    const auto add = [&](NodeId node) {
        sources.ranks.push_back({.rank = static_cast<std::uint32_t>(sources.ranks.size()),
                                 .node = node,
                                 .node_name = node_name(view, node)});
    };
    if (extra.allocation && (!attempt || *attempt == extra.allocation->epoch)) {
        sources.attempt = extra.allocation->epoch;
        sources.started = sources.active = true;
        for (const core::Placed& slot : extra.allocation->slots)
            if (!slot.spare) add(slot.node);
        return sources;
    }
    if (extra.attempts.empty()) {
        if (attempt) return no_attempt(job_name(job), *attempt);
        return sources;
    }
    sources.started = true;
    const core::Attempt& newest = extra.attempts.back();
    sources.attempt = attempt.value_or(newest.epoch);
    if (sources.attempt == newest.epoch) {
        for (const NodeId node : extra.last_nodes) add(node);
        return sources;
    }
    for (const core::Attempt& past : extra.attempts) {
        if (past.epoch != sources.attempt) continue;
        add_decider(view, past.rank, past.node, sources.ranks);
        return sources;
    }
    return no_attempt(job_name(job), sources.attempt);
}

Result<LogSources> log_sources(const core::View& view, const ports::EndedJob& job,
                               std::optional<std::uint32_t> attempt) {
    LogSources sources{.job = job.job, .started = job.started_ms != 0, .ranks = {}};
    bool found = false;
    std::string_view past = member_of(job.json, "attempts");
    std::uint32_t newest = 0;
    // The list of objects, one by one.
    for (std::size_t at = past.find('{'); at != std::string_view::npos;) {
        const std::size_t end = end_of_value(past, at);
        const std::string_view each = past.substr(at, end - at);
        newest = number_in(member_of(each, "attempt"), newest);
        if (attempt && *attempt == newest) {
            found = true;
            std::string_view name = member_of(each, "node");
            if (name.size() >= 2) name = name.substr(1, name.size() - 2);
            add_decider(view, number_in(member_of(each, "rank"), 0), name, sources.ranks);
        }
        at = past.find('{', end);
    }
    sources.attempt = attempt.value_or(newest);
    if (attempt && !found) return no_attempt(std::to_string(job.job.value), *attempt);
    if (sources.attempt != newest) return sources;
    sources.ranks.clear();
    const std::string_view names = member_of(job.json, "node_names");
    for (std::size_t at = names.find('"'); at != std::string_view::npos;) {
        const std::size_t end = end_of_value(names, at);
        const std::string_view name = names.substr(at + 1, end - at - 2);
        const core::Node* node = find_node_named(view, name);
        sources.ranks.push_back({.rank = static_cast<std::uint32_t>(sources.ranks.size()),
                                 .node = node != nullptr ? node->id : NodeId{},
                                 .node_name = std::string(name)});
        at = names.find('"', end);
    }
    return sources;
}

}  // namespace muster::rest
