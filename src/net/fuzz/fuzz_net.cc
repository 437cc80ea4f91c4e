// One libFuzzer target for every decoder of the room; the input's first byte chooses which.
#include <cstdint>
#include <string>
#include <string_view>

#include "net/http_answer.h"
#include "net/http_message.h"
#include "net/http_parser.h"
#include "net/link_codec.h"
#include "net/pki.h"
#include "net/tty_frame.h"

namespace {

using namespace muster::net;  // NOLINT: a program.

void parse_requests(std::string_view bytes) {
    HttpParser parser(4096, 8192);
    std::string buffer;
    while (!bytes.empty() && parser.state() != HttpParser::State::Refused) {
        const std::size_t step = 1 + bytes.size() % 97;
        buffer.append(bytes.substr(0, step));
        bytes.remove_prefix(std::min(step, bytes.size()));
        buffer.erase(0, parser.feed(buffer));
        if (parser.state() != HttpParser::State::Done) continue;
        HttpRequest request = parser.take();
        (void)split_target(request);
    }
}

void parse_answer(std::string_view bytes) {
    std::string raw(bytes);
    auto head = take_head(raw);
    if (!head || !*head) return;
    auto decoder = BodyDecoder::of(**head, "GET");
    std::string body;
    if (decoder) (void)decoder->feed(raw, body);
}

void parse_frames(std::string_view bytes) {
    TtyDecoder decoder;
    decoder.feed(bytes);
    for (;;) {
        const auto more = decoder.next();
        if (!more || !*more) return;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    switch (data[0] % 8) {
        case 0: parse_requests(bytes); break;
        case 1: parse_answer(bytes); break;
        case 2: parse_frames(bytes); break;
        case 3: (void)decode_agent_batch(bytes); break;
        case 4: (void)decode_controller_batch(bytes); break;
        case 5: (void)parse_join_token(bytes); break;
        case 6: (void)parse_endpoint(bytes); break;
        default: (void)certificate_facts(bytes);
    }
    return 0;
}
