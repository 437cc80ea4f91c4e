// A controller without its network: the loop, planner, archiver and stores of the real one, on
// disk, wired in the same order. Its agents are modelled: each order is answered at once, by the
// thread that would have sent it, and every node sends its heartbeats.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/step.h"

namespace muster::bench {

class Cluster {
public:
    enum class Tasks : std::uint8_t { RunOn, EndAtOnce };
    /// All nodes are ready and on disk when it returns.
    static Result<std::unique_ptr<Cluster>> start(const std::string& folder, int nodes,
                                                  Tasks tasks);
    ~Cluster();
    Cluster(const Cluster&) = delete;
    Cluster& operator=(const Cluster&) = delete;

    /// Asked as a client would, without waiting for the answer. `key`: against submitting twice.
    void submit(const std::string& user, const std::string& key, model::JobSpec spec);
    /// Made durable before it returns.
    Status apply_queues(std::vector<core::QueueWish> queues);

    struct Counts {
        std::int64_t acknowledged = 0;  // Submits, durable.
        std::int64_t refused = 0;
        std::int64_t orders = 0;   // Tasks whose start was durable and sent.
        std::int64_t started = 0;  // Jobs: all their orders are out.
        std::int64_t ended = 0;    // Jobs, durably.
        friend bool operator==(const Counts&, const Counts&) = default;
    };
    Counts counts() const;
    /// What went wrong first; "" = nothing.
    std::string trouble() const;
    /// Until `enough`, or for so long without any progress: then false.
    bool wait(const std::function<bool(const Counts&)>& enough,
              std::chrono::milliseconds patience = std::chrono::minutes(1)) const;

    /// Ends a task that runs, chosen by `choice`. False: none runs.
    bool end_one(std::uint64_t choice);
    static std::string cpu_times();
    std::uint64_t batches() const;
    std::uint64_t plans() const;

    struct Impl;

private:
    explicit Cluster(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace muster::bench
