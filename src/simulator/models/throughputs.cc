#include "simulator/models/throughputs.h"

#include <set>

namespace muster::simulator::models {

void Throughputs::set(std::string_view kind, std::string_view type, int devices,
                      double steps_per_s) {
    steps_[{std::string(type), devices}][std::string(kind)] = steps_per_s;
}

double Throughputs::steps_per_s(std::string_view kind, std::string_view type, int devices) const {
    const auto found = steps_.find({std::string(type), devices});
    if (found == steps_.end()) return 0;
    const auto at = found->second.find(kind);
    return at == found->second.end() ? 0 : at->second;
}

std::vector<std::string> Throughputs::kinds() const {
    std::set<std::string> names;
    for (const auto& [type, kinds] : steps_)
        for (const auto& [kind, steps] : kinds) names.insert(kind);
    return {names.begin(), names.end()};
}

bool Throughputs::knows(std::string_view type, int devices) const {
    return steps_.contains({std::string(type), devices});
}

}  // namespace muster::simulator::models
