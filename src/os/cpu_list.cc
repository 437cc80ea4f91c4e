#include "os/cpu_list.h"

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "os/posix.h"

namespace muster::os {

Result<std::vector<int>> parse_cpu_list(std::string_view text) {
    const Error bad{Code::Invalid, "'" + std::string(text.substr(0, 60)) +
                                       "' is not a list of CPUs, as in 0-15,32-47, all below " +
                                       std::to_string(kCpusMax)};
    std::vector<int> cpus;
    if (trim(text).empty()) return cpus;
    for (const std::string_view part : split(trim(text), ',')) {
        const std::size_t dash = part.find('-');
        const auto low = parse_integer(part.substr(0, dash), 0, kCpusMax - 1);
        const auto high =
            dash == part.npos ? low : parse_integer(part.substr(dash + 1), 0, kCpusMax - 1);
        if (!low || !high || *low > *high) return bad;
        for (std::int64_t cpu = *low; cpu <= *high; ++cpu) cpus.push_back(static_cast<int>(cpu));
    }
    std::sort(cpus.begin(), cpus.end());
    cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
    return cpus;
}

std::string format_cpu_list(const std::vector<int>& cpus) {
    std::string out;
    for (std::size_t i = 0; i < cpus.size();) {
        std::size_t last = i;
        while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
        out += (out.empty() ? "" : ",") + std::to_string(cpus[i]);
        if (last > i) out += "-" + std::to_string(cpus[last]);
        i = last + 1;
    }
    return out;
}

std::vector<model::NumaNode> read_numa(const std::string& root, const std::vector<int>& usable) {
    const std::string folder = root + "/sys/devices/system/node";
    std::vector<model::NumaNode> nodes;
    for (const std::string& name : list_folder(folder)) {
        if (name.substr(0, 4) != "node") continue;
        const auto id = parse_integer(std::string_view(name).substr(4), 0, 65'535);
        const auto text = read_file(folder + "/" + name + "/cpulist");
        if (!id || !text) continue;
        auto cpus = parse_cpu_list(*text);
        if (!cpus) continue;
        if (!usable.empty())
            std::erase_if(*cpus, [&](int cpu) {
                return !std::binary_search(usable.begin(), usable.end(), cpu);
            });
        if (!cpus->empty()) nodes.push_back({static_cast<int>(*id), format_cpu_list(*cpus)});
    }
    std::sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
    return nodes;
}

}  // namespace muster::os
