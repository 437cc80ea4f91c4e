#include "agent/kept_lease.h"

#include <utility>

#include "base/bytes.h"
#include "base/hash.h"

namespace muster::agent {

std::string encode(const node::KeptLease& lease, std::string_view boot_id) {
    Writer body;
    body.text(boot_id);
    body.number(lease.term);
    body.signed_number(lease.until.ms);
    const Duration rules[] = {lease.rules.heartbeat, lease.rules.suspect, lease.rules.lost,
                              lease.rules.fence};
    for (const Duration rule : rules) body.signed_number(rule.ms);
    body.number(lease.peers.size());
    for (const protocol::PeerAddress& peer : lease.peers) {
        body.text(peer.name);
        body.text(peer.address);
        body.signed_number(peer.port);
    }
    Fnv sum;
    sum.add(body.bytes());
    Writer whole;
    whole.number(sum.hash());
    whole.text(body.bytes());
    return std::move(whole).bytes();
}

std::optional<node::KeptLease> decode_kept_lease(std::string_view bytes, std::string_view boot_id) {
    Reader whole(bytes);
    const std::uint64_t sum = whole.number();
    const std::string_view text = whole.text();
    Fnv computed;
    computed.add(text);
    if (!whole.ok() || computed.hash() != sum) return std::nullopt;
    Reader body(text);
    if (body.text() != boot_id) return std::nullopt;
    node::KeptLease lease;
    lease.term = body.number();
    lease.until.ms = body.signed_number();
    for (Duration* rule :
         {&lease.rules.heartbeat, &lease.rules.suspect, &lease.rules.lost, &lease.rules.fence})
        rule->ms = body.signed_number();
    lease.peers.resize(body.count());
    for (protocol::PeerAddress& peer : lease.peers) {
        peer.name = body.text();
        peer.address = body.text();
        peer.port = static_cast<int>(body.signed_number());
    }
    if (!body.ok()) return std::nullopt;
    return lease;
}

}  // namespace muster::agent
