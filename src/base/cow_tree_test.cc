// The tree against std::map under random edits, and the promise that a view never changes.
#include "base/cow_tree.h"

#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"

namespace muster {
namespace {

std::map<std::uint64_t, std::uint64_t> contents(const CowTree<std::uint64_t>& tree) {
    std::map<std::uint64_t, std::uint64_t> all;
    tree.for_each([&](std::uint64_t key, std::uint64_t value) { all[key] = value; });
    return all;
}

TEST(CowTree, equals_a_map_and_views_stay_as_they_were) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        Prng prng(seed);
        CowTree<std::uint64_t> tree;
        std::map<std::uint64_t, std::uint64_t> model;
        std::vector<std::pair<CowTree<std::uint64_t>, std::map<std::uint64_t, std::uint64_t>>>
            views;
        const std::uint64_t range = std::uint64_t{1} << prng.between(3, 60);
        for (int i = 0; i < 2000; ++i) {
            const std::uint64_t key = prng.below(range);
            if (prng.chance(300)) {
                tree.erase(key);
                model.erase(key);
            } else {
                tree.upsert(key) = model[key] = prng.next();
            }
            if (prng.chance(10)) views.emplace_back(tree, model);
        }
        EXPECT_EQ(contents(tree), model) << "seed " << seed;
        EXPECT_EQ(tree.size(), model.size());
        for (const auto& [view, then] : views) EXPECT_EQ(contents(view), then) << "seed " << seed;
    }
}

TEST(CowTree, walks_from_a_key_both_ways) {
    CowTree<int> tree;
    for (const std::uint64_t key : {3u, 64u, 70u, 5000u, 300000u}) tree.upsert(key) = 1;
    std::vector<std::uint64_t> up, down;
    tree.visit_from(64, [&](std::uint64_t key, int) { return up.push_back(key), up.size() < 3; });
    tree.visit_back_from(5000, [&](std::uint64_t key, int) { return down.push_back(key), true; });
    EXPECT_EQ(up, (std::vector<std::uint64_t>{64, 70, 5000}));
    EXPECT_EQ(down, (std::vector<std::uint64_t>{5000, 70, 64, 3}));
    EXPECT_EQ(tree.find(std::uint64_t{1} << 35), nullptr);
}

TEST(CowTree, tells_what_changed_between_two_views) {
    CowTree<int> tree;
    std::map<std::uint64_t, int> model;
    Prng random(7);
    for (int round = 0; round < 200; ++round) {
        const CowTree<int> before = tree;
        const std::map<std::uint64_t, int> model_before = model;
        EXPECT_TRUE(before.same_as(tree));
        for (int i = 0; i < 5; ++i) {
            const std::uint64_t key = random.below(round < 100 ? 300 : 300'000);
            if (random.below(3) == 0)
                tree.erase(key), model.erase(key);
            else
                tree.upsert(key) = model[key] = static_cast<int>(random.below(4));
        }
        std::map<std::uint64_t, int> rebuilt = model_before;
        std::uint64_t last = 0;
        const auto equal = [](int a, int b) { return a == b; };
        tree.visit_changed(before, equal, [&](std::uint64_t key, const int* now, const int* was) {
            EXPECT_TRUE(last <= key);
            last = key;
            EXPECT_EQ(was != nullptr, model_before.contains(key));
            if (now != nullptr)
                rebuilt[key] = *now;
            else
                rebuilt.erase(key);
        });
        EXPECT_EQ(rebuilt, model);
    }
}

}  // namespace
}  // namespace muster
