// Reference policies that place pods on nodes one by one, none of which ever leaves: the five
// baselines of the fragmentation paper (Weng et al., "Beware of Fragmentation", ATC 2023) and its
// own, as their published run had them. For comparison only: production decides otherwise.
//
// Whichever node has the highest score gets the pod; of equal ones the first in the order of the
// nodes given, which the published run drew once at its start.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/prng.h"

namespace muster::simulator::reference {

constexpr std::size_t kDevicesMax = 8;
using Models = std::uint64_t;  // A set, a bit each; 0: any.

struct PackingNode {
    std::int64_t cpu = 0, memory = 0;  // Thousandths of a CPU, MiB.
    std::int32_t devices = 0;
    Models model = 0;  // Its one.
};
struct PackingPod {
    std::int64_t cpu = 0, memory = 0;
    std::int32_t devices = 0, milli = 0;  // Thousandths of each.
    Models models = 0;
    std::int64_t demand() const { return std::int64_t{devices} * milli; }
    bool share() const { return devices == 1 && milli < 1000; }
};

/// A node with what is left of it.
struct Bin {
    std::int64_t cpu = 0, memory = 0;
    std::int32_t devices = 0;
    Models model = 0;
    std::array<std::int32_t, kDevicesMax> free{};  // Thousandths, by device.
    std::uint32_t hosted = 0;   // Bit 0: a part of a device; bit n: n whole ones.
    std::uint32_t version = 0;  // Counts its changes.

    explicit Bin(const PackingNode& node);
    std::int64_t idle() const;  // Thousandths of devices.
    bool fits(const PackingPod& pod) const;
    /// Its fitting device with least free; pod.share() only.
    std::int32_t tightest(const PackingPod& pod) const;
    /// A part on `device`; else on the first idle devices.
    void take(const PackingPod& pod, std::int32_t device);
};

/// What is asked for, how often: classes of pods, weights adding up to 1.
struct TypicalPod {
    std::int64_t cpu = 0;
    std::int32_t devices = 0, milli = 0;
    Models models = 0;
    double weight = 0;
};
/// The most frequent classes that make up 95 % of the pods.
std::vector<TypicalPod> typical_pods(std::span<const PackingPod> pods);
/// Idle thousandths of devices that a pod drawn from `typical` could not use there, on average.
double fragmented(const Bin& bin, std::span<const TypicalPod> typical);

enum class PackingPolicy : std::uint8_t { Random, DotProd, Clustering, Packing, BestFit, Fgd };
std::string_view to_string(PackingPolicy policy);
inline constexpr std::array kPackingPolicies = {PackingPolicy::Random,     PackingPolicy::DotProd,
                                                PackingPolicy::Clustering, PackingPolicy::Packing,
                                                PackingPolicy::BestFit,    PackingPolicy::Fgd};

/// The list shuffled; then pods drawn from it are added, or taken out at random, so that the next
/// one would ask for more than `percent` % of the capacity.
std::vector<PackingPod> arrivals(std::vector<PackingPod> list, std::int64_t capacity_milli,
                                 std::int64_t percent, Prng& random);

/// A cluster that pods come to.
class PackedCluster {
public:
    /// `typical` is for Fgd; `random` for Random.
    PackedCluster(std::span<const PackingNode> nodes, PackingPolicy policy,
                  std::span<const TypicalPod> typical, Prng random);
    /// Places it; the index of its node, or none if it fits nowhere.
    std::optional<std::size_t> place(const PackingPod& pod);

    std::int64_t arrived() const { return arrived_; }      // Demand so far, thousandths.
    std::int64_t allocated() const { return allocated_; }  // Of it.

private:
    struct Choice {
        std::int64_t score = 0;
        std::int32_t device = -1;
    };
    struct Kept {  // A score of a node as it was at that version.
        std::uint32_t version = ~std::uint32_t{0};
        Choice choice;
    };
    Choice score(std::size_t node, const PackingPod& pod);
    Choice fgd(std::size_t node, const PackingPod& pod);
    std::vector<Kept>& kept_of(const PackingPod& pod);
    std::optional<std::size_t> best(const PackingPod& pod, Choice& choice);
    std::optional<std::size_t> any(const PackingPod& pod, Choice& choice);

    PackingPolicy policy_;
    std::vector<TypicalPod> typical_;
    Prng random_;
    std::vector<Bin> bins_;
    std::vector<std::pair<std::uint32_t, double>> fragmented_;  // Of each node, at a version.
    struct Class {
        PackingPod pod;
        std::vector<Kept> kept;
    };
    std::vector<Class> classes_;
    std::int64_t arrived_ = 0, allocated_ = 0;
};

}  // namespace muster::simulator::reference
