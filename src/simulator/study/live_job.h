// A job that is live in a study: what it really does, where it stands, what it has cost so far.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/id.h"
#include "model/job.h"
#include "protocol/messages.h"
#include "simulator/models/rate.h"
#include "simulator/study/study.h"

namespace muster::simulator::study {

/// Work in parts per million of a millisecond: a rate in ppm times milliseconds, exactly.
constexpr std::int64_t kUnits = models::kMillion;

enum class Phase : std::uint8_t {
    Idle,       // Holds nothing, starts, stops, or hangs because a node of it is dead.
    Restoring,  // Reads its checkpoint, until `until`.
    Working,
    Saving,   // Writes one, until `until`.
    Leaving,  // The same, on notice: then it ends.
};

struct LiveTask {
    std::uint32_t host = 0;
    bool started = false;   // Its node's runtime has the order.
    bool ready = false;     // At the barrier.
    bool released = false;  // Runs.
    bool ended = false;
    model::Cause stop = model::Cause::None;  // Told to stop; why.
};

struct LiveJob {
    JobId id;
    std::string name, user, queue;
    Time submit;
    JobModel model;
    std::int64_t nodes_asked = 1, devices_asked = 0;
    Duration interval;  // Between checkpoints, of the attempt under way; 0: none.

    // What it holds, as core's books say.
    bool holds = false;
    Time held_since;
    models::RunningJob running;
    std::vector<std::pair<std::uint32_t, std::int64_t>> parts;  // Host, thousandths of devices.
    std::int64_t width = 0;    // Thousandths of devices; of nodes, if it has none.
    std::int64_t devices = 0;  // Thousandths.
    std::int64_t busy_mw = 0, idle_mw = 0;
    std::int64_t limit_ppm = models::kMillion;  // What power limits leave of its speed.

    // The attempt under way.
    std::uint32_t epoch = 0;
    std::vector<LiveTask> tasks;  // By rank.
    std::uint32_t ready = 0, released = 0;
    bool barrier = false;
    bool finished = false;  // Its work is done.
    bool in_rates = false;  // The rate model was told that it began.
    model::Cause notice = model::Cause::None;

    Phase phase = Phase::Idle;
    Time since, until;
    std::int64_t ppm = 0;
    std::int64_t rate_until = 0;  // Units.
    std::int64_t done = 0;        // Units of work.
    std::int64_t unsaved_ms = 0;  // Of progress, since the newest checkpoint.
    std::int64_t busy_ms = 0;     // Of progress, in what it holds.
    std::uint32_t serial = 0;     // Of its JobDue.

    // Since it was submitted.
    std::optional<Time> first_start;
    std::int64_t held_ms = 0, held = 0, useful = 0, lost = 0;
    std::int64_t energy_mj = 0;
    std::int64_t preemptions = 0, failures = 0, attempts = 0;

    std::int64_t work_units() const { return model.work_ms * kUnits; }
};

}  // namespace muster::simulator::study
