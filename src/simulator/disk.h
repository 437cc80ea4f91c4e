// The controller's modelled disk: a write-ahead log of checksummed frames over a durable image.
//
// What was synced survives a crash. Of what was written since, a crash keeps any prefix of bytes,
// and the last of them may be garbage: recovery must believe whole frames only.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/prng.h"
#include "base/result.h"
#include "ports/store.h"
#include "simulator/tally.h"

namespace muster::simulator {

class Disk {
public:
    using Image = std::map<ports::RecordKey, std::string>;

    Disk(Prng& random, Tally& tally) : random_(random), tally_(tally) {}

    /// Codes: NoSpace (nothing was kept), Conflict (an older term). Safe only after sync().
    Status write(const ports::Batch& batch);
    void sync() { synced_ = log_.size(); }
    void take_term(std::uint64_t term);  // Synced at once.
    void crash();
    /// What a process that starts now finds: every whole frame. Also cuts the torn tail off.
    const Image& recover();
    std::uint64_t term() const { return term_; }
    void set_full(bool full) { full_ = full; }
    bool full() const { return full_; }

private:
    void apply_frame(std::string_view payload);

    Prng& random_;
    Tally& tally_;
    Image image_;      // Frames folded in at the last recovery.
    std::string log_;  // Frames since.
    std::size_t synced_ = 0;
    std::uint64_t term_ = 0;
    bool full_ = false;
};

}  // namespace muster::simulator
