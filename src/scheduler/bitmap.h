// A set of small numbers with a summary, so that the next member is found without looking at each.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace muster::scheduler {

class Bitmap {
public:
    static constexpr std::size_t kNone = ~std::size_t{0};

    Bitmap() = default;
    explicit Bitmap(std::size_t size) { resize(size); }
    /// Empties it.
    void resize(std::size_t size) {
        words_.assign((size + 63) / 64, 0);
        summary_.assign((words_.size() + 63) / 64, 0);
    }
    bool test(std::size_t at) const { return (words_[at / 64] >> (at % 64) & 1) != 0; }
    void set(std::size_t at) {
        words_[at / 64] |= std::uint64_t{1} << (at % 64);
        summary_[at / 4096] |= std::uint64_t{1} << (at / 64 % 64);
    }
    void reset(std::size_t at) {
        std::uint64_t& word = words_[at / 64];
        word &= ~(std::uint64_t{1} << (at % 64));
        if (word == 0) summary_[at / 4096] &= ~(std::uint64_t{1} << (at / 64 % 64));
    }
    void put(std::size_t at, bool in) { in ? set(at) : reset(at); }
    /// The first member that is `from` or more and below `end`; kNone: there is none.
    std::size_t next(std::size_t from, std::size_t end) const {
        std::size_t at = from / 64;
        if (from >= end || at >= words_.size()) return kNone;
        std::uint64_t word = words_[at] & (~std::uint64_t{0} << (from % 64));
        while (word == 0) {
            at = next_word(at + 1);
            if (at == kNone || at * 64 >= end) return kNone;
            word = words_[at];
        }
        const std::size_t found = at * 64 + static_cast<std::size_t>(std::countr_zero(word));
        return found < end ? found : kNone;
    }
    bool empty() const {
        for (const std::uint64_t word : summary_)
            if (word != 0) return false;
        return true;
    }

private:
    std::size_t next_word(std::size_t from) const {
        std::size_t at = from / 64;
        if (at >= summary_.size()) return kNone;
        std::uint64_t word = summary_[at] & (~std::uint64_t{0} << (from % 64));
        while (word == 0) {
            if (++at >= summary_.size()) return kNone;
            word = summary_[at];
        }
        return at * 64 + static_cast<std::size_t>(std::countr_zero(word));
    }

    std::vector<std::uint64_t> words_, summary_;
};

}  // namespace muster::scheduler
