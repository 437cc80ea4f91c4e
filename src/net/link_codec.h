// Protocol values to bytes of api/agent.proto and back. Internal to net; protobuf stays in the .cc.
//
// A batch is a message with one repeated field, so the encodings of batches, one behind the other,
// are the encoding of one batch with all their items: queues are plain bytes.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/agent_link.h"
#include "protocol/messages.h"

namespace muster::net {

/// A batch of one. Appended to `out`.
void encode_item(const protocol::AgentMessage& message, std::string& out);
void encode_item(const protocol::ControllerMessage& message, std::string& out);

/// The same bytes, but the gang that all orders of one attempt share is encoded once: orders to n
/// nodes cost n, not n squared. Any thread.
class OrderEncoder {
public:
    void encode(const protocol::ControllerMessage& message, std::string& out);

private:
    /// The field of a StartTask that holds `gang`.
    std::string gang_field(const std::shared_ptr<const protocol::Gang>& gang);

    std::mutex mutex_;
    std::weak_ptr<const protocol::Gang> gang_;  // Never a new one at the old one's address.
    std::string field_;
};

/// Corrupt when anything in it is not as the contract says.
Result<std::vector<protocol::AgentMessage>> decode_agent_batch(std::string_view bytes);
Result<std::vector<protocol::ControllerMessage>> decode_controller_batch(std::string_view bytes);

std::string encode_join(const JoinAsk& ask);
Result<JoinAsk> decode_join(std::string_view bytes);
std::string encode_renewal(std::string_view request_pem);
Result<std::string> decode_renewal(std::string_view bytes);
std::string encode_join_answer(const JoinAnswer& answer);
Result<JoinAnswer> decode_join_answer(std::string_view bytes);
std::string encode_peer_ask(const protocol::PeerAsk& ask);
Result<protocol::PeerAsk> decode_peer_ask(std::string_view bytes);
std::string encode_peer_word(const protocol::PeerWord& word);
Result<protocol::PeerWord> decode_peer_word(std::string_view bytes);

}  // namespace muster::net
