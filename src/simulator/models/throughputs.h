// Steps a second of types of jobs by kind of device and number of devices, as they were measured
// alone on them: the tables of the Gavel paper (OSDI '20) are such.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::simulator::models {

class Throughputs {
public:
    void set(std::string_view kind, std::string_view type, int devices, double steps_per_s);
    /// 0: it was not measured, or does not run there.
    double steps_per_s(std::string_view kind, std::string_view type, int devices) const;
    /// Ascending.
    std::vector<std::string> kinds() const;
    bool knows(std::string_view type, int devices) const;

private:
    /// By type and devices: kind to steps a second.
    std::map<std::pair<std::string, int>, std::map<std::string, double, std::less<>>> steps_;
};

}  // namespace muster::simulator::models
