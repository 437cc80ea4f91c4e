// The seam to durable state: one record an entity, atomic batches, a fence.
//
// commit() returns after the batch is safe against power loss, or with an Error and nothing of it
// stored. A batch of an older term is refused (Conflict): a deposed leader cannot write.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster::ports {

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
    Topology,
    Rules,
    Reservation,
    Usage,
    RunTimes,
};
struct RecordKey {
    RecordKind kind;
    std::uint64_t id = 0;
    friend auto operator<=>(const RecordKey&, const RecordKey&) = default;
};
struct Record {
    RecordKey key;
    std::string bytes;
};

/// One line of the event log, for watchers and people. Its sequence is given by the log: dense,
/// rising.
struct LoggedEvent {
    std::uint64_t sequence = 0;
    std::int64_t at_ms = 0;
    std::string json;  // One object, as it is sent.
};

struct Batch {
    std::uint64_t term = 0;
    std::vector<Record> puts;
    std::vector<RecordKey> drops;
    std::vector<LoggedEvent> events;  // In order; sequence set by the caller, next after the last.
};

class Store {
public:
    virtual ~Store() = default;
    /// Takes the fence: refuses commits of every smaller term from now on, durably.
    virtual Status take_term(std::uint64_t term) = 0;
    /// Every record, in key order; called once, at start, before any commit.
    virtual Status load(const std::function<Status(Record)>& each) = 0;
    /// Codes: NoSpace (kept nothing; may be retried), Conflict (fenced), Corrupt (EIO or a failed
    /// sync: what is on disk is not known; the process must end).
    virtual Status commit(const Batch& batch) = 0;
    /// Events with sequence > `after`, at most `limit`. Gone when they were dropped already.
    virtual Result<std::vector<LoggedEvent>> events_after(std::uint64_t after,
                                                          std::size_t limit) = 0;
    virtual std::uint64_t last_event() = 0;
    virtual std::uint64_t term() = 0;
    /// True below the watermark: new work is to be refused (507).
    virtual bool nearly_full() = 0;
};

}  // namespace muster::ports
