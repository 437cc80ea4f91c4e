// How often what happened: which faults struck and which states were reached in a run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace muster::simulator {

class Tally {
public:
    void hit(std::string_view what, std::int64_t times = 1) {
        const auto known = counts_.find(what);
        if (known != counts_.end())
            known->second += times;
        else
            counts_.emplace(what, times);
    }
    std::int64_t of(std::string_view what) const {
        const auto known = counts_.find(what);
        return known == counts_.end() ? 0 : known->second;
    }
    const std::map<std::string, std::int64_t, std::less<>>& counts() const { return counts_; }

private:
    std::map<std::string, std::int64_t, std::less<>> counts_;
};

}  // namespace muster::simulator
