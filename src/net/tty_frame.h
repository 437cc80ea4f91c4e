// The frames on a raw "muster-tty" connection (attach, exec, run --pty): one byte of kind, four of
// length (big endian), then the bytes. The decoder takes any split of the stream.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::net {

enum class TtyKind : std::uint8_t {
    Input = 0,     // Client to task.
    InputEnd = 1,  // The client's stdin ended; empty.
    Output = 2,    // Task's stdout (or its terminal).
    ErrorOutput = 3,
    Resize = 4,   // "COLUMNSxROWS"
    Exit = 5,     // The exit code in decimal: last frame of the server.
    Failure = 6,  // Why it could not go on, for a person; then Exit 125.
};

constexpr std::size_t kTtyFrameMax = 1 << 20;

std::string tty_frame(TtyKind kind, std::string_view bytes);

struct TtyFrame {
    TtyKind kind = TtyKind::Input;
    std::string bytes = {};
    friend bool operator==(const TtyFrame&, const TtyFrame&) = default;
};

class TtyDecoder {
public:
    void feed(std::string_view bytes) { buffer_.append(bytes); }
    /// True and the next whole frame in `frame()`; false when more bytes are needed; an Error for
    /// an unknown kind or a frame over kTtyFrameMax, after which the connection is of no use.
    Result<bool> next();
    TtyFrame& frame() { return frame_; }

private:
    std::string buffer_;
    std::size_t taken_ = 0;
    TtyFrame frame_;
};

}  // namespace muster::net
