// Whatever comes from the other end of an mpi job's launcher, or from its caller, is taken or
// refused.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "os/remote.h"

using namespace muster::os;  // NOLINT: a program.

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    std::string buffer;
    bool broken = false;
    for (std::size_t at = 0; at < size && !broken; at += 7) {
        buffer += bytes.substr(at, 7);
        while (const auto frame = remote::take_frame(buffer, broken))
            if (frame->bytes.size() > remote::kFrameMax) std::abort();
        if (buffer.size() > remote::kFrameMax + 12 && !broken) std::abort();
    }
    if (const auto peers = remote::decode_peers(bytes))
        if (!remote::decode_peers(encode(*peers))) std::abort();
    std::vector<std::string> words;
    for (std::size_t at = 0; at <= size;) {
        const std::size_t end = std::min(bytes.find('\0', at), size);
        words.emplace_back(bytes.substr(at, end - at));
        at = end + 1;
    }
    const auto call = remote::parse_call(words);
    if (const auto* ok = std::get_if<remote::Call>(&call); ok != nullptr && ok->host.empty())
        std::abort();
    return 0;
}
