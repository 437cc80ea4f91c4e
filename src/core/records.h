// Records as the store keeps them: versioned bytes, one an entity, and the way back.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "base/result.h"
#include "core/state.h"

namespace muster::core {

/// Mirrors ports::RecordKind (core may not include ports); a static_assert in controller/ compares.
enum class RecordKind : std::uint8_t {
    Meta = 1,
    Job,
    Node,
    Queue,
    Spec,
    User,
    Token,
    Idempotency,
    Shape,
    Topology,  // One, with id 0.
    Rules,     // One, with id 0.
    Reservation,
    Usage,  // By usage_key().
    RunTimes,
};
struct RecordName {
    RecordKind kind;
    std::uint64_t id = 0;
    friend auto operator<=>(const RecordName&, const RecordName&) = default;
};

/// Which record a change touches; empty for soft ones.
std::optional<RecordName> record_of(const Change& change);
/// The record's bytes as State has it now; empty: it was dropped.
std::optional<std::string> encode_record(const State& state, RecordName name);
/// The change that brings a stored record back. Apply in any order, then call finish_load().
Result<Change> decode_record(RecordName name, std::string_view bytes);
/// Rebuilds what is derived, and checks that every reference resolves.
Status finish_load(State& state);

}  // namespace muster::core
