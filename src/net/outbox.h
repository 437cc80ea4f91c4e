// What waits to be written to one stream: bytes of batches, joined while a write is under way.
// Not locked: its owner does that. Internal to net.
#pragma once

#include <cstddef>
#include <deque>
#include <string>

namespace muster::net {

class Outbox {
public:
    void push(std::string bytes) {
        bytes_ += bytes.size();
        if (!chunks_.empty() && chunks_.back().size() + bytes.size() <= kJoinMax) {
            chunks_.back().append(bytes);
        } else {
            chunks_.push_back(std::move(bytes));
        }
    }
    bool empty() const { return chunks_.empty(); }
    std::size_t bytes() const { return bytes_; }
    /// The oldest piece, for one write. Not when empty.
    std::string take() {
        std::string chunk = std::move(chunks_.front());
        chunks_.pop_front();
        bytes_ -= chunk.size();
        return chunk;
    }

private:
    static constexpr std::size_t kJoinMax = 256 * 1024;
    std::deque<std::string> chunks_;
    std::size_t bytes_ = 0;
};

}  // namespace muster::net
