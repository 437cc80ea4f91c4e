// Acknowledged means durable, and nothing half: the store under power cuts at every sync boundary,
// torn writes, and an error at every single operation.
#include <map>
#include <optional>

#include <gtest/gtest.h>

#include "store/fault_vfs.h"
#include "store/sqlite_history.h"
#include "store/sqlite_store.h"

namespace muster::store {
namespace {

using Contents = std::map<ports::RecordKey, std::string>;

struct World {
    FaultVfs vfs;
    std::unique_ptr<SqliteStore> store;

    Status open() {
        SqliteStoreOptions options{.path = "state.db",
                                   .vfs = vfs.name(),
                                   .events_kept = 40,
                                   .ballast_bytes = 0,
                                   .checkpoint_thread = false};
        MUSTER_LET(opened, SqliteStore::open(options));
        store = std::move(opened);
        return Ok{};
    }
    Contents contents() {
        Contents all;
        EXPECT_TRUE(store->load([&](ports::Record record) -> Status {
            all[record.key] = record.bytes;
            return Ok{};
        }));
        return all;
    }
};

// A random batch, and what the contents are after it.
ports::Batch random_batch(Prng& prng, Contents& model, std::uint64_t last_event) {
    ports::Batch batch{.term = 1};
    std::map<ports::RecordKey, std::optional<std::string>> touched;
    for (auto i = prng.between(1, 12); i > 0; --i) {
        const ports::RecordKey key{ports::RecordKind::Job, prng.below(60)};
        if (prng.chance(250))
            touched[key] = std::nullopt;
        else
            touched[key] = std::string(prng.below(900), static_cast<char>('a' + prng.below(26)));
    }
    for (const auto& [key, bytes] : touched) {
        if (bytes) {
            batch.puts.push_back({key, *bytes});
            model[key] = *bytes;
        } else {
            batch.drops.push_back(key);
            model.erase(key);
        }
    }
    // Never a batch that changes nothing: that one needs no sync.
    const ports::RecordKey meta{ports::RecordKind::Meta, 0};
    batch.puts.push_back({meta, model[meta] = std::to_string(prng.next())});
    for (auto i = prng.between(0, 3); i > 0; --i) batch.events.push_back({++last_event, 5, "{}"});
    return batch;
}

TEST(PowerCut, every_acknowledged_batch_is_there_after_a_cut_at_any_moment) {
    std::uint64_t cuts = 0;
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        Prng prng(seed);
        World world;
        ASSERT_TRUE(world.open());
        ASSERT_TRUE(world.store->take_term(1));
        Contents model;
        for (int i = 0; i < 60; ++i) {
            const auto syncs = world.vfs.syncs();
            const auto batch = random_batch(prng, model, world.store->last_event());
            ASSERT_TRUE(world.store->commit(batch));
            ASSERT_GT(world.vfs.syncs(), syncs) << "acknowledged without a sync";
            if (prng.chance(100)) ASSERT_TRUE(world.store->checkpoint());
            // Nothing unsynced survives, everything does, or any torn part of it.
            for (const unsigned keep : {0u, 1000u, 500u}) {
                World after;
                after.vfs.restore(world.vfs.power_cut(prng, keep));
                ASSERT_TRUE(after.open()) << "seed " << seed;
                ASSERT_EQ(after.contents(), model)
                    << "seed " << seed << " batch " << i << " keep " << keep;
                ASSERT_EQ(after.store->last_event(), world.store->last_event());
                ++cuts;
            }
        }
    }
    EXPECT_GT(cuts, 2000u);
}

TEST(PowerCut, a_cut_inside_a_commit_leaves_all_or_nothing_of_it) {
    int lost = 0, kept = 0;
    for (std::uint64_t seed = 1; seed <= 150; ++seed) {
        Prng prng(seed);
        World world;
        ASSERT_TRUE(world.open());
        ASSERT_TRUE(world.store->take_term(1));
        Contents before;
        for (int i = 0; i < 5; ++i)
            ASSERT_TRUE(world.store->commit(random_batch(prng, before, world.store->last_event())));
        Contents after_batch = before;
        const auto batch = random_batch(prng, after_batch, world.store->last_event());
        // The power goes at a random operation of the commit: nothing after it reaches the disk.
        world.vfs.fail_after(1 + prng.below(12), FaultVfs::Fault::IoError, true);
        const bool acknowledged = static_cast<bool>(world.store->commit(batch));
        World after;
        after.vfs.restore(world.vfs.power_cut(prng, static_cast<unsigned>(prng.below(3) * 500)));
        ASSERT_TRUE(after.open());
        const Contents found = after.contents();
        ASSERT_TRUE(found == before || found == after_batch) << "half a batch, seed " << seed;
        if (acknowledged) ASSERT_EQ(found, after_batch) << "seed " << seed;
        (found == after_batch ? kept : lost)++;
    }
    EXPECT_GT(lost, 10);
    EXPECT_GT(kept, 2);
}

TEST(PowerCut, a_full_disk_at_any_operation_is_reported_and_the_batch_can_be_tried_again) {
    int full = 0;
    for (std::uint64_t n = 1; n <= 40; ++n) {
        Prng prng(n);
        World world;
        ASSERT_TRUE(world.open());
        ASSERT_TRUE(world.store->take_term(1));
        Contents model;
        ASSERT_TRUE(world.store->commit(random_batch(prng, model, world.store->last_event())));
        const Contents before = model;
        const auto batch = random_batch(prng, model, world.store->last_event());
        world.vfs.fail_after(n, FaultVfs::Fault::DiskFull, true);
        const Status done = world.store->commit(batch);
        if (!world.vfs.struck()) break;  // n is past the commit's last operation.
        if (!done && done.error().code == Code::NoSpace) {
            ++full;
            EXPECT_EQ(world.contents(), before);
            world.vfs.fail_after(0, FaultVfs::Fault::None, false);
            ASSERT_TRUE(world.store->commit(batch)) << "operation " << n;
        }
        if (world.store && world.contents() == model) continue;
        // A failed sync is not "full": the process must recover from what was synced.
        ASSERT_EQ(done.error().code, Code::Corrupt);
    }
    EXPECT_GT(full, 0);
}

TEST(PowerCut, an_io_error_at_any_operation_is_never_an_acknowledgement) {
    int struck = 0;
    for (std::uint64_t n = 1; n <= 40; ++n) {
        Prng prng(n + 100);
        World world;
        ASSERT_TRUE(world.open());
        ASSERT_TRUE(world.store->take_term(1));
        Contents model;
        ASSERT_TRUE(world.store->commit(random_batch(prng, model, world.store->last_event())));
        const Contents before = model;
        const auto batch = random_batch(prng, model, world.store->last_event());
        world.vfs.fail_after(n, FaultVfs::Fault::IoError, true);
        const Status done = world.store->commit(batch);
        if (!world.vfs.struck()) break;
        ++struck;
        ASSERT_FALSE(done) << "operation " << n;
        ASSERT_EQ(done.error().code, Code::Corrupt) << done.error().cause;
        World after;
        after.vfs.restore(world.vfs.power_cut(prng, 0));
        ASSERT_TRUE(after.open());
        const Contents found = after.contents();
        ASSERT_TRUE(found == before || found == model);
    }
    EXPECT_GT(struck, 1);
}

TEST(PowerCut, history_keeps_what_it_acknowledged) {
    FaultVfs vfs;
    auto history = open_sqlite_history("history.db", vfs.name());
    ASSERT_TRUE(history) << history.error().cause;
    Prng prng(3);
    for (std::uint64_t id = 1; id <= 20; ++id) {
        ports::EndedJob job{.job = {id}, .name = "n", .user = "u", .json = "{}"};
        ASSERT_TRUE((*history)->append({job}));
        FaultVfs after;
        after.restore(vfs.power_cut(prng, 300));
        auto reopened = open_sqlite_history("history.db", after.name());
        ASSERT_TRUE(reopened);
        EXPECT_EQ((*reopened)->newest().value, id);
    }
}

}  // namespace
}  // namespace muster::store
