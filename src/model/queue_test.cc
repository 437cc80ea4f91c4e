// Queues, rules, topologies and reservations read back whole; cut or bent bytes are refused.
#include "model/queue.h"

#include <gtest/gtest.h>

#include "model/reservation.h"
#include "model/topology.h"

namespace muster::model {
namespace {

Queue full_queue() {
    Queue queue;
    queue.id = {4}, queue.parent = {2}, queue.name = "research/nlp";
    QueueSettings& s = queue.settings;
    s.guarantee = {{"gpus", 64'000}, {"h100", 32'000}};
    s.limit = {{"gpus", 128'000}};
    s.borrow_limit = {{"gpus", 8000}}, s.lend_limit = {{"gpus", 1000}};
    s.weight = 7, s.policy = QueuePolicy::Las;
    s.max_jobs = 1, s.max_pending = 2, s.user_limit = {{"memory", 3}}, s.user_max_jobs = 4;
    s.user_max_pending = 5, s.job_limit = {{"cpus", 6}};
    s.users = {"ann", "bob"}, s.groups = {"nlp"};
    s.preemptible = false, s.min_runtime = {8}, s.default_time = {9}, s.default_priority = 10;
    s.max_time = {11}, s.aging = {12}, s.aging_max = 13;
    return queue;
}
SchedulingRules full_rules() {
    SchedulingRules rules;
    rules.half_life = {1};
    rules.kind_weights = {{"a100", 500}}, rules.kind_speeds = {{"a100", 400}, {"h100", 1000}};
    rules.bookings_max = 2, rules.conservative = true, rules.reclaim_per_minute = 3;
    rules.preemptions_max = 4, rules.resize_min_interval = {5}, rules.defragment = false;
    return rules;
}
Topology full_topology() {
    return {{"zone", "leaf"}, {{"n1", {"z1", "l1"}}, {"n2", {"", "l1"}}}};
}
Reservation full_reservation() {
    Reservation r;
    r.id = {3}, r.name = "course", r.reason = "teaching", r.maintenance = true;
    r.users = {"ann"}, r.queues = {"prod"}, r.nodes = {{1}, {7}};
    r.first = {{10}, {20}};
    r.recurrence = {Recurrence::Every::Week,
                    "Europe/Berlin",
                    Recurrence::Gap::Skip,
                    Recurrence::Twice::Second,
                    {99}};
    r.windows = {{{10}, {20}}, {{30}, {40}}};
    r.created_by = "root";
    return r;
}

template <class T, class Decode>
void expect_codec(const T& value, Decode decode) {
    const std::string bytes = encode(value);
    ASSERT_TRUE(decode(bytes));
    EXPECT_TRUE(*decode(bytes) == value);
    for (std::size_t size = 0; size < bytes.size(); ++size)
        EXPECT_FALSE(decode(std::string_view(bytes).substr(0, size))) << size;
    EXPECT_FALSE(decode(bytes + "x"));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        for (const char flip : {'\x01', '\x80', '\xff'}) {
            std::string bent = bytes;
            bent[i] = static_cast<char>(bent[i] ^ flip);
            if (const auto other = decode(bent)) EXPECT_TRUE(decode(encode(*other)));
        }
    }
}

TEST(Queue, reads_back_whole) {
    expect_codec(full_queue(), decode_queue);
    expect_codec(Queue{}, decode_queue);
}
TEST(Queue, of_version_1_has_the_usual_settings) {
    const auto queue = decode_queue(std::string_view("\x01\x03\x04prod", 7));
    ASSERT_TRUE(queue);
    EXPECT_TRUE(*queue == (Queue{{3}, {}, "prod", {}}));
}
TEST(Queue, every_policy_has_a_word) {
    for (int i = 0; i <= static_cast<int>(QueuePolicy::Las); ++i) {
        const auto policy = static_cast<QueuePolicy>(i);
        EXPECT_EQ(parse_queue_policy(to_text(policy)), policy);
    }
    EXPECT_FALSE(parse_queue_policy("lifo"));
}
TEST(SchedulingRules, read_back_whole) {
    expect_codec(full_rules(), decode_scheduling_rules);
}
TEST(Reservation, reads_back_whole) {
    expect_codec(full_reservation(), decode_reservation);
    expect_codec(Reservation{}, decode_reservation);
}
TEST(Topology, reads_back_whole) {
    expect_codec(full_topology(), decode_topology);
}

struct Where {
    const char* name;
    const char* host;
    std::vector<std::pair<std::string, std::string>> labels;
    std::vector<std::string> path;
    friend void PrintTo(const Where& row, std::ostream* out) { *out << row.name; }
};
const Where kWhere[] = {
    {"by_the_map", "n1", {{"leaf", "other"}}, {"z1", "l1"}},
    {"in_no_zone", "n2", {{"zone", "z9"}}, {"", "l1"}},
    {"by_its_labels", "n3", {{"leaf", "l3"}, {"zone", "z3"}}, {"z3", "l3"}},
    {"nowhere", "n4", {}, {"", ""}},
    {"F9_named_like_its_leaf", "l1", {{"leaf", "l1"}}, {"", "l1"}},
};
class PathOf : public testing::TestWithParam<Where> {};
TEST_P(PathOf, is_a_domain_a_level) {
    NodeFacts facts;
    facts.name = GetParam().host;
    facts.labels = GetParam().labels;
    EXPECT_EQ(path_of(full_topology(), facts), GetParam().path);
}
INSTANTIATE_TEST_SUITE_P(Table, PathOf, testing::ValuesIn(kWhere),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace muster::model
