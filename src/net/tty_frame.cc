#include "net/tty_frame.h"

namespace muster::net {
namespace {
constexpr std::size_t kHead = 5;
}

std::string tty_frame(TtyKind kind, std::string_view bytes) {
    const std::size_t size = bytes.size();
    std::string out;
    out.reserve(kHead + size);
    out.push_back(static_cast<char>(kind));
    for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(size >> shift));
    out.append(bytes);
    return out;
}

Result<bool> TtyDecoder::next() {
    const std::string_view left = std::string_view(buffer_).substr(taken_);
    if (left.size() < kHead) {
        buffer_.erase(0, taken_);
        taken_ = 0;
        return false;
    }
    const auto kind = static_cast<std::uint8_t>(left[0]);
    std::size_t size = 0;
    for (std::size_t i = 1; i < kHead; ++i) size = size << 8 | static_cast<std::uint8_t>(left[i]);
    if (kind > static_cast<std::uint8_t>(TtyKind::Failure)) {
        return Error{.code = Code::Corrupt,
                     .message = "terminal frame of unknown kind " + std::to_string(kind)};
    }
    if (size > kTtyFrameMax) {
        return Error{.code = Code::TooLarge,
                     .message = "terminal frame of " + std::to_string(size) + " bytes; at most " +
                                std::to_string(kTtyFrameMax) + " are allowed"};
    }
    if (left.size() < kHead + size) return false;
    frame_ = TtyFrame{static_cast<TtyKind>(kind), std::string(left.substr(kHead, size))};
    taken_ += kHead + size;
    return true;
}

}  // namespace muster::net
