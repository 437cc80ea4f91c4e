// What follows from the tables: names, timers, uses. Never stored; check() derives it again.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/state.h"

namespace muster::core {

/// A stop that lasts so much longer than its grace is reported (F45).
constexpr Duration kStopOverdue{30'000};

enum class TimerKind : std::uint8_t { Job, Node, Token, Idempotency };
struct Timer {
    Time at;
    TimerKind kind = TimerKind::Job;
    std::uint64_t id = 0;
    friend auto operator<=>(const Timer&, const Timer&) = default;
};

struct Indexes {
    /// False while records are loaded, in any order: then changes go into their tables only, and
    /// rebuild_indexes() does the rest.
    bool live = false;
    std::map<std::string, NodeId, std::less<>> node_by_name;
    std::map<std::uint64_t, NodeId> node_by_session;
    std::map<std::string, QueueId, std::less<>> queue_by_name;
    std::map<std::string, UserId, std::less<>> user_by_name;
    std::set<std::pair<std::uint64_t, SpecId>> spec_by_content;
    std::map<std::string, ShapeId, std::less<>> shape_by_ask;
    std::map<ShapeId, std::uint32_t> shape_uses;
    std::map<JobId, std::set<JobId>> dependents;
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> idempotency_by_key;
    std::map<std::string, std::set<NodeId>, std::less<>> leaves;  // With a peer port.
    std::uint64_t leaves_changes = 0;  // Rises when anybody's peers may have changed. No truth.
    std::set<Timer> timers;
    std::array<std::int64_t, 4> health{};  // Nodes that were ever heard of, by NodeHealth.
    /// The specs used last, decoded. A cache: it holds no truth.
    mutable std::array<std::pair<SpecId, std::shared_ptr<const model::JobSpec>>, 256> decoded;
};

/// When a record wants a Tick; kNever: not by itself.
Time job_wake(const State& state, JobId id);
Time node_wake(const State& state, NodeId id);
/// When the node's strays should long have ended; kNever: it has none that were told to.
Time strays_overdue(const State& state, NodeId id);
/// Timers of every record, made anew (after Settings or the freeze changed).
void rebuild_timers(State& state);
/// Everything derived, made anew from the tables of records.
void rebuild_indexes(State& state);

/// Ready, linked, held back by nobody and without strays.
bool usable(const State& state, NodeId id);
std::shared_ptr<const model::JobSpec> cached_spec(const State& state, SpecId id);
/// Whether the scheduler is to know of it as waiting.
bool queued(const Job& job);
/// Elements of an array that may start now.
std::int64_t startable(const Job& parent, const model::Array& array);
std::string node_name(const State& state, NodeId id);
/// SIGTERM comes so long before the end of a grace (the preemption contract).
Duration stop_lead(Duration grace);

}  // namespace muster::core
