#include "os/cpu_book.h"

#include <algorithm>
#include <utility>

#include "os/cpu_list.h"

namespace muster::os {
namespace {

constexpr int kNowhere = -1;

}  // namespace

void CpuBook::set_node(std::vector<int> usable, const std::vector<model::NumaNode>& numa) {
    std::sort(usable.begin(), usable.end());
    std::set<int> left(usable.begin(), usable.end());
    numa_.clear();
    for (const model::NumaNode& node : numa) {
        const auto cpus = parse_cpu_list(node.cpus);
        if (!cpus) continue;
        for (const int cpu : *cpus)
            if (left.erase(cpu) != 0) numa_[node.id].push_back(cpu);
    }
    if (!left.empty()) numa_[kNowhere].assign(left.begin(), left.end());
    usable_ = std::move(usable);
    ++revision_;
}

std::vector<int> CpuBook::bind(const protocol::TaskKey& key, std::int64_t count,
                               const std::vector<model::Device>& devices) {
    release(key);
    std::set<int> taken;
    for (const auto& [other, cpus] : bound_) taken.insert(cpus.begin(), cpus.end());
    std::map<int, std::vector<int>> free = numa_;
    std::int64_t total = 0;
    for (auto& [node, cpus] : free) {
        std::erase_if(cpus, [&](int cpu) { return taken.contains(cpu); });
        total += static_cast<std::int64_t>(cpus.size());
    }
    if (count <= 0 || total < count) return {};
    std::vector<int> chosen;
    const auto take = [&](int node, std::int64_t most) {
        std::vector<int>& cpus = free.at(node);
        const std::int64_t wanted = count - static_cast<std::int64_t>(chosen.size());
        const auto some = std::min({static_cast<std::int64_t>(cpus.size()), most, wanted});
        chosen.insert(chosen.end(), cpus.begin(), cpus.begin() + some);
        cpus.erase(cpus.begin(), cpus.begin() + some);
    };
    std::map<int, std::int64_t> near;  // Devices at each NUMA node.
    for (const model::Device& device : devices)
        if (device.numa != kNowhere && free.contains(device.numa)) ++near[device.numa];
    std::int64_t placed = 0;
    for (const auto& [node, here] : near) placed += here;
    for (const auto& [node, here] : near) take(node, count * here / placed);
    for (const auto& [node, here] : near) take(node, count);
    // The rest: of the tightest node that holds it, else of the emptiest ones.
    while (static_cast<std::int64_t>(chosen.size()) < count) {
        const auto wanted = static_cast<std::size_t>(count) - chosen.size();
        const auto better = [&](const auto& a, const auto& b) {
            const bool fits = a.second.size() >= wanted;
            if (fits != (b.second.size() >= wanted)) return fits;
            if (a.second.size() != b.second.size())
                return (a.second.size() < b.second.size()) == fits;
            return a.first < b.first;
        };
        take(std::min_element(free.begin(), free.end(), better)->first, count);
    }
    std::sort(chosen.begin(), chosen.end());
    adopt(key, chosen);
    return chosen;
}

void CpuBook::adopt(const protocol::TaskKey& key, std::vector<int> cpus) {
    bound_[key] = std::move(cpus);
    ++revision_;
}

void CpuBook::release(const protocol::TaskKey& key) {
    if (bound_.erase(key) != 0) ++revision_;
}

std::vector<int> CpuBook::floating() const {
    std::set<int> taken;
    for (const auto& [key, cpus] : bound_) taken.insert(cpus.begin(), cpus.end());
    std::vector<int> left;
    for (const int cpu : usable_)
        if (!taken.contains(cpu)) left.push_back(cpu);
    return left.empty() ? usable_ : left;
}

std::int64_t cpus_to_bind(const protocol::StartTask& order, bool exclusive) {
    const std::int64_t cpus = order.cpus.value;
    if (cpus < 1000 || cpus % 1000 != 0) return 0;
    return !order.devices.empty() || exclusive || cpus >= 2000 ? cpus / 1000 : 0;
}

}  // namespace muster::os
