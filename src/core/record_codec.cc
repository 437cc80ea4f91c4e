#include "core/record_codec.h"

#include "base/bytes.h"
#include "base/hash.h"

namespace muster::core {
namespace {

constexpr std::uint64_t kVersion = 1;
constexpr std::uint64_t kMetaVersion = 2;  // 1: before reservations and run times.
constexpr std::uint64_t kNodeVersion = 2;  // 2: with the peers that it was told.

/// A Reader past the version, or one that is not ok.
Reader open(std::string_view bytes) {
    Reader in(bytes);
    return in.number() == kVersion ? in : Reader(std::string_view());
}
template <class T>
std::optional<T> finish(const Reader& in, std::string_view bytes, T value) {
    if (bytes.empty() || !in.ok() || !in.at_end()) return std::nullopt;
    return value;
}

}  // namespace

std::string encode_meta(const Meta& meta) {
    Writer out;
    out.number(kMetaVersion);
    for (const std::uint64_t n :
         {meta.term, meta.next_job, meta.next_node, meta.next_queue, meta.next_user,
          meta.next_token, meta.next_spec, meta.next_shape, meta.next_idempotency, meta.first_job,
          meta.next_reservation, meta.next_run_times})
        out.number(n);
    return std::move(out).bytes();
}
std::optional<Meta> decode_meta(std::string_view bytes) {
    Reader in(bytes);
    const std::uint64_t version = in.number();
    if (version < 1 || version > kMetaVersion) return std::nullopt;
    Meta meta;
    for (std::uint64_t* n : {&meta.term, &meta.next_job, &meta.next_node, &meta.next_queue,
                             &meta.next_user, &meta.next_token, &meta.next_spec, &meta.next_shape,
                             &meta.next_idempotency, &meta.first_job})
        *n = in.number();
    if (version >= 2)
        for (std::uint64_t* n : {&meta.next_reservation, &meta.next_run_times}) *n = in.number();
    return finish(in, bytes, meta);
}

std::string encode_node(const Node& node) {
    Writer out;
    out.number(kNodeVersion);
    out.number(node.id.value);
    out.text(model::encode(*node.facts));
    out.number(node.holds.size());
    for (const model::NodeHold& hold : node.holds) {
        out.text(hold.owner);
        out.text(hold.reason);
        out.signed_number(hold.since.ms);
        out.signed_number(hold.until.ms);
    }
    out.text(node.certificate);
    out.signed_number(node.joined.ms);
    out.flag(node.forgotten);
    out.number(node.peers ? node.peers->size() : 0);
    if (!node.peers) return std::move(out).bytes();
    for (const std::vector<NodeId>& set : *node.peers) {
        out.number(set.size());
        for (const NodeId peer : set) out.number(peer.value);
    }
    return std::move(out).bytes();
}
std::optional<Node> decode_node(std::string_view bytes) {
    Reader in(bytes);
    const std::uint64_t version = in.number();
    if (version < kVersion || version > kNodeVersion) return std::nullopt;
    Node node;
    node.id.value = in.number();
    auto facts = model::decode_node_facts(in.text());
    if (!facts) return std::nullopt;
    node.facts = std::make_shared<const model::NodeFacts>(*std::move(facts));
    for (std::size_t n = in.count(); n > 0 && in.ok(); --n) {
        model::NodeHold& hold = node.holds.emplace_back();
        hold.owner = in.text();
        hold.reason = in.text();
        hold.since.ms = in.signed_number();
        hold.until.ms = in.signed_number();
    }
    node.certificate = in.text();
    node.joined.ms = in.signed_number();
    node.forgotten = in.flag();
    PeerSets sets;
    for (std::size_t n = version >= 2 ? in.count() : 0; n > 0 && in.ok(); --n) {
        std::vector<NodeId>& set = sets.emplace_back();
        for (std::size_t peers = in.count(); peers > 0 && in.ok(); --peers)
            set.push_back({in.number()});
    }
    if (!sets.empty()) node.peers = std::make_shared<const PeerSets>(std::move(sets));
    return finish(in, bytes, std::move(node));
}

std::string encode_spec(const Spec& spec) {
    Writer out;
    out.number(kVersion);
    out.text(*spec.bytes);
    return std::move(out).bytes();
}
std::optional<Spec> decode_spec(std::string_view bytes) {
    Reader in = open(bytes);
    Spec spec;
    spec.bytes = std::make_shared<const std::string>(in.text());
    const auto job = model::decode_job_spec(*spec.bytes);
    if (!job) return std::nullopt;
    spec.name = std::make_shared<const std::string>(job->name);
    Fnv fnv;
    fnv.add(*spec.bytes);
    spec.content = fnv.hash();
    return finish(in, bytes, std::move(spec));
}

std::string encode_token(const Token& token) {
    Writer out;
    out.number(kVersion);
    out.number(token.id);
    out.number(static_cast<std::uint64_t>(token.kind));
    out.text(token.hash);
    out.text(token.user);
    out.flag(token.admin);
    out.signed_number(token.uses_left);
    out.signed_number(token.created.ms);
    out.signed_number(token.expires.ms);
    out.text(token.created_by);
    return std::move(out).bytes();
}
std::optional<Token> decode_token(std::string_view bytes) {
    Reader in = open(bytes);
    Token token;
    token.id = in.number();
    token.kind = in.number() == 0 ? TokenKind::Api : TokenKind::Join;
    token.hash = in.text();
    token.user = in.text();
    token.admin = in.flag();
    token.uses_left = in.signed_number();
    token.created.ms = in.signed_number();
    token.expires.ms = in.signed_number();
    token.created_by = in.text();
    return finish(in, bytes, std::move(token));
}

std::string encode_idempotency(const Idempotency& entry) {
    Writer out;
    out.number(kVersion);
    for (const std::uint64_t n : {entry.id, entry.key_high, entry.key_low, entry.body})
        out.number(n);
    out.number(entry.job.value);
    out.signed_number(entry.expires.ms);
    return std::move(out).bytes();
}
std::optional<Idempotency> decode_idempotency(std::string_view bytes) {
    Reader in = open(bytes);
    Idempotency entry;
    for (std::uint64_t* n : {&entry.id, &entry.key_high, &entry.key_low, &entry.body})
        *n = in.number();
    entry.job.value = in.number();
    entry.expires.ms = in.signed_number();
    return finish(in, bytes, entry);
}

std::string encode_user(const User& user) {
    Writer out;
    out.number(kVersion);
    out.number(user.id.value);
    out.text(user.name);
    out.flag(user.admin);
    return std::move(out).bytes();
}
std::optional<User> decode_user(std::string_view bytes) {
    Reader in = open(bytes);
    User user;
    user.id.value = in.number();
    user.name = in.text();
    user.admin = in.flag();
    return finish(in, bytes, std::move(user));
}

std::string encode_queue(const Queue& queue) {
    return model::encode(queue);
}
std::optional<Queue> decode_queue(std::string_view bytes) {
    return model::decode_queue(bytes);
}
std::string encode_reservation(const model::Reservation& reservation) {
    return model::encode(reservation);
}

std::string encode_usage(const Usage& usage) {
    Writer out;
    out.number(kVersion);
    out.number(usage.queue.value);
    out.number(usage.user.value);
    for (const std::int64_t n : {usage.devices, usage.cpus, usage.memory, usage.as_of.ms})
        out.signed_number(n);
    return std::move(out).bytes();
}
std::optional<Usage> decode_usage(std::string_view bytes) {
    Reader in = open(bytes);
    Usage usage;
    usage.queue.value = in.number();
    usage.user.value = in.number();
    for (std::int64_t* n : {&usage.devices, &usage.cpus, &usage.memory, &usage.as_of.ms})
        *n = in.signed_number();
    return finish(in, bytes, usage);
}

std::string encode_run_times(const RunTimes& times) {
    Writer out;
    out.number(kVersion);
    out.number(times.id);
    out.number(times.user.value);
    out.text(times.name);
    out.number(times.last.size());
    for (const Duration each : times.last) out.signed_number(each.ms);
    out.signed_number(times.at.ms);
    return std::move(out).bytes();
}
std::optional<RunTimes> decode_run_times(std::string_view bytes) {
    Reader in = open(bytes);
    RunTimes times;
    times.id = in.number();
    times.user.value = in.number();
    times.name = in.text();
    for (std::size_t n = in.count(); n > 0 && in.ok(); --n)
        times.last.push_back({in.signed_number()});
    times.at.ms = in.signed_number();
    return finish(in, bytes, std::move(times));
}

}  // namespace muster::core
