// What two indexes that were fed the same facts have in common, whatever the order.
#include "base/hash.h"
#include "scheduler/index.h"

namespace muster::scheduler {
namespace {

void add(Fnv& fnv, const Slot& slot) {
    fnv.add(slot.node.value), fnv.add(slot.group), fnv.add(slot.alternative);
    fnv.add(slot.devices.size());
    for (const std::string& device : slot.devices) fnv.add(device);
    for (const std::int64_t n : {slot.cpus.value, slot.memory.value, slot.disk.value})
        fnv.add(static_cast<std::uint64_t>(n));
}
void add(Fnv& fnv, const NodeEntry& node) {
    fnv.add(node.id.value);
    fnv.add(model::encode(*node.facts));
    fnv.add(node.usable ? 1u : 0u);
    for (const std::string& domain : node.path) fnv.add(domain);
    for (const std::int64_t n : {node.cpus.value, node.memory.value, node.disk.value,
                                 static_cast<std::int64_t>(node.slots), node.risk})
        fnv.add(static_cast<std::uint64_t>(n));
    for (const NodePool& share : node.pools) {
        fnv.add(static_cast<std::uint64_t>(share.free + 1'000'000));
        for (const Cell& cell : share.cells)
            fnv.add(static_cast<std::uint64_t>(cell.free + 1'000'000));
        for (const PartBook& part : share.parts)
            fnv.add(part.device), fnv.add(static_cast<std::uint64_t>(part.milli)),
                fnv.add(static_cast<std::uint64_t>(part.memory.value));
    }
    for (const NodeHold& hold : node.held) fnv.add(hold.job->start.id.value), fnv.add(hold.slot);
    for (const NodeClaim& claim : node.claims) fnv.add(claim.job.value);
}

}  // namespace

std::uint64_t PlanIndex::digest() const {
    Fnv fnv;
    for (const auto& [id, node] : state_->nodes) add(fnv, node);
    for (const auto& [id, entry] : state_->shapes) fnv.add(id.value), fnv.add(encode(entry.shape));
    for (const auto& [id, queued] : state_->queued) {
        const JobQueued& ask = queued.ask;
        for (const std::uint64_t n : {id.value, ask.shape.value, ask.user.value}) fnv.add(n);
        for (const std::int64_t n : {ask.priority, ask.submitted.ms, ask.eligible.ms, ask.count,
                                     ask.predicted.p50.ms, ask.predicted.p90.ms, ask.attained})
            fnv.add(static_cast<std::uint64_t>(n));
        for (const NodeId node : ask.avoid) fnv.add(node.value);
        if (ask.claim != nullptr)
            for (const Slot& slot : ask.claim->slots) add(fnv, slot);
    }
    for (const auto& [id, started] : state_->started) {
        const JobStarted& start = started.start;
        for (const std::uint64_t n : {id.value, start.shape.value, start.user.value}) fnv.add(n);
        for (const std::int64_t n : {start.expected_end.ms, start.priority, start.started.ms,
                                     start.preemptions, start.saved.ms, start.attained})
            fnv.add(static_cast<std::uint64_t>(n));
        for (const NodeId node : start.avoid) fnv.add(node.value);
        fnv.add(started.stopping ? 1u : 0u), fnv.add(started.beneficiary.value);
        for (const Slot& slot : start.slots) add(fnv, slot);
    }
    for (const auto& [id, queue] : state_->queues) {
        if (queue.used[0] != 0 || queue.used[1] != 0 || queue.used[2] != 0) fnv.add(id.value);
        for (std::size_t i = 0; i < 3; ++i)
            if (queue.used[i] != 0) fnv.add(static_cast<std::uint64_t>(queue.used[i]));
        for (const auto& [user, book] : queue.users) {
            const UsageBook& usage = book.usage;
            if (usage.devices == 0 && usage.cpus == 0 && usage.memory == 0) continue;
            fnv.add(id.value), fnv.add(user.value);
            for (const std::int64_t n : {usage.devices, usage.cpus, usage.memory, usage.as_of.ms})
                fnv.add(static_cast<std::uint64_t>(n));
        }
    }
    for (const Booking& booking : state_->bookings) {
        fnv.add(booking.job.value), fnv.add(static_cast<std::uint64_t>(booking.at.ms));
        for (const Slot& slot : booking.slots) add(fnv, slot);
    }
    return fnv.hash();
}

}  // namespace muster::scheduler
