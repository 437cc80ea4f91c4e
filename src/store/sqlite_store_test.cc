#include "store/sqlite_store.h"

#include <filesystem>
#include <fstream>

#include <stdlib.h>

#include <gtest/gtest.h>

#include "store/sqlite_history.h"

namespace muster::store {
namespace {

class StoreTest : public testing::Test {
protected:
    StoreTest() {
        char folder[] = "/tmp/muster-store-XXXXXX";
        folder_ = ::mkdtemp(folder);
    }
    ~StoreTest() override { std::filesystem::remove_all(folder_); }
    std::unique_ptr<SqliteStore> open() {
        SqliteStoreOptions options{
            .path = folder_ + "/state.db", .events_kept = 50, .checkpoint_bytes = 1};
        options.ballast_bytes = 1 << 20;
        auto store = SqliteStore::open(options);
        EXPECT_TRUE(store) << store.error().cause;
        return *std::move(store);
    }
    static ports::Batch batch_of(std::uint64_t term, std::uint64_t id, std::string bytes) {
        ports::Batch batch{.term = term};
        batch.puts.push_back({{ports::RecordKind::Job, id}, std::move(bytes)});
        return batch;
    }
    std::string folder_;
};

TEST_F(StoreTest, records_come_back_in_key_order) {
    {
        auto store = open();
        ASSERT_TRUE(store->take_term(3));
        ASSERT_TRUE(store->commit(batch_of(3, 9, "nine")));
        ASSERT_TRUE(store->commit(batch_of(3, 2, std::string("t\0wo", 4))));
        ASSERT_TRUE(store->commit(batch_of(3, 9, "new nine")));
        ports::Batch batch{.term = 3};
        batch.puts.push_back({{ports::RecordKind::Meta, 0}, "meta"});
        batch.drops.push_back({ports::RecordKind::Job, 77});
        ASSERT_TRUE(store->commit(batch));
    }
    auto store = open();
    EXPECT_EQ(store->term(), 3u);
    std::string all;
    ASSERT_TRUE(store->load([&](ports::Record record) -> Status {
        all += std::to_string(static_cast<int>(record.key.kind)) + "/" +
               std::to_string(record.key.id) + "=" + record.bytes + ";";
        return Ok{};
    }));
    EXPECT_EQ(all, std::string("1/0=meta;2/2=t\0wo;2/9=new nine;", 31));
}

TEST_F(StoreTest, a_deposed_leader_cannot_write) {
    auto old_leader = open();
    ASSERT_TRUE(old_leader->take_term(1));
    ASSERT_TRUE(old_leader->commit(batch_of(1, 1, "a")));
    auto new_leader = open();
    ASSERT_TRUE(new_leader->take_term(2));
    const auto refused = old_leader->commit(batch_of(1, 1, "b"));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::Conflict);
    EXPECT_EQ(old_leader->take_term(2).error().code, Code::Conflict);
    EXPECT_TRUE(new_leader->commit(batch_of(2, 1, "c")));
}

TEST_F(StoreTest, events_resume_and_old_ones_are_gone) {
    auto store = open();
    ASSERT_TRUE(store->take_term(1));
    for (std::uint64_t i = 1; i <= 100; ++i) {
        ports::Batch batch{.term = 1};
        batch.events.push_back({2 * i - 1, 7, "{\"n\":" + std::to_string(2 * i - 1) + "}"});
        batch.events.push_back({2 * i, 7, "{}"});
        ASSERT_TRUE(store->commit(batch));
    }
    const auto gone = store->events_after(10, 5);
    ASSERT_FALSE(gone);
    EXPECT_EQ(gone.error().code, Code::Gone);
    const auto some = store->events_after(180, 5);
    ASSERT_TRUE(some);
    ASSERT_EQ(some->size(), 5u);
    EXPECT_EQ(some->front().sequence, 181u);
    EXPECT_EQ(some->front().json, "{\"n\":181}");
    EXPECT_TRUE(store->events_after(200, 5)->empty());
    store.reset();
    store = open();  // From the disk now, not from memory.
    EXPECT_EQ(store->last_event(), 200u);
    const auto again = store->events_after(195, 100);
    ASSERT_TRUE(again);
    ASSERT_EQ(again->size(), 5u);
    EXPECT_EQ(again->back().sequence, 200u);
    EXPECT_FALSE(store->events_after(10, 5));
}

TEST_F(StoreTest, says_what_is_wrong_with_a_path) {
    const auto missing = SqliteStore::open({.path = folder_ + "/no/such/folder/state.db"});
    ASSERT_FALSE(missing);
    EXPECT_NE(missing.error().message.find("no/such/folder"), std::string::npos);
    std::ofstream(folder_ + "/noise.db") << std::string(9000, 'x');
    const auto noise = SqliteStore::open({.path = folder_ + "/noise.db"});
    ASSERT_FALSE(noise);
    EXPECT_EQ(noise.error().code, Code::Corrupt);
}

// A tmpfs of 6 MB stands in for the full disk; mounting it takes root.
TEST_F(StoreTest, a_full_disk_keeps_what_was_acknowledged_and_recovers) {
    const std::string disk = folder_ + "/disk";
    std::filesystem::create_directory(disk);
    if (::system(("mount -t tmpfs -o size=6m tmpfs " + disk + " 2>/dev/null").c_str()) != 0) {
        GTEST_SKIP() << "cannot mount a tmpfs (not root?)";
    }
    {
        auto opened = SqliteStore::open(
            {.path = disk + "/state.db", .ballast_bytes = 1 << 20, .watermark_bytes = 2 << 20});
        ASSERT_TRUE(opened);
        auto store = *std::move(opened);
        ASSERT_TRUE(store->take_term(1));
        EXPECT_FALSE(store->nearly_full());
        std::uint64_t acknowledged = 0;
        Status done = Ok{};
        bool warned = false;
        while (done && acknowledged < 1000) {
            done = store->commit(batch_of(1, acknowledged + 1, std::string(20'000, 'x')));
            if (done) ++acknowledged;
            warned = warned || store->nearly_full();
        }
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().code, Code::NoSpace) << done.error().cause;
        EXPECT_TRUE(warned);
        EXPECT_TRUE(store->nearly_full());
        ASSERT_EQ(::system(("mount -o remount,size=16m " + disk).c_str()), 0);
        EXPECT_TRUE(store->commit(batch_of(1, acknowledged + 1, "fits now")));
        std::uint64_t found = 0;
        ASSERT_TRUE(store->load([&](ports::Record) -> Status { return ++found, Ok{}; }));
        EXPECT_EQ(found, acknowledged + 1);
    }
    EXPECT_EQ(::system(("umount " + disk).c_str()), 0);
}

TEST_F(StoreTest, history_lists_newest_first_with_filters) {
    auto opened = open_sqlite_history(folder_ + "/history.db");
    ASSERT_TRUE(opened);
    auto& history = **opened;
    std::vector<ports::EndedJob> jobs;
    for (std::uint64_t id = 1; id <= 9; ++id) {
        jobs.push_back({.job = {id},
                        .name = "job" + std::to_string(id),
                        .user = id % 2 ? "ana" : "wei",
                        .state = id == 5 ? "failed" : "succeeded",
                        .ended_ms = static_cast<std::int64_t>(id) * 10});
    }
    ASSERT_TRUE(history.append(jobs));
    ASSERT_TRUE(history.append({jobs[3]}));  // Twice is harmless.
    EXPECT_EQ(history.newest().value, 9u);
    const auto ids = [&](const ports::HistoryFilter& filter) {
        std::string text;
        const auto found = history.list(filter);
        for (const auto& job : *found) text += std::to_string(job.job.value) + " ";
        return text;
    };
    EXPECT_EQ(ids({}), "9 8 7 6 5 4 3 2 1 ");
    EXPECT_EQ(ids({.user = "wei"}), "8 6 4 2 ");
    EXPECT_EQ(ids({.state = "failed"}), "5 ");
    EXPECT_EQ(ids({.since_ms = 75}), "9 8 ");
    EXPECT_EQ(ids({.before = 4, .limit = 2}), "3 2 ");
    EXPECT_EQ(ids({.user = "x' OR 1=1 --"}), "");
    EXPECT_EQ((**history.find({4})).name, "job4");
    EXPECT_FALSE((*history.find({44})).has_value());
}

}  // namespace
}  // namespace muster::store
