#include "model/node.h"

#include <map>

#include <gtest/gtest.h>

#include "model/job.h"

namespace muster::model {
namespace {

NodeFacts full() {
    NodeFacts facts;
    facts.name = "n1";
    facts.addresses = {"10.0.0.1", "fe80::1"};
    facts.peer_port = 7000;
    facts.boot_id = "b";
    facts.version = "0.1";
    facts.cpus = {64'000}, facts.memory = {1 << 30}, facts.disk = {5};
    facts.devices = {{"gpu-1", "h100", "gpu", "nvidia", {80}, 1, "nv0", {"/dev/nvidia0"}, false}};
    facts.devices[0].profile = "1g.10gb", facts.devices[0].parent = "gpu-0";
    facts.devices[0].share_enforced = true, facts.devices[0].nics = {"mlx5_0", "mlx5_1"};
    facts.numa = {{0, "0-15,32-47"}, {1, "16-31"}};
    facts.labels = {{"leaf", "a"}, {"zone", ""}};
    facts.runtime = "crun 1.8.1";
    facts.limits_enforced = facts.disk_enforced = true;
    facts.unenforced_why = "because";
    return facts;
}

TEST(NodeFacts, read_back_as_they_were_written) {
    EXPECT_EQ(*decode_node_facts(encode(full())), full());
    EXPECT_EQ(*decode_node_facts(encode(NodeFacts{})), NodeFacts{});
}

TEST(NodeFacts, cut_anywhere_they_are_refused) {
    const std::string bytes = encode(full());
    for (std::size_t size = 0; size < bytes.size(); ++size)
        EXPECT_FALSE(decode_node_facts(std::string_view(bytes).substr(0, size))) << size;
    EXPECT_FALSE(decode_node_facts(bytes + "x"));
}

// Records of this version are read for ever: these bytes must not change their meaning.
TEST(NodeFacts, of_version_1_are_read) {
    using std::string_literals::operator""s;
    const std::string bytes =
        "\x01\x02n1\x01\x08"
        "10.0.0.1\x08\x01"
        "b\x03"
        "0.1\x02\x04\x06\x01\x02g1\x04h100\x03gpu\x06nvidia\x0a\x01\x00\x00\x01\x01\x04leaf\x01"
        "a\x00\x01\x00\x00"s;
    const auto facts = decode_node_facts(bytes);
    ASSERT_TRUE(facts);
    NodeFacts want;
    want.name = "n1", want.addresses = {"10.0.0.1"}, want.peer_port = 4, want.boot_id = "b";
    want.version = "0.1", want.cpus = {1}, want.memory = {2}, want.disk = {3};
    want.devices = {{"g1", "h100", "gpu", "nvidia", {5}, -1, "", {}, true}};
    want.labels = {{"leaf", "a"}}, want.limits_enforced = true;
    EXPECT_EQ(*facts, want);
}

TEST(NodeFacts, labels_are_found_by_key) {
    EXPECT_EQ(label(full(), "leaf"), "a");
    EXPECT_EQ(label(full(), "zone"), "");
    EXPECT_EQ(label(full(), "rack"), "");
}

TEST(Words, every_state_and_cause_has_one_of_its_own) {
    std::map<std::string, int> seen;
    for (int i = 0; i <= static_cast<int>(JobState::Cancelled); ++i)
        ++seen["state " + std::string(to_text(static_cast<JobState>(i)))];
    for (int i = 0; i <= static_cast<int>(Cause::Resized); ++i)
        ++seen["cause " + std::string(to_text(static_cast<Cause>(i)))];
    for (const auto& [word, count] : seen) EXPECT_EQ(count, 1) << word;
    EXPECT_FALSE(seen.contains("state unknown"));
    EXPECT_FALSE(seen.contains("cause unknown"));
}

}  // namespace
}  // namespace muster::model
