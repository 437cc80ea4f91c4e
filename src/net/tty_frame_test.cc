#include "net/tty_frame.h"

#include <gtest/gtest.h>

#include "base/prng.h"

namespace muster::net {
namespace {

TEST(TtyFrame, ComesBackWhateverTheSplit) {
    const std::vector<TtyFrame> frames = {{TtyKind::Input, "ls\n"},
                                          {TtyKind::InputEnd, ""},
                                          {TtyKind::Output, std::string(70'000, 'o')},
                                          {TtyKind::Resize, "120x40"},
                                          {TtyKind::Exit, "0"}};
    std::string wire;
    for (const TtyFrame& frame : frames) wire += tty_frame(frame.kind, frame.bytes);
    Prng prng(7);
    for (int round = 0; round < 50; ++round) {
        TtyDecoder decoder;
        std::vector<TtyFrame> seen;
        std::size_t at = 0;
        while (at < wire.size()) {
            const std::size_t size = std::min<std::size_t>(1 + prng.below(9000), wire.size() - at);
            decoder.feed(std::string_view(wire).substr(at, size));
            at += size;
            for (;;) {
                const auto more = decoder.next();
                ASSERT_TRUE(more);
                if (!*more) break;
                seen.push_back(decoder.frame());
            }
        }
        ASSERT_EQ(seen, frames);
    }
}

TEST(TtyFrame, UnknownKindsAndHugeFramesAreErrors) {
    TtyDecoder unknown;
    unknown.feed(std::string("\x09\0\0\0\0", 5));
    EXPECT_EQ(unknown.next().error().code, Code::Corrupt);
    TtyDecoder huge;
    huge.feed(std::string("\x00\x7f\xff\xff\xff", 5));
    EXPECT_EQ(huge.next().error().code, Code::TooLarge);
}

}  // namespace
}  // namespace muster::net
