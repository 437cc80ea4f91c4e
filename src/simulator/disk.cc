#include "simulator/disk.h"

#include "base/bytes.h"
#include "base/hash.h"

namespace muster::simulator {
namespace {

std::uint64_t checksum(std::string_view payload) {
    Fnv fnv;
    fnv.add(payload);
    return fnv.hash();
}

std::string payload_of(const ports::Batch& batch) {
    Writer out;
    out.number(batch.puts.size());
    for (const ports::Record& record : batch.puts) {
        out.number(static_cast<std::uint64_t>(record.key.kind));
        out.number(record.key.id);
        out.text(record.bytes);
    }
    out.number(batch.drops.size());
    for (const ports::RecordKey& key : batch.drops) {
        out.number(static_cast<std::uint64_t>(key.kind));
        out.number(key.id);
    }
    return std::move(out).bytes();
}

}  // namespace

Status Disk::write(const ports::Batch& batch) {
    if (batch.term < term_) {
        return Error{Code::Conflict, "the batch is of term " + std::to_string(batch.term) +
                                         ", the disk is fenced for " + std::to_string(term_)};
    }
    if (full_) return Error{Code::NoSpace, "the modelled disk is full"};
    const std::string payload = payload_of(batch);
    Writer frame;
    frame.text(payload);
    frame.number(checksum(payload));
    log_ += frame.bytes();
    return Ok{};
}

void Disk::take_term(std::uint64_t term) {
    term_ = std::max(term_, term);
}

void Disk::crash() {
    const std::size_t unsynced = log_.size() - synced_;
    if (unsynced == 0) return;
    const std::size_t kept = random_.below(unsynced + 1);
    log_.resize(synced_ + kept);
    if (kept == 0 || kept == unsynced) return;
    tally_.hit("disk.torn-tail");
    if (random_.chance(500)) log_.back() = static_cast<char>(log_.back() ^ 0x55);
}

const Disk::Image& Disk::recover() {
    Reader in(log_);
    for (;;) {
        const std::string_view payload = in.text();
        const std::uint64_t sum = in.number();
        if (!in.ok() || sum != checksum(payload)) break;
        apply_frame(payload);
    }
    log_.clear();
    synced_ = 0;
    return image_;
}

void Disk::apply_frame(std::string_view payload) {
    Reader in(payload);
    const auto key = [&] {
        const auto kind = static_cast<ports::RecordKind>(in.number());
        return ports::RecordKey{kind, in.number()};
    };
    for (std::size_t puts = in.count(); puts > 0; --puts) {
        const ports::RecordKey name = key();
        image_[name] = std::string(in.text());
    }
    for (std::size_t drops = in.count(); drops > 0; --drops) image_.erase(key());
}

}  // namespace muster::simulator
