#include "net/http_answer.h"

#include <gtest/gtest.h>

#include "base/prng.h"

namespace muster::net {
namespace {

struct Row {
    const char* name;
    const char* wire;
    const char* body;  // nullptr = refused.
    bool needs_eof = false;
    const char* method = "GET";
};
void PrintTo(const Row& row, std::ostream* out) {
    *out << row.name;
}

const Row kRows[] = {
    {"length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello"},
    {"empty", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", ""},
    {"no-content", "HTTP/1.1 204 No Content\r\n\r\n", ""},
    {"head", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "", false, "HEAD"},
    {"chunks",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n1\r\n!\r\n0\r\n\r\n",
     "hello!"},
    {"trailer",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\nA\r\n0123456789\r\n0\r\nT: 1\r\n\r\n",
     "0123456789"},
    {"until-eof", "HTTP/1.0 200 OK\r\n\r\nall of it", "all of it", true},
    {"continue-first", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
     "x"},
    {"not-http", "SSH-2.0-OpenSSH_9\r\n\r\n", nullptr},
    {"bad-status", "HTTP/1.1 abc OK\r\n\r\n", nullptr},
    {"bad-length", "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", nullptr},
    {"bad-chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", nullptr},
    {"long-chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n", nullptr},
    {"gzip", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", nullptr},
    {"nameless", "HTTP/1.1 200 OK\r\n: x\r\n\r\n", nullptr},
};

/// The body, or nullopt when refused; fed `step` bytes at a time.
std::optional<std::string> decode(const Row& row, std::size_t step) {
    std::string_view left = row.wire;
    std::string raw;
    std::string body;
    std::optional<AnswerHeadRead> head;
    BodyDecoder decoder;
    while (!left.empty()) {
        raw.append(left.substr(0, step));
        left.remove_prefix(std::min(step, left.size()));
        if (!head) {
            auto taken = take_head(raw);
            if (!taken) return std::nullopt;
            head = *std::move(taken);
            if (!head) continue;
            auto made = BodyDecoder::of(*head, row.method);
            if (!made) return std::nullopt;
            decoder = *made;
        }
        if (!decoder.feed(raw, body)) return std::nullopt;
    }
    EXPECT_TRUE(decoder.done_at_eof());
    EXPECT_EQ(decoder.done(), !row.needs_eof);
    return body;
}

class AnswerRows : public ::testing::TestWithParam<Row> {};

TEST_P(AnswerRows, ReadTheSameWhateverTheSplit) {
    for (std::size_t step = 1; step <= 64; step = step * 2 + 1) {
        const auto body = decode(GetParam(), step);
        if (GetParam().body == nullptr) {
            EXPECT_FALSE(body) << "in steps of " << step;
        } else {
            ASSERT_TRUE(body) << "in steps of " << step;
            EXPECT_EQ(*body, GetParam().body);
        }
    }
}
INSTANTIATE_TEST_SUITE_P(Rows, AnswerRows, ::testing::ValuesIn(kRows));

TEST(Answer, GarbageNeverCrashes) {
    Prng prng(11);
    const std::string base =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: "
        "3\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    for (int round = 0; round < 20'000; ++round) {
        std::string raw = base;
        for (std::uint64_t i = prng.below(6); i > 0; --i) {
            raw[prng.below(raw.size())] = static_cast<char>(prng.below(256));
        }
        auto head = take_head(raw);
        if (!head || !*head) continue;
        auto decoder = BodyDecoder::of(**head, "GET");
        std::string body;
        if (decoder) (void)decoder->feed(raw, body);
        EXPECT_LE(body.size(), base.size());
    }
}

}  // namespace
}  // namespace muster::net
