// Modelled users: they submit and act, wait for an answer, and ask again when none comes, with the
// same idempotency key. What they were told they remember.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "base/prng.h"
#include "core/step.h"
#include "simulator/event_queue.h"
#include "simulator/tally.h"

namespace muster::simulator {

class Clients {
public:
    using Done = std::function<void(const Result<core::Answer>&)>;
    /// Hands a request to the controller; the reply may come late, or never.
    using Reach = std::function<void(core::Event, Done)>;

    Clients(EventQueue& queue, Prng& random, Tally& tally, Reach reach)
        : queue_(queue), random_(random), tally_(tally), reach_(std::move(reach)) {}

    /// `done` is called once, with an answer or a refusal that asking again would not change.
    void ask(core::Event event, Done done);
    void set_loss(unsigned per_mille) { loss_per_mille_ = per_mille; }
    std::size_t waiting() const { return asks_.size(); }

private:
    struct Ask {
        core::Event event;
        Done done;
        int tries = 0;
    };
    void try_now(std::uint64_t id);
    void heard(std::uint64_t id, const Result<core::Answer>& answer);
    void retry(std::uint64_t id, Duration wait);

    EventQueue& queue_;
    Prng& random_;
    Tally& tally_;
    Reach reach_;
    unsigned loss_per_mille_ = 0;
    std::map<std::uint64_t, Ask> asks_;
    std::uint64_t next_ = 1;
};

}  // namespace muster::simulator
