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

enum class TimerKind : std::uint8_t { Job, Node, Token, Idempotency, Reservation };
struct Timer {
    Time at;
    TimerKind kind = TimerKind::Job;
    std::uint64_t id = 0;
    friend auto operator<=>(const Timer&, const Timer&) = default;
};

/// What of a user's jobs in one queue runs, in a second: as Usage counts it.
struct UsageRate {
    std::int64_t devices = 0, cpus = 0, memory = 0;  // Thousandths, thousandths, MiB.
    friend bool operator==(const UsageRate&, const UsageRate&) = default;
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
    std::map<std::pair<QueueId, UserId>, QueueUse> user_use;     // In the queue and below it.
    std::map<std::pair<QueueId, UserId>, UsageRate> usage_rate;  // In that very queue.
    std::map<UserId, std::map<std::string, std::uint64_t, std::less<>>> run_times_by_name;
    std::set<std::pair<Time, std::uint64_t>> run_times_by_age;
    std::map<std::string, ReservationId, std::less<>> reservation_by_name;
    std::map<NodeId, std::set<JobId>> claims;       // Jobs that are promised something there.
    std::map<JobId, std::set<JobId>> stopping_for;  // Beneficiary, to those that stop for it.
    std::set<JobId> booked;
    std::set<Timer> timers;
    std::array<std::int64_t, 4> health{};  // Nodes that were ever heard of, by NodeHealth.
    /// The specs used last, decoded. A cache: it holds no truth.
    mutable std::array<std::pair<SpecId, std::shared_ptr<const model::JobSpec>>, 256> decoded;
};

/// When a record wants a Tick; kNever: not by itself.
Time job_wake(const State& state, JobId id);
Time node_wake(const State& state, NodeId id);
/// When the first window of a reservation is over.
Time reservation_wake(const State& state, ReservationId id);
/// When a job of unknown length turns out to run longer than was thought; kNever: its end is known.
Time overrun_wake(const JobExtra& extra);
/// When the node's strays should long have ended; kNever: it has none that were told to.
Time strays_overdue(const State& state, NodeId id);
/// Timers of every record, made anew (after Settings or the freeze changed).
void rebuild_timers(State& state);
/// Everything derived, made anew from the tables of records.
void rebuild_indexes(State& state);

/// The history of jobs of that user and name; null: there is none.
const RunTimes* run_times_of(const State& state, UserId user, std::string_view name);
/// By what the shape says, else by the history that the table of predictions has.
scheduler::Prediction prediction_of(const View& view, const Job& job);
scheduler::Prediction prediction_of(const scheduler::Shape& shape,
                                    const scheduler::Prediction* history);
/// What an attempt takes of the limits of its queue: devices, "cpus", "memory".
model::Amounts running_of(const Allocation& allocation);
UsageRate rate_of(const Allocation& allocation);
/// Fills in what the attempt takes of limits and shares, by its nodes' facts and the rules.
void weigh(const State& state, Allocation& allocation);
/// When that attempt of `job` will be over; kNever: not known.
Time expected_end(const State& state, const Job& job, const Allocation& allocation, Time deadline,
                  const scheduler::Prediction& predicted);
void add_to(model::Amounts& sum, std::string_view resource, std::int64_t value);
void add_to(model::Amounts& sum, const model::Amounts& more, std::int64_t sign = 1);
void add_to(model::Amounts& sum, const Allocation& allocation, std::int64_t sign);
std::int64_t amount_of(const model::Amounts& amounts, std::string_view resource);
/// The value of a resource that is named; nothing if it is not.
std::optional<std::int64_t> named(const model::Amounts& amounts, std::string_view resource);

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
