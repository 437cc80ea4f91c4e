#include "simulator/reference/packing.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/require.h"

namespace muster::simulator::reference {
namespace {

constexpr std::int64_t kMostCpu = 128'000, kMostMilli = 8'000;  // Of the largest node.
constexpr std::int64_t kScoreMax = 100;

std::int64_t floor_score(double share) {
    return static_cast<std::int64_t>(static_cast<double>(kScoreMax) * share);
}
std::uint32_t class_bit(const PackingPod& pod) {
    return pod.devices == 0 ? 0 : std::uint32_t{1} << (pod.share() ? 0 : pod.devices);
}

/// How little is left where it goes, weighed by what it wants.
std::int64_t dot_product(const Bin& bin, const PackingPod& pod) {
    const auto share = [](std::int64_t left, std::int64_t wanted, std::int64_t most) {
        return static_cast<double>(left) / static_cast<double>(most) *
               (static_cast<double>(wanted) / static_cast<double>(most));
    };
    return floor_score(
        1 - (share(bin.cpu, pod.cpu, kMostCpu) + share(bin.idle(), pod.demand(), kMostMilli)) / 2);
}

/// Pods of a class to their like.
std::int64_t clustering(const Bin& bin, const PackingPod& pod) {
    if (pod.devices == 0) return 0;
    const std::uint32_t bit = class_bit(pod);
    std::int64_t kind = 0;
    if (bin.hosted == 0)
        kind = 25;
    else if ((bin.hosted & bit) != 0)
        kind = bin.hosted == bit ? 75 : 50;
    return 25 * (kMostMilli - bin.idle()) / kMostMilli + kind;
}

/// Devices in use before idle ones, nodes in use before idle ones.
std::int64_t packing(const Bin& bin, const PackingPod& pod) {
    if (pod.devices == 0) return 0;
    std::vector<std::int32_t> free;
    std::int64_t idle = 0;
    for (std::int32_t i = 0; i < bin.devices; ++i) {
        const std::int32_t left = bin.free[static_cast<std::size_t>(i)];
        idle += left == 1000 ? 1 : 0;
        if (left >= pod.milli) free.push_back(left);
    }
    if (idle == bin.devices) return std::max<std::int64_t>(33 - idle, idle);
    std::ranges::sort(free);
    std::int64_t partly = 0, whole = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(pod.devices); ++i) {
        if (free[i] == 1000)
            ++whole;
        else
            partly += free[i] / 10;
    }
    if (whole == 0) return std::max<std::int64_t>(kScoreMax - partly / 10, 50);
    return std::max<std::int64_t>(50 - whole, 33);
}

/// What would be left there, the less the better; of all candidates, before they are spread out.
std::int64_t best_fit(const Bin& bin, const PackingPod& pod) {
    const double cpu = static_cast<double>(bin.cpu - pod.cpu) / static_cast<double>(kMostCpu);
    const double devices =
        static_cast<double>(bin.idle() - pod.demand()) / static_cast<double>(kMostMilli);
    return floor_score(1 - (cpu * 0.5 + devices * 0.5));
}

}  // namespace

// ---- nodes ------------------------------------------------------------------------------------

Bin::Bin(const PackingNode& node)
    : cpu(node.cpu), memory(node.memory), devices(node.devices), model(node.model) {
    for (std::int32_t i = 0; i < devices; ++i) free[static_cast<std::size_t>(i)] = 1000;
}

std::int64_t Bin::idle() const {
    std::int64_t sum = 0;
    for (const std::int32_t left : free) sum += left;
    return sum;
}

bool Bin::fits(const PackingPod& pod) const {
    if (cpu < pod.cpu || memory < pod.memory) return false;
    if (pod.devices == 0) return true;
    if (pod.models != 0 && (pod.models & model) == 0) return false;
    std::int32_t fitting = 0;
    for (std::int32_t i = 0; i < devices; ++i)
        fitting += free[static_cast<std::size_t>(i)] >= pod.milli ? 1 : 0;
    return fitting >= pod.devices;
}

std::int32_t Bin::tightest(const PackingPod& pod) const {
    std::int32_t best = -1;
    for (std::int32_t i = 0; i < devices; ++i) {
        const std::int32_t left = free[static_cast<std::size_t>(i)];
        if (left < pod.milli) continue;
        if (best < 0 || left < free[static_cast<std::size_t>(best)]) best = i;
    }
    return best;
}

void Bin::take(const PackingPod& pod, std::int32_t device) {
    cpu -= pod.cpu, memory -= pod.memory;
    hosted |= class_bit(pod);
    ++version;
    if (pod.share()) {
        free[static_cast<std::size_t>(device)] -= pod.milli;
        return;
    }
    std::int32_t wanted = pod.devices;
    for (std::int32_t i = 0; i < devices && wanted > 0; ++i) {
        std::int32_t& left = free[static_cast<std::size_t>(i)];
        if (left < pod.milli) continue;
        left -= pod.milli;
        --wanted;
    }
    MUSTER_REQUIRE(wanted == 0);
}

// ---- fragmentation ----------------------------------------------------------------------------

std::vector<TypicalPod> typical_pods(std::span<const PackingPod> pods) {
    using Key = std::tuple<std::int64_t, std::int32_t, std::int32_t, Models>;
    std::map<Key, std::int64_t> counts;
    for (const PackingPod& pod : pods) ++counts[{pod.cpu, pod.devices, pod.milli, pod.models}];
    std::vector<std::pair<std::int64_t, Key>> order;
    for (const auto& [key, count] : counts) order.emplace_back(-count, key);
    std::ranges::sort(order);
    const auto all = static_cast<std::int64_t>(pods.size());
    std::vector<TypicalPod> out;
    std::int64_t sum = 0;
    for (const auto& [falling, key] : order) {
        if (sum * 100 >= all * 95) break;
        const auto& [cpu, devices, milli, models] = key;
        out.push_back({cpu, devices, milli, models, static_cast<double>(-falling)});
        sum -= falling;
    }
    for (TypicalPod& pod : out) pod.weight /= static_cast<double>(sum);
    return out;
}

double fragmented(const Bin& bin, std::span<const TypicalPod> typical) {
    const std::int64_t idle = bin.idle();
    if (idle == 0) return 0;
    double sum = 0;
    for (const TypicalPod& pod : typical) {
        std::int64_t lost = 0, fitting = 0;
        for (std::int32_t i = 0; i < bin.devices; ++i) {
            const std::int32_t left = bin.free[static_cast<std::size_t>(i)];
            if (left >= pod.milli)
                ++fitting;
            else
                lost += left;
        }
        const bool matches = pod.models == 0 || (pod.models & bin.model) != 0;
        const bool fits = matches && bin.cpu >= pod.cpu && fitting >= pod.devices;
        sum += pod.weight * static_cast<double>(pod.devices > 0 && fits ? lost : idle);
    }
    return sum;
}

// ---- the stream -------------------------------------------------------------------------------

std::vector<PackingPod> arrivals(std::vector<PackingPod> list, std::int64_t capacity_milli,
                                 std::int64_t percent, Prng& random) {
    const std::vector<PackingPod> drawn = list;
    for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[random.below(i)]);
    const std::int64_t most = capacity_milli * percent / 100;
    std::int64_t demand = 0;
    for (const PackingPod& pod : list) demand += pod.demand();
    while (demand > most) {
        const auto at = static_cast<std::ptrdiff_t>(random.below(list.size()));
        demand -= list[static_cast<std::size_t>(at)].demand();
        list.erase(list.begin() + at);
    }
    if (demand == 0) return list;
    while (true) {
        const PackingPod& pod = drawn[random.below(drawn.size())];
        if (demand + pod.demand() > most) return list;
        demand += pod.demand();
        list.push_back(pod);
    }
}

// ---- policies ---------------------------------------------------------------------------------

std::string_view to_string(PackingPolicy policy) {
    switch (policy) {
        case PackingPolicy::Random: return "random";
        case PackingPolicy::DotProd: return "dotprod";
        case PackingPolicy::Clustering: return "clustering";
        case PackingPolicy::Packing: return "packing";
        case PackingPolicy::BestFit: return "bestfit";
        case PackingPolicy::Fgd: return "fgd";
    }
    return "";
}

PackedCluster::PackedCluster(std::span<const PackingNode> nodes, PackingPolicy policy,
                             std::span<const TypicalPod> typical, Prng random)
    : policy_(policy), typical_(typical.begin(), typical.end()), random_(random) {
    for (const PackingNode& node : nodes) bins_.emplace_back(node);
    fragmented_.resize(bins_.size(), {~std::uint32_t{0}, 0});
}

std::optional<std::size_t> PackedCluster::place(const PackingPod& pod) {
    arrived_ += pod.demand();
    Choice choice;
    const auto node = policy_ == PackingPolicy::Random ? any(pod, choice) : best(pod, choice);
    if (!node) return std::nullopt;
    bins_[*node].take(pod, choice.device);
    allocated_ += pod.demand();
    return node;
}

std::optional<std::size_t> PackedCluster::any(const PackingPod& pod, Choice& choice) {
    std::vector<std::size_t> fitting;
    for (std::size_t i = 0; i < bins_.size(); ++i)
        if (bins_[i].fits(pod)) fitting.push_back(i);
    if (fitting.empty()) return std::nullopt;
    const std::size_t node = fitting[random_.below(fitting.size())];
    if (!pod.share()) return node;
    std::vector<std::int32_t> devices;
    for (std::int32_t i = 0; i < bins_[node].devices; ++i)
        if (bins_[node].free[static_cast<std::size_t>(i)] >= pod.milli) devices.push_back(i);
    choice.device = devices[random_.below(devices.size())];
    return node;
}

std::optional<std::size_t> PackedCluster::best(const PackingPod& pod, Choice& choice) {
    std::vector<std::pair<std::size_t, Choice>> scored;
    std::vector<Kept>* kept = policy_ == PackingPolicy::Fgd ? &kept_of(pod) : nullptr;
    for (std::size_t i = 0; i < bins_.size(); ++i) {
        if (!bins_[i].fits(pod)) continue;
        if (kept == nullptr) {
            scored.emplace_back(i, score(i, pod));
            continue;
        }
        Kept& known = (*kept)[i];
        if (known.version != bins_[i].version) known = {bins_[i].version, fgd(i, pod)};
        scored.emplace_back(i, known.choice);
    }
    if (scored.empty()) return std::nullopt;
    if (policy_ == PackingPolicy::BestFit) {
        const auto by_score = [](const auto& a) { return a.second.score; };
        const std::int64_t least = by_score(std::ranges::min(scored, {}, by_score));
        const std::int64_t most = by_score(std::ranges::max(scored, {}, by_score));
        for (auto& [node, of] : scored)
            of.score = most == least ? 0 : (of.score - least) * kScoreMax / (most - least);
    }
    const auto& [node, of] =
        *std::ranges::max_element(scored, {}, [](const auto& a) { return a.second.score; });
    choice = of;
    if (pod.share() && choice.device < 0) choice.device = bins_[node].tightest(pod);
    return node;
}

PackedCluster::Choice PackedCluster::score(std::size_t node, const PackingPod& pod) {
    const Bin& bin = bins_[node];
    switch (policy_) {
        case PackingPolicy::DotProd: return {dot_product(bin, pod), -1};
        case PackingPolicy::Clustering: return {clustering(bin, pod), -1};
        case PackingPolicy::Packing: return {packing(bin, pod), -1};
        case PackingPolicy::BestFit: return {best_fit(bin, pod), -1};
        default: return {};
    }
}

std::vector<PackedCluster::Kept>& PackedCluster::kept_of(const PackingPod& pod) {
    for (Class& known : classes_)
        if (known.pod.cpu == pod.cpu && known.pod.devices == pod.devices &&
            known.pod.milli == pod.milli && known.pod.models == pod.models)
            return known.kept;
    return classes_.emplace_back(Class{pod, std::vector<Kept>(bins_.size())}).kept;
}

PackedCluster::Choice PackedCluster::fgd(std::size_t node, const PackingPod& pod) {
    const Bin& bin = bins_[node];
    auto& [version, before] = fragmented_[node];
    if (version != bin.version) version = bin.version, before = fragmented(bin, typical_);
    const auto of = [&](std::int32_t device) {
        Bin after = bin;
        after.take(pod, device);
        const double gain = (before - fragmented(after, typical_)) / 1000;
        return floor_score(1 / (1 + std::exp(-gain)));
    };
    if (!pod.share()) return {of(-1), -1};
    Choice best{-1, -1};
    for (std::int32_t i = 0; i < bin.devices; ++i) {
        if (bin.free[static_cast<std::size_t>(i)] < pod.milli) continue;
        const std::int64_t score = of(i);
        if (score > best.score) best = {score, i};
    }
    return best;
}

}  // namespace muster::simulator::reference
