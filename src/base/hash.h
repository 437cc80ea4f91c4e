// FNV-1a, the same on every machine: digests of states and content ids. Not for secrets.
#pragma once

#include <cstdint>
#include <string_view>

namespace muster {

class Fnv {
public:
    void add(std::uint64_t value) {
        for (int i = 0; i < 8; ++i, value >>= 8) add_byte(static_cast<unsigned char>(value & 0xff));
    }
    void add(std::string_view text) {
        add(text.size());
        for (const char c : text) add_byte(static_cast<unsigned char>(c));
    }
    std::uint64_t hash() const { return hash_; }

private:
    void add_byte(unsigned char byte) { hash_ = (hash_ ^ byte) * 0x100000001b3; }
    std::uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace muster
