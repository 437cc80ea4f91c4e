// A job's record. Fields at their defaults cost one byte together: a queued job is some 40 bytes.
#include <bit>

#include "base/bytes.h"
#include "core/record_codec.h"

namespace muster::core {
namespace {

// 2: the signal that ended an attempt. 3: spares, parts of devices, preemption.
constexpr std::uint64_t kVersion = 3;

// Sections of a JobExtra that are there, as bits.
enum Section : std::uint64_t {
    kAllocation = 1,
    kAttempts = 2,
    kWaitingFor = 4,
    kArray = 8,
    kAvoid = 16,
    kCheckpoint = 32,
    kHold = 64,
    kEnd = 128,
    kTimes = 256,
    kLosses = 512,
    kDecided = 1024,
    kLastNodes = 2048,
    kLastProgress = 4096,
    kClaim = 8192,
    kPreemption = 16384,
    kAll = 32767,
};

void put(Writer& out, Time time) {
    out.signed_number(time.ms);
}
void put(Writer& out, const Placed& slot) {
    out.number(slot.node.value);
    out.number(slot.group);
    out.number(slot.alternative);
    out.number(slot.devices.size());
    for (const std::string& device : slot.devices) out.text(device);
    out.signed_number(slot.cpus.value);
    out.signed_number(slot.memory.value);
    out.signed_number(slot.disk.value);
    // Thousandths of a part, and whether it is a spare: mostly one byte of 0.
    out.number(static_cast<std::uint64_t>(slot.share) << 1 | (slot.spare ? 1 : 0));
    if (slot.share != 0) out.signed_number(slot.share_memory.value);
}
void put(Writer& out, const Allocation& allocation) {
    out.number(allocation.epoch);
    put(out, allocation.at);
    out.number(allocation.slots.size());
    for (const Placed& slot : allocation.slots) put(out, slot);
    out.number(allocation.devices.size());
    for (const model::Amount& amount : allocation.devices)
        out.text(amount.resource), out.signed_number(amount.value);
    out.signed_number(allocation.weight);
    // Relative, for it is shorter; 0: never.
    const bool never = allocation.expected_end == kNever;
    out.signed_number(never ? 0 : (allocation.expected_end - allocation.at).ms + 1);
}
void put(Writer& out, const scheduler::Claim& claim) {
    put(out, claim.until);
    out.number(claim.slots.size());
    for (const scheduler::Slot& slot : claim.slots) {
        out.number(slot.node.value);
        out.number(slot.group);
        out.number(slot.alternative);
        out.flag(slot.spare);
    }
}
void put(Writer& out, const Attempt& attempt) {
    out.number(attempt.epoch);
    for (const Time time :
         {attempt.queued, attempt.started, attempt.running, attempt.ended, attempt.fault})
        put(out, time);
    out.number(static_cast<std::uint64_t>(attempt.cause));
    out.signed_number(attempt.exit_code);
    out.number(attempt.rank);
    out.text(attempt.node);
    out.text(attempt.message);
    out.signed_number(attempt.last_step);
    out.signed_number(attempt.resumed_step);
    out.signed_number(attempt.lost.ms);
    out.signed_number(attempt.signal);
    out.number(attempt.beneficiary.value);
    if (attempt.beneficiary) out.number(static_cast<std::uint64_t>(attempt.reason));
}
void put(Writer& out, const ArrayBook& book) {
    out.number(book.waiting.size());
    for (const ElementRange& range : book.waiting)
        out.signed_number(range.first), out.signed_number(range.last);
    out.number(book.held.size());
    for (const std::int64_t element : book.held) out.signed_number(element);
    for (const std::int64_t n : {book.live, book.succeeded, book.failed, book.cancelled})
        out.signed_number(n);
}

/// Without its key, which is the job's own.
void put(Writer& out, const protocol::Progress& progress) {
    out.number(progress.key.epoch), out.number(progress.key.rank);
    out.signed_number(progress.local_rank);
    out.signed_number(progress.step), out.signed_number(progress.total);
    out.number(progress.metrics.size());
    for (const auto& [name, value] : progress.metrics) {
        out.text(name);
        out.number(std::bit_cast<std::uint64_t>(value));
    }
}

std::uint64_t sections_of(const JobExtra& extra) {
    const JobExtra usual;
    std::uint64_t bits = 0;
    const auto add = [&](bool there, std::uint64_t bit) { bits |= there ? bit : 0; };
    add(extra.allocation.has_value(), kAllocation);
    add(!extra.attempts.empty() || extra.attempts_total != 0, kAttempts);
    add(!extra.waiting_for.empty(), kWaitingFor);
    add(extra.array.has_value(), kArray);
    add(!extra.avoid.empty(), kAvoid);
    add(!extra.checkpoint.empty() || extra.checkpoint_step != -1, kCheckpoint);
    add(!extra.hold_owner.empty(), kHold);
    add(!extra.message.empty() || extra.exit_code != -1 || extra.peak_memory.value != 0, kEnd);
    add(extra.first_started.ms != 0 || extra.deadline.ms != 0 || extra.queued_at.ms != 0 ||
            extra.running_at.ms != 0 || extra.fault_at.ms != 0,
        kTimes);
    add(extra.lost_time.ms != 0 || extra.steps_repeated != 0 || extra.resumed_step != -1, kLosses);
    add(extra.decided_rank != 0 || !extra.decided_node.empty(), kDecided);
    add(!extra.last_nodes.empty(), kLastNodes);
    add(extra.last_progress.has_value(), kLastProgress);
    add(extra.claim.has_value(), kClaim);
    add(bool(extra.beneficiary) || extra.preemptions != 0 || extra.attained != 0, kPreemption);
    return bits;
}

void put(Writer& out, const JobExtra& extra) {
    const std::uint64_t bits = sections_of(extra);
    out.number(bits);
    if ((bits & kAllocation) != 0) put(out, *extra.allocation);
    if ((bits & kAttempts) != 0) {
        out.signed_number(extra.attempts_total);
        out.number(extra.attempts.size());
        for (const Attempt& attempt : extra.attempts) put(out, attempt);
    }
    if ((bits & kWaitingFor) != 0) {
        out.number(extra.waiting_for.size());
        for (const model::Dependency& open : extra.waiting_for) {
            out.number(static_cast<std::uint64_t>(open.when));
            out.number(open.job.value);
        }
    }
    if ((bits & kArray) != 0) put(out, *extra.array);
    if ((bits & kAvoid) != 0) {
        out.number(extra.avoid.size());
        for (const NodeId node : extra.avoid) out.number(node.value);
    }
    if ((bits & kCheckpoint) != 0) {
        out.text(extra.checkpoint);
        out.signed_number(extra.checkpoint_step);
        put(out, extra.checkpoint_at);
    }
    if ((bits & kHold) != 0) out.text(extra.hold_owner);
    if ((bits & kEnd) != 0) {
        out.text(extra.message);
        out.signed_number(extra.exit_code);
        out.signed_number(extra.peak_memory.value);
    }
    if ((bits & kTimes) != 0) {
        for (const Time time : {extra.first_started, extra.deadline, extra.queued_at,
                                extra.running_at, extra.fault_at})
            put(out, time);
    }
    if ((bits & kLosses) != 0) {
        out.signed_number(extra.lost_time.ms);
        out.signed_number(extra.steps_repeated);
        out.signed_number(extra.resumed_step);
    }
    if ((bits & kDecided) != 0) out.number(extra.decided_rank), out.text(extra.decided_node);
    if ((bits & kLastNodes) != 0) {
        out.number(extra.last_nodes.size());
        for (const NodeId node : extra.last_nodes) out.number(node.value);
    }
    if ((bits & kLastProgress) != 0) put(out, *extra.last_progress);
    if ((bits & kClaim) != 0) put(out, *extra.claim);
    if ((bits & kPreemption) != 0) {
        out.number(extra.beneficiary.value);
        out.number(static_cast<std::uint64_t>(extra.stop_reason));
        out.signed_number(extra.preemptions);
        out.signed_number(extra.attained);
    }
}

class Get {
public:
    explicit Get(std::string_view bytes) : in_(bytes) {}

    std::optional<Job> job() {
        version_ = in_.number();
        if (version_ < 1 || version_ > kVersion) return std::nullopt;
        Job job;
        job.id.value = in_.number();
        job.spec.value = in_.number();
        job.shape.value = in_.number();
        job.user = word(), job.queue = word();
        job.array_job = word(), job.array_element = word();
        job.state = choice(model::JobState::Cancelled);
        job.cause = choice(model::Cause::Resized);
        job.priority = static_cast<std::uint8_t>(in_.number());
        job.held = in_.flag();
        job.epoch = word(), job.restarts = word(), job.faults = word();
        job.submitted = time(), job.since = time(), job.eligible = time();
        if (in_.flag()) job.extra = std::make_shared<const JobExtra>(extra());
        const bool sound = in_.ok() && in_.at_end() && fine_ && job.id.value != 0 &&
                           job.id.value <= kJobIdMax &&
                           model::active(job.state) == extra_of(job).allocation.has_value();
        return sound ? std::optional<Job>(std::move(job)) : std::nullopt;
    }

private:
    std::uint32_t word() {
        const std::uint64_t number = in_.number();
        fine_ = fine_ && number <= 0xffffffffu;
        return static_cast<std::uint32_t>(number);
    }
    template <class E>
    E choice(E last) {
        const std::uint64_t number = in_.number();
        fine_ = fine_ && number <= static_cast<std::uint64_t>(last);
        return fine_ ? static_cast<E>(number) : E{};
    }
    Time time() { return {in_.signed_number()}; }
    std::string text() { return std::string(in_.text()); }

    Placed placed() {
        Placed slot;
        slot.node.value = in_.number();
        slot.group = word();
        slot.alternative = word();
        for (std::size_t n = in_.count(); n > 0 && in_.ok(); --n) slot.devices.push_back(text());
        slot.cpus.value = in_.signed_number();
        slot.memory.value = in_.signed_number();
        slot.disk.value = in_.signed_number();
        if (version_ < 3) return slot;
        const std::uint64_t part = in_.number();
        slot.spare = (part & 1) != 0;
        slot.share = static_cast<std::int64_t>(part >> 1);
        fine_ = fine_ && slot.share < 1000;
        if (slot.share != 0) slot.share_memory.value = in_.signed_number();
        return slot;
    }
    Allocation allocation() {
        Allocation allocation;
        allocation.epoch = word();
        allocation.at = time();
        for (std::size_t n = in_.count(); n > 0 && in_.ok(); --n)
            allocation.slots.push_back(placed());
        if (version_ < 3) return allocation;
        for (std::size_t n = in_.count(); n > 0 && in_.ok(); --n) {
            model::Amount& amount = allocation.devices.emplace_back();
            amount.resource = text();
            amount.value = in_.signed_number();
        }
        allocation.weight = in_.signed_number();
        const std::int64_t end = in_.signed_number();
        if (end != 0) allocation.expected_end.ms = wrapping(allocation.at.ms, end - 1);
        return allocation;
    }
    scheduler::Claim claim() {
        scheduler::Claim claim;
        claim.until = time();
        for (std::size_t n = in_.count(); n > 0 && in_.ok(); --n) {
            scheduler::Slot& slot = claim.slots.emplace_back();
            slot.node.value = in_.number();
            slot.group = word();
            slot.alternative = word();
            slot.spare = in_.flag();
        }
        return claim;
    }
    scheduler::StopReason reason() { return choice(scheduler::StopReason::Grow); }
    protocol::Progress progress() {
        protocol::Progress progress;
        progress.key.epoch = word(), progress.key.rank = word();
        progress.local_rank = static_cast<int>(in_.signed_number());
        progress.step = in_.signed_number(), progress.total = in_.signed_number();
        for (std::size_t n = in_.count(); n > 0 && in_.ok(); --n) {
            std::string name = text();
            progress.metrics.emplace_back(std::move(name), std::bit_cast<double>(in_.number()));
        }
        return progress;
    }
    Attempt attempt() {
        Attempt attempt;
        attempt.epoch = word();
        attempt.queued = time(), attempt.started = time(), attempt.running = time();
        attempt.ended = time(), attempt.fault = time();
        attempt.cause = choice(model::Cause::Resized);
        attempt.exit_code = static_cast<int>(in_.signed_number());
        attempt.rank = word();
        attempt.node = text();
        attempt.message = text();
        attempt.last_step = in_.signed_number();
        attempt.resumed_step = in_.signed_number();
        attempt.lost.ms = in_.signed_number();
        if (version_ >= 2) attempt.signal = static_cast<int>(in_.signed_number());
        if (version_ < 3) return attempt;
        attempt.beneficiary.value = in_.number();
        if (attempt.beneficiary) attempt.reason = reason();
        return attempt;
    }
    ArrayBook book() {
        ArrayBook book;
        for (std::size_t n = in_.count(); n > 0 && in_.ok(); --n) {
            ElementRange& range = book.waiting.emplace_back();
            range.first = in_.signed_number();
            range.last = in_.signed_number();
        }
        for (std::size_t n = in_.count(); n > 0 && in_.ok(); --n)
            book.held.push_back(in_.signed_number());
        book.live = in_.signed_number(), book.succeeded = in_.signed_number();
        book.failed = in_.signed_number(), book.cancelled = in_.signed_number();
        return book;
    }
    JobExtra extra() {
        JobExtra extra;
        const std::uint64_t bits = in_.number();
        fine_ = fine_ && bits <= kAll;
        if ((bits & kAllocation) != 0) extra.allocation = allocation();
        if ((bits & kAttempts) != 0) {
            extra.attempts_total = in_.signed_number();
            for (std::size_t n = in_.count(); n > 0 && in_.ok(); --n)
                extra.attempts.push_back(attempt());
        }
        if ((bits & kWaitingFor) != 0) {
            for (std::size_t n = in_.count(); n > 0 && in_.ok(); --n) {
                model::Dependency& open = extra.waiting_for.emplace_back();
                open.when = choice(model::Dependency::When::AfterNotOk);
                open.job.value = in_.number();
            }
        }
        if ((bits & kArray) != 0) extra.array = book();
        if ((bits & kAvoid) != 0) {
            for (std::size_t n = in_.count(); n > 0 && in_.ok(); --n)
                extra.avoid.push_back({in_.number()});
        }
        if ((bits & kCheckpoint) != 0) {
            extra.checkpoint = text();
            extra.checkpoint_step = in_.signed_number();
            extra.checkpoint_at = time();
        }
        if ((bits & kHold) != 0) extra.hold_owner = text();
        if ((bits & kEnd) != 0) {
            extra.message = text();
            extra.exit_code = static_cast<int>(in_.signed_number());
            extra.peak_memory.value = in_.signed_number();
        }
        if ((bits & kTimes) != 0) {
            extra.first_started = time(), extra.deadline = time(), extra.queued_at = time();
            extra.running_at = time(), extra.fault_at = time();
        }
        if ((bits & kLosses) != 0) {
            extra.lost_time.ms = in_.signed_number();
            extra.steps_repeated = in_.signed_number();
            extra.resumed_step = in_.signed_number();
        }
        if ((bits & kDecided) != 0) extra.decided_rank = word(), extra.decided_node = text();
        if ((bits & kLastNodes) != 0) {
            for (std::size_t n = in_.count(); n > 0 && in_.ok(); --n)
                extra.last_nodes.push_back({in_.number()});
        }
        if ((bits & kLastProgress) != 0) extra.last_progress = progress();
        if ((bits & kClaim) != 0) extra.claim = claim();
        if ((bits & kPreemption) != 0) {
            extra.beneficiary.value = in_.number();
            extra.stop_reason = reason();
            extra.preemptions = in_.signed_number();
            extra.attained = in_.signed_number();
        }
        return extra;
    }

    /// Of bytes that nobody may trust.
    static std::int64_t wrapping(std::int64_t a, std::int64_t b) {
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) +
                                         static_cast<std::uint64_t>(b));
    }

    Reader in_;
    std::uint64_t version_ = kVersion;
    bool fine_ = true;
};

}  // namespace

std::string encode_job(const Job& job) {
    Writer out;
    out.number(kVersion);
    out.number(job.id.value);
    out.number(job.spec.value);
    out.number(job.shape.value);
    for (const std::uint32_t n : {job.user, job.queue, job.array_job, job.array_element})
        out.number(n);
    out.number(static_cast<std::uint64_t>(job.state));
    out.number(static_cast<std::uint64_t>(job.cause));
    out.number(job.priority);
    out.flag(job.held);
    for (const std::uint32_t n : {job.epoch, job.restarts, job.faults}) out.number(n);
    put(out, job.submitted), put(out, job.since), put(out, job.eligible);
    const bool has_extra = job.extra && sections_of(*job.extra) != 0;
    out.flag(has_extra);
    if (has_extra) put(out, *job.extra);
    return std::move(out).bytes();
}

std::optional<Job> decode_job(std::string_view bytes) {
    return Get(bytes).job();
}

}  // namespace muster::core
