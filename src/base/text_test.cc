#include "base/text.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Text, NearestFindsSlipsOfTheHandAndNothingElse) {
    const std::vector<std::string> names = {"memory", "mounts", "name", "nodes", "gpus", "run"};
    struct Row {
        const char* word;
        const char* nearest;
    };
    const Row rows[] = {
        {"memry", "memory"}, {"MEMORY", "memory"}, {"meomry", "memory"},
        {"node", "nodes"},   {"gpu", "gpus"},      {"nmae", "name"},
        {"rnu", "run"},      {"colour", ""},       {"", ""},
        {"x", ""},           {"zzz", ""},          {"r", ""},
    };
    for (const Row& row : rows) EXPECT_EQ(nearest(row.word, names), row.nearest) << row.word;
    EXPECT_EQ(nearest(std::string(1 << 20, 'm'), names), "");
    EXPECT_EQ(nearest("memory", {}), "");
}

TEST(Text, SplitKeepsEmptyParts) {
    EXPECT_EQ(split("a,,b,", ','), (std::vector<std::string_view>{"a", "", "b", ""}));
    EXPECT_EQ(split("", ','), (std::vector<std::string_view>{""}));
}

TEST(Text, TrimLowerJoin) {
    EXPECT_EQ(trim(" \t a b\r\n"), "a b");
    EXPECT_EQ(trim("   "), "");
    EXPECT_EQ(lower("H100-Äx"), "h100-Äx");
    const std::vector<std::string> parts = {"a", "b", "c"};
    EXPECT_EQ(join(parts, ", "), "a, b, c");
    EXPECT_EQ(join({}, ", "), "");
}

}  // namespace
}  // namespace muster
