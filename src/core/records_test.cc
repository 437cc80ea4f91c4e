// Records read back as they were written; what is cut or torn is refused, never misread.
#include "core/records.h"

#include "base/bytes.h"
#include "core/record_codec.h"
#include "core/test_world.h"

namespace muster::core {
namespace {

Job full_job() {
    Job job;
    job.id = {7}, job.spec = {3}, job.shape = {2};
    job.user = 1, job.queue = 1, job.array_job = 5, job.array_element = 9;
    job.state = model::JobState::Running;
    job.cause = model::Cause::NodeLost;
    job.priority = 99;
    job.epoch = 4, job.restarts = 2, job.faults = 3;
    job.submitted = {1000}, job.since = {2000}, job.eligible = {1500};
    JobExtra extra;
    Allocation allocation{4, {1900}, {{{1}, 0, 1, {"a", "b"}, {4000}, {1 << 30}, {5}}}};
    allocation.slots.push_back({{2}, 0, 0, {"c"}, {500}, {7}, {8}, true, 250, {1 << 20}});
    allocation.devices = {{"gpus", 2250}, {"h100", 2250}};
    allocation.weight = 1800;
    allocation.expected_end = {901'900};
    extra.allocation = allocation;
    extra.attempts = {
        {3, {1}, {2}, {3}, {4}, model::Cause::Oom, 137, 2, "n1", "killed", {5}, 6, 7, {8}, 9}};
    extra.attempts_total = 40;
    extra.waiting_for = {{model::Dependency::When::AfterNotOk, {6}}};
    extra.array = ArrayBook{{{0, 3}, {5, 9}}, {4}, 1, 2, 3, 4};
    extra.avoid = {{1}, {2}};
    extra.checkpoint = "/c/1", extra.checkpoint_step = 40, extra.checkpoint_at = {44};
    extra.hold_owner = "admin:eve";
    extra.message = "because", extra.exit_code = 3, extra.peak_memory = {99};
    extra.lost_time = {55}, extra.steps_repeated = 66, extra.first_started = {77};
    extra.deadline = {88}, extra.queued_at = {9}, extra.running_at = {10}, extra.fault_at = {11};
    extra.resumed_step = 12, extra.decided_rank = 13, extra.decided_node = "n9";
    extra.last_nodes = {{3}, {4}};
    extra.attempts[0].beneficiary = {8};
    extra.attempts[0].reason = scheduler::StopReason::Reclaim;
    scheduler::Slot slot;
    slot.node = {5}, slot.group = 1, slot.alternative = 2, slot.spare = true;
    extra.claim = scheduler::Claim{{slot}, {12'345}};
    extra.beneficiary = {99}, extra.stop_reason = scheduler::StopReason::Shrink;
    extra.preemptions = 3, extra.attained = 77'000;
    job.extra = std::make_shared<const JobExtra>(extra);
    return job;
}

TEST(Records, a_job_reads_back_whole) {
    const Job job = full_job();
    const auto back = decode_job(encode_job(job));
    ASSERT_TRUE(back);
    EXPECT_EQ(extra_of(*back), extra_of(job));
    EXPECT_EQ(encode_job(*back), encode_job(job));
    EXPECT_EQ(back->array_element, 9u);
    EXPECT_EQ(back->faults, 3u);
}

TEST(Records, the_first_version_of_meta_is_read) {
    Writer out;
    out.number(1);
    for (const std::uint64_t n : {9, 8, 7, 6, 5, 4, 3, 2, 1, 10}) out.number(n);
    const auto meta = decode_meta(out.bytes());
    ASSERT_TRUE(meta);
    EXPECT_EQ(meta->next_job, 8u);
    EXPECT_EQ(meta->first_job, 10u);
    EXPECT_EQ(meta->next_reservation, 1u);
}

/// As the first version wrote it: without signals, without peers.
TEST(Records, old_ones_are_read_for_ever) {
    Writer out;
    out.number(1);                                                      // Version.
    for (const std::uint64_t n : {7, 3, 2, 1, 1, 0, 0}) out.number(n);  // Ids, array.
    out.number(static_cast<std::uint64_t>(model::JobState::Failed));
    out.number(static_cast<std::uint64_t>(model::Cause::UserError));
    out.number(50);
    out.flag(false);
    for (const std::uint64_t n : {1, 0, 0}) out.number(n);  // Epoch, restarts, faults.
    for (const std::int64_t at : {1000, 2000, 1000}) out.signed_number(at);
    out.flag(true);
    out.number(2);  // An extra with attempts alone.
    out.signed_number(1);
    out.number(1);
    out.number(0);
    for (const std::int64_t at : {1, 2, 3, 4, 5}) out.signed_number(at);
    out.number(static_cast<std::uint64_t>(model::Cause::UserError));
    out.signed_number(3);
    out.number(0);
    out.text("n1"), out.text("exited with 3");
    for (const std::int64_t n : {-1, -1, 0}) out.signed_number(n);
    const auto job = decode_job(out.bytes());
    ASSERT_TRUE(job);
    ASSERT_EQ(extra_of(*job).attempts.size(), 1u);
    EXPECT_EQ(extra_of(*job).attempts[0].exit_code, 3);
    EXPECT_EQ(extra_of(*job).attempts[0].signal, 0);

    Writer old;
    old.number(1), old.number(4);
    old.text(model::encode(facts_of("n1")));
    old.number(0);
    old.text("cert");
    old.signed_number(9);
    old.flag(false);
    const auto node = decode_node(old.bytes());
    ASSERT_TRUE(node);
    EXPECT_EQ(node->certificate, "cert");
    EXPECT_EQ(node->peers, nullptr);
}

TEST(Records, a_torn_job_is_refused) {
    const std::string bytes = encode_job(full_job());
    for (std::size_t size = 0; size < bytes.size(); ++size)
        EXPECT_FALSE(decode_job(std::string_view(bytes).substr(0, size))) << size;
    EXPECT_FALSE(decode_job(bytes + "x"));
}

TEST(Records, any_flipped_byte_is_survived) {
    const std::string bytes = encode_job(full_job());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        for (const char flip : {'\x01', '\x80', '\xff'}) {
            std::string bent = bytes;
            bent[i] = static_cast<char>(bent[i] ^ flip);
            (void)decode_job(bent);
        }
    }
}

TEST(Records, small_ones_read_back) {
    Meta meta;
    meta.term = 9, meta.next_job = 8, meta.first_job = 7;
    EXPECT_EQ(*decode_meta(encode_meta(meta)), meta);
    Token token;
    token.id = 3, token.kind = TokenKind::Join, token.hash = "h", token.uses_left = -1;
    token.expires = kNever;
    const auto token_back = decode_token(encode_token(token));
    ASSERT_TRUE(token_back);
    EXPECT_EQ(token_back->kind, TokenKind::Join);
    EXPECT_EQ(token_back->expires, kNever);
    Node node;
    node.id = {4};
    node.facts = std::make_shared<const model::NodeFacts>(facts_of("n1"));
    node.holds = {{"admin:a", "fan", {1}, kNever}};
    node.certificate = "cert";
    const auto node_back = decode_node(encode_node(node));
    ASSERT_TRUE(node_back);
    EXPECT_EQ(*node_back->facts, *node.facts);
    EXPECT_EQ(node_back->holds, node.holds);
    EXPECT_EQ(node_back->peers, nullptr);
    node.peers = std::make_shared<const PeerSets>(PeerSets{{{1}, {2}}, {{3}}});
    const auto told_back = decode_node(encode_node(node));
    ASSERT_TRUE(told_back && told_back->peers);
    EXPECT_EQ(*told_back->peers, *node.peers);
    const Idempotency entry{1, 2, 3, 4, {5}, {6}};
    EXPECT_EQ(decode_idempotency(encode_idempotency(entry))->body, 4u);
    EXPECT_EQ(decode_user(encode_user({{1}, "eve", true}))->admin, true);
    Queue queue;
    queue.id = {2}, queue.parent = {1}, queue.name = "prod/a", queue.settings.weight = 7;
    EXPECT_EQ(*decode_queue(encode_queue(queue)), queue);
    const Usage usage{{1}, {2}, 3, 4, 5, {6}};
    EXPECT_EQ(*decode_usage(encode_usage(usage)), usage);
    const RunTimes times{1, {2}, "train", {{3}, {4}}, {5}};
    EXPECT_EQ(*decode_run_times(encode_run_times(times)), times);
    EXPECT_FALSE(decode_usage("") || decode_run_times(""));
    EXPECT_FALSE(decode_meta(""));
    EXPECT_FALSE(decode_user("\x02zzz"));
}

TEST(Records, a_state_that_refers_to_what_is_not_there_is_not_served) {
    World world;
    world.submit(small_job());
    for (const RecordKind kind :
         {RecordKind::Spec, RecordKind::Shape, RecordKind::User, RecordKind::Queue}) {
        State state;
        for (const auto& [name, bytes] : world.store)
            if (name.kind != kind) apply_change(state, *decode_record(name, bytes));
        const Status status = finish_load(state);
        ASSERT_FALSE(status);
        EXPECT_EQ(status.error().code, Code::Corrupt);
    }
}

}  // namespace
}  // namespace muster::core
