// The pipeline's promises, with a store that can be held up, filled and broken.
#include "controller/loop.h"

#include <atomic>
#include <condition_variable>
#include <future>
#include <map>
#include <mutex>

#include <gtest/gtest.h>

#include "core/records.h"

namespace muster::controller {
namespace {

class GateStore final : public ports::Store {
public:
    Status take_term(std::uint64_t term) override {
        term_ = term;
        return Ok{};
    }
    Status load(const std::function<Status(ports::Record)>&) override { return Ok{}; }
    Status commit(const ports::Batch& batch) override {
        std::unique_lock lock(mutex_);
        ++asked_;
        changed_.notify_all();
        changed_.wait(lock, [&] { return open_; });
        if (failure_) return *failure_;
        for (const auto& record : batch.puts) records_[record.key] = record.bytes;
        if (!batch.events.empty()) last_event_ = batch.events.back().sequence;
        ++commits_;
        return Ok{};
    }
    Result<std::vector<ports::LoggedEvent>> events_after(std::uint64_t, std::size_t) override {
        return std::vector<ports::LoggedEvent>();
    }
    std::uint64_t last_event() override { return last_event_; }
    std::uint64_t term() override { return term_; }
    bool nearly_full() override { return full_; }

    void set_open(bool open) {
        const std::lock_guard lock(mutex_);
        open_ = open;
        changed_.notify_all();
    }
    void set_failure(std::optional<Error> failure) {
        const std::lock_guard lock(mutex_);
        failure_ = std::move(failure);
    }
    void wait_asked(int times) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return asked_ >= times; });
    }
    int asked() {
        const std::lock_guard lock(mutex_);
        return asked_;
    }
    std::size_t jobs() {
        const std::lock_guard lock(mutex_);
        return static_cast<std::size_t>(std::ranges::count_if(records_, [](const auto& entry) {
            return entry.first.kind == ports::RecordKind::Job;
        }));
    }
    std::atomic<bool> full_ = false;

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool open_ = true;
    int asked_ = 0, commits_ = 0;
    std::optional<Error> failure_;
    std::map<ports::RecordKey, std::string> records_;
    std::uint64_t last_event_ = 0, term_ = 0;
};

core::SubmitJob job_of(const std::string& name) {
    core::SubmitJob submit;
    submit.caller = {"ana", false};
    submit.spec.name = name;
    submit.spec.roles.emplace_back();
    submit.spec.roles.back().run = "true";
    return submit;
}

class LoopTest : public testing::Test {
protected:
    LoopTest() {
        EXPECT_TRUE(store_.take_term(1));
        LoopHooks hooks;
        hooks.carry_out = [](std::vector<core::Command>, const std::shared_ptr<const core::View>&) {
        };
        hooks.on_events = [](std::uint64_t) {};
        hooks.feed_planner = [](std::vector<scheduler::Change>, bool) {};
        hooks.fatal = [this](const Error& error) { fatal_.set_value(error); };
        hooks.log = [](const std::string&) {};
        hooks.now = [this] { return Time{1'000'000 + clock_++}; };
        loop_ = std::make_unique<Loop>(core::State(), store_, LoopOptions{}, std::move(hooks));
        loop_->post(core::BecomeLeader{1});
        loop_->start();
    }
    std::future<Result<Answered>> submit(const std::string& name) {
        auto promise = std::make_shared<std::promise<Result<Answered>>>();
        loop_->post(job_of(name),
                    [promise](Result<Answered> answer) { promise->set_value(std::move(answer)); });
        return promise->get_future();
    }
    GateStore store_;
    std::atomic<std::int64_t> clock_ = 0;
    std::promise<Error> fatal_;
    std::unique_ptr<Loop> loop_;
};

TEST_F(LoopTest, nothing_is_acknowledged_before_it_is_durable) {
    const auto first = submit("first").get();
    ASSERT_TRUE(first);
    std::promise<void> seen;
    loop_->when_published(first->revision, [&] { seen.set_value(); });
    seen.get_future().get();
    store_.set_open(false);
    const int asked = store_.asked();
    auto held = submit("held");
    store_.wait_asked(asked + 1);  // The commit is under way, and stands still.
    EXPECT_EQ(held.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
    EXPECT_EQ(loop_->view()->jobs.size(), 1u) << "published before it was durable";
    store_.set_open(true);
    ASSERT_TRUE(held.get());
    EXPECT_EQ(store_.jobs(), 2u);
}

TEST_F(LoopTest, what_comes_while_a_batch_is_synced_goes_out_in_one) {
    ASSERT_TRUE(submit("first").get());
    store_.set_open(false);
    const int asked = store_.asked();
    std::vector<std::future<Result<Answered>>> answers;
    answers.push_back(submit("one"));
    store_.wait_asked(asked + 1);
    for (int i = 0; i < 500; ++i) answers.push_back(submit("more"));
    store_.set_open(true);
    std::set<std::uint64_t> ids;
    for (auto& answer : answers) ids.insert((*answer.get()).answer.job.value);
    EXPECT_EQ(ids.size(), 501u);
    EXPECT_LE(store_.asked() - asked, 60) << "no group commit";
}

TEST_F(LoopTest, who_wrote_reads_his_own_write) {
    for (int i = 0; i < 50; ++i) {
        const auto answer = submit("mine").get();
        ASSERT_TRUE(answer);
        std::promise<void> seen;
        loop_->when_published(answer->revision, [&] { seen.set_value(); });
        seen.get_future().get();
        EXPECT_TRUE(loop_->view()->jobs.contains(answer->answer.job.value)) << i;
    }
}

TEST_F(LoopTest, a_full_disk_holds_the_batch_and_refuses_new_work_until_there_is_room) {
    ASSERT_TRUE(submit("first").get());
    store_.set_failure(Error{Code::NoSpace, "no room"});
    const int asked = store_.asked();
    auto held = submit("held");
    store_.wait_asked(asked + 3);  // Tried again and again.
    const auto refused = submit("refused").get();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::NoSpace);
    EXPECT_TRUE(loop_->stats().store_stuck);
    store_.set_failure(std::nullopt);
    EXPECT_TRUE(held.get());
    EXPECT_TRUE(submit("again").get());
}

TEST_F(LoopTest, a_full_disk_does_not_keep_it_from_stopping) {
    ASSERT_TRUE(submit("first").get());
    store_.set_failure(Error{Code::NoSpace, "no room"});
    const int asked = store_.asked();
    auto held = submit("held");
    store_.wait_asked(asked + 2);
    loop_->post(job_of("behind it"), {});
    loop_.reset();
    EXPECT_EQ(store_.jobs(), 1u);
    EXPECT_EQ(held.wait_for(std::chrono::seconds(0)), std::future_status::ready);
    EXPECT_THROW(held.get(), std::future_error) << "answered, but not durable";
}

TEST_F(LoopTest, what_was_posted_before_a_stop_is_durable_and_what_comes_after_is_forgotten) {
    std::vector<std::future<Result<Answered>>> answers;
    for (int i = 0; i < 500; ++i) answers.push_back(submit("before"));
    loop_->stop();
    for (auto& answer : answers) {
        ASSERT_EQ(answer.wait_for(std::chrono::seconds(0)), std::future_status::ready);
        EXPECT_TRUE(answer.get());
    }
    auto after = submit("after");
    EXPECT_EQ(store_.jobs(), 500u);
    loop_.reset();
    EXPECT_EQ(store_.jobs(), 500u);
    EXPECT_THROW(after.get(), std::future_error);
}

TEST_F(LoopTest, near_the_watermark_new_work_is_refused_but_a_cancel_is_not) {
    const auto first = submit("first").get();
    ASSERT_TRUE(first);
    store_.full_ = true;
    EXPECT_EQ(submit("refused").get().error().code, Code::NoSpace);
    std::promise<Result<Answered>> cancelled;
    loop_->post(core::ActOnJob{{"ana", false}, first->answer.job, -1, core::JobAction::Cancel},
                [&](Result<Answered> answer) { cancelled.set_value(std::move(answer)); });
    EXPECT_TRUE(cancelled.get_future().get());
}

TEST_F(LoopTest, after_an_io_error_the_process_ends_and_nothing_is_acknowledged) {
    ASSERT_TRUE(submit("first").get());
    store_.set_failure(Error{Code::Corrupt, "sync failed"});
    auto lost = submit("lost");
    EXPECT_EQ(fatal_.get_future().get().message, "sync failed");
    loop_.reset();
    EXPECT_THROW(lost.get(), std::future_error) << "answered, but not durable";
}

TEST_F(LoopTest, a_refused_input_is_answered_at_once_and_stores_nothing) {
    core::SubmitJob bad = job_of("bad");
    bad.spec.priority = 5'000;
    std::promise<Result<Answered>> answer;
    loop_->post(std::move(bad),
                [&](Result<Answered> result) { answer.set_value(std::move(result)); });
    EXPECT_FALSE(answer.get_future().get());
    EXPECT_EQ(store_.jobs(), 0u);
}

}  // namespace
}  // namespace muster::controller
