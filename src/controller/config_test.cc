// Rows of files: what is wrong in each, all of it, with its place.
#include "controller/config.h"

#include <gtest/gtest.h>

namespace muster::controller {
namespace {

struct Row {
    const char* name;
    const char* yaml;
    const char* problems;  // Joined by " | ".
};

TEST(Config, problems_are_told_all_at_once_with_their_place) {
    const Row rows[] = {
        {"empty", "", ""},
        {"good",
         "state_dir: /x\nlisten: ''\nlease: {heartbeat: 500ms, suspect: 2s, lost: 4s, fence: 8s}\n",
         ""},
        {"unknown", "state_dri: /x\n", "f:1:1: state_dri: unknown key; did you mean state_dir?"},
        {"two", "agants: a\nbootstrap: maybe\n",
         "f:1:1: agants: unknown key; did you mean agents? | f:2:12: bootstrap: maybe is not true "
         "or false"},
        {"order", "lease: {lost: 1s}\n",
         "f:1:8: lease: heartbeat < suspect < lost < fence must hold; they are 1s, 5s, 1s, 30s"},
        {"not_a_map", "- a\n", "f:1:1: the file: must be a map"},
        {"twice", "socket: a\nsocket: b\n", "f:2:1: socket: given twice"},
        {"hosts", "hosts: a\n", "f:1:8: hosts: must be a list of names and addresses"},
    };
    for (const Row& row : rows) {
        const auto read = parse_config(row.yaml, "f");
        std::string all;
        for (const auto& problem : read.problems) all += (all.empty() ? "" : " | ") + problem;
        EXPECT_EQ(all, row.problems) << row.name;
    }
}

TEST(Config, numbers_out_of_range_and_broken_yaml_are_refused) {
    EXPECT_EQ(parse_config("events_kept: -1\n", "f").problems.size(), 1u);
    EXPECT_EQ(parse_config("events_kept: 9223372036854775808\n", "f").problems.size(), 1u);
    EXPECT_EQ(parse_config("watermark: -5GB\n", "f").problems.size(), 1u);
    EXPECT_EQ(parse_config("a: [\n", "f").problems.size(), 1u);
    EXPECT_EQ(parse_config("lease: {heartbeat: 1ms}\n", "f").problems.size(), 1u);
}

TEST(Config, what_is_given_is_taken) {
    const auto read =
        parse_config("jobs_max: 5\nwatermark: 1GiB\nhosts: [a, b]\nlease: {fence: 60s}\n", "f");
    ASSERT_TRUE(read.problems.empty());
    EXPECT_EQ(read.config.settings.jobs_max, 5);
    EXPECT_EQ(read.config.watermark.value, std::int64_t{1} << 30);
    EXPECT_EQ(read.config.hosts, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(read.config.settings.lease.fence, seconds(60));
    EXPECT_EQ(read.config.settings.lease.lost, seconds(15));
}

}  // namespace
}  // namespace muster::controller
