// A table from dense-ish ids to records that can be published without copying it.
//
// A 64-way radix tree of copy-on-write nodes. Copying the tree copies one pointer: the copy is an
// immutable view that other threads may read and drop, while the owner goes on changing his tree
// and pays for the path (6 nodes of 64 up to 2^36) that he touches first after each publication.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/require.h"

namespace muster {

/// Keys below 2^60. Iteration is in key order. One thread changes a tree; views are read-only.
template <class T>
class CowTree {
    static constexpr int kBits = 6;
    static constexpr std::uint64_t kFan = 1u << kBits;
    static constexpr int kLevels = 10;  // Inner levels above the leaf are created as needed.

    struct Node {
        std::uint64_t used = 0;  // Bitmap of the slots in use.
        virtual ~Node() = default;
    };
    struct Inner final : Node {
        std::array<std::shared_ptr<Node>, kFan> child;
    };
    struct Leaf final : Node {
        std::array<T, kFan> value{};
    };

public:
    const T* find(std::uint64_t key) const {
        if ((key >> (kBits * (height_ + 1))) != 0 || !root_) return nullptr;
        const Node* node = root_.get();
        for (int level = height_; level > 0; --level) {
            const auto slot = (key >> (kBits * level)) & (kFan - 1);
            if ((node->used >> slot & 1) == 0) return nullptr;
            node = static_cast<const Inner*>(node)->child[slot].get();
        }
        const auto slot = key & (kFan - 1);
        if ((node->used >> slot & 1) == 0) return nullptr;
        return &static_cast<const Leaf*>(node)->value[slot];
    }
    const T& at(std::uint64_t key) const {
        const T* value = find(key);
        MUSTER_REQUIRE(value != nullptr);
        return *value;
    }
    bool contains(std::uint64_t key) const { return find(key) != nullptr; }
    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }

    /// The record to change; it must exist. Valid until the tree is copied or changed otherwise.
    T& edit(std::uint64_t key) {
        T* value = touch(key, false);
        MUSTER_REQUIRE(value != nullptr);
        return *value;
    }
    /// The record, made if it is new.
    T& upsert(std::uint64_t key) { return *touch(key, true); }

    void erase(std::uint64_t key) {
        if (!contains(key)) return;
        erase_from(root_, height_, key);
        --size_;
        if (root_->used == 0) root_.reset(), height_ = 0;
    }

    /// Calls visit(key, const T&) in key order, from `first` on, until it returns false.
    template <class Visit>
    void visit_from(std::uint64_t first, Visit&& visit) const {
        if (root_ && (first >> (kBits * (height_ + 1))) == 0)
            walk(*root_, height_, 0, first, visit);
    }
    template <class Visit>
    void for_each(Visit&& visit) const {
        visit_from(0, [&](std::uint64_t key, const T& value) {
            visit(key, value);
            return true;
        });
    }
    /// As visit_from, in falling key order, from `last` down.
    template <class Visit>
    void visit_back_from(std::uint64_t last, Visit&& visit) const {
        if (root_) walk_back(*root_, height_, 0, last, visit);
    }

    /// True if one is a copy of the other, unchanged since. (False says nothing.)
    bool same_as(const CowTree& other) const { return root_ == other.root_; }
    /// Calls visit(key, const T* here, const T* there), in key order, for every record that one of
    /// them lacks or for which equal(here, there) is false. What they share costs nothing.
    template <class Equal, class Visit>
    void visit_changed(const CowTree& other, Equal&& equal, Visit&& visit) const {
        const int top = height_ > other.height_ ? height_ : other.height_;
        differ({root_.get(), height_}, {other.root_.get(), other.height_}, top, 0, equal, visit);
    }

private:
    struct Place {
        const Node* node;  // Null: nothing there.
        int height;        // Of `node`, perhaps below the level that is looked at.

        std::uint64_t used(int level) const {
            if (node == nullptr) return 0;
            return height < level ? 1 : node->used;
        }
        Place down(int level, std::uint64_t slot) const {
            if ((used(level) >> slot & 1) == 0) return {nullptr, level - 1};
            if (height < level) return *this;
            return {static_cast<const Inner*>(node)->child[slot].get(), level - 1};
        }
        const T* value(std::uint64_t slot) const {
            if ((used(0) >> slot & 1) == 0) return nullptr;
            return &static_cast<const Leaf*>(node)->value[slot];
        }
    };
    template <class Equal, class Visit>
    static void differ(Place here, Place there, int level, std::uint64_t base, Equal& equal,
                       Visit& visit) {
        if (here.node == there.node) return;
        const std::uint64_t span = std::uint64_t{1} << (kBits * level);
        for (std::uint64_t bits = here.used(level) | there.used(level); bits != 0;
             bits &= bits - 1) {
            const auto slot = static_cast<std::uint64_t>(std::countr_zero(bits));
            if (level > 0) {
                differ(here.down(level, slot), there.down(level, slot), level - 1,
                       base + slot * span, equal, visit);
                continue;
            }
            const T* mine = here.value(slot);
            const T* theirs = there.value(slot);
            if (mine == nullptr || theirs == nullptr || !equal(*mine, *theirs)) {
                visit(base + slot, mine, theirs);
            }
        }
    }
    // A node that no view shares may be changed in place. Only the owner adds references, so a
    // count of one cannot grow under him; the fence orders him after the reader that let go.
    template <class N>
    static N& own(std::shared_ptr<Node>& node) {
        if (node.use_count() != 1) {
            node = std::make_shared<N>(static_cast<const N&>(*node));
        } else {
#ifdef __SANITIZE_THREAD__  // tsan knows no fences; counting up and down orders as well.
            const std::shared_ptr<Node> order = node;
#else
            std::atomic_thread_fence(std::memory_order_acquire);
#endif
        }
        return static_cast<N&>(*node);
    }
    T* touch(std::uint64_t key, bool create) {
        MUSTER_REQUIRE(key >> (kBits * kLevels) == 0);
        if (!create && !contains(key)) return nullptr;
        if (!root_) root_ = std::make_shared<Leaf>();
        while ((key >> (kBits * (height_ + 1))) != 0) {
            auto above = std::make_shared<Inner>();
            above->child[0] = std::move(root_);
            above->used = 1;
            root_ = std::move(above);
            ++height_;
        }
        std::shared_ptr<Node>* node = &root_;
        for (int level = height_; level > 0; --level) {
            const auto slot = (key >> (kBits * level)) & (kFan - 1);
            Inner& inner = own<Inner>(*node);
            if ((inner.used >> slot & 1) == 0) {
                if (level > 1)
                    inner.child[slot] = std::make_shared<Inner>();
                else
                    inner.child[slot] = std::make_shared<Leaf>();
                inner.used |= std::uint64_t{1} << slot;
            }
            node = &inner.child[slot];
        }
        Leaf& leaf = own<Leaf>(*node);
        const auto slot = key & (kFan - 1);
        if ((leaf.used >> slot & 1) == 0) {
            leaf.used |= std::uint64_t{1} << slot;
            leaf.value[slot] = T{};
            ++size_;
        }
        return &leaf.value[slot];
    }
    static void erase_from(std::shared_ptr<Node>& node, int level, std::uint64_t key) {
        const auto slot = (key >> (kBits * level)) & (kFan - 1);
        if (level == 0) {
            Leaf& leaf = own<Leaf>(node);
            leaf.used &= ~(std::uint64_t{1} << slot);
            leaf.value[slot] = T{};
            return;
        }
        Inner& inner = own<Inner>(node);
        erase_from(inner.child[slot], level - 1, key);
        if (inner.child[slot]->used == 0) {
            inner.child[slot].reset();
            inner.used &= ~(std::uint64_t{1} << slot);
        }
    }
    template <class Visit>
    static bool walk(const Node& node, int level, std::uint64_t base, std::uint64_t first,
                     Visit& visit) {
        const std::uint64_t span = std::uint64_t{1} << (kBits * level);
        for (std::uint64_t bits = node.used; bits != 0; bits &= bits - 1) {
            const auto slot = static_cast<std::uint64_t>(std::countr_zero(bits));
            const std::uint64_t key = base + slot * span;
            if (key + span <= first) continue;
            if (level == 0) {
                if (!visit(key, static_cast<const Leaf&>(node).value[slot])) return false;
            } else if (!walk(*static_cast<const Inner&>(node).child[slot], level - 1, key, first,
                             visit)) {
                return false;
            }
        }
        return true;
    }
    template <class Visit>
    static bool walk_back(const Node& node, int level, std::uint64_t base, std::uint64_t last,
                          Visit& visit) {
        const std::uint64_t span = std::uint64_t{1} << (kBits * level);
        for (std::uint64_t bits = node.used; bits != 0;) {
            const auto slot = static_cast<std::uint64_t>(63 - std::countl_zero(bits));
            bits &= ~(std::uint64_t{1} << slot);
            const std::uint64_t key = base + slot * span;
            if (key > last) continue;
            if (level == 0) {
                if (!visit(key, static_cast<const Leaf&>(node).value[slot])) return false;
            } else if (!walk_back(*static_cast<const Inner&>(node).child[slot], level - 1, key,
                                  last, visit)) {
                return false;
            }
        }
        return true;
    }

    std::shared_ptr<Node> root_;
    int height_ = 0;
    std::size_t size_ = 0;
};

}  // namespace muster
