#include "spec/problem.h"

#include <gtest/gtest.h>

#include "spec/parse.h"

namespace muster::spec {
namespace {

std::string shown(std::string_view text) {
    ParseOptions options;
    options.file = "job.yaml";
    const auto parsed = parse_job(text, options);
    const auto* problems = std::get_if<Problems>(&parsed);
    return problems != nullptr ? render(*problems) : "";
}

TEST(Problem, HasFileLineColumnAndCaret) {
    EXPECT_EQ(shown("name: a\nrun: x\nmemry: 4GB\n"),
              "job.yaml:3:1: error: memry: unknown key; did you mean memory?\n"
              "    memry: 4GB\n"
              "    ^\n");
}

TEST(Problem, WideCharactersCountTwoColumnsUnderTheCaret) {
    EXPECT_EQ(shown("{name: 训练🚀é, priority: 999, run: x}"),
              "job.yaml:1:24: error: priority: 999: must be a whole number in 0..100\n"
              "    {name: 训练🚀é, priority: 999, run: x}\n"
              "                              ^\n");
}

TEST(Problem, TabsAndControlCharactersDoNotDisturbTheTerminal) {
    EXPECT_EQ(shown("run: x\n\"k\x1b[31m\":\t5"),
              "job.yaml:2:1: error: k\x1b[31m: unknown key; a job has no such field\n"
              "    \"k\xef\xbf\xbd[31m\":\t5\n"
              "    ^\n");
}

TEST(Problem, OnlyAWindowOfAVeryLongLineIsShown) {
    const std::string text = "{run: " + std::string(5000, 'x') + ", priority: 999}";
    const std::string out = shown(text);
    EXPECT_EQ(out, "job.yaml:1:5019: error: priority: 999: must be a whole number in 0..100\n    " +
                       std::string(88, 'x') + ", priority: 999}\n    " + std::string(100, ' ') +
                       "^\n");
}

TEST(Problem, FlagsHaveNoLine) {
    const std::vector<FlagText> flags = {{"gpus", "h100:x"}, {"restart", "{mx: 3}"}};
    const std::vector<std::string> command = {"x"};
    EXPECT_EQ(render(std::get<Problems>(parse_job("", flags, command, ParseOptions{}))),
              "--gpus: h100:x: the number of devices per node must be in 1..1024\n"
              "--restart: max is missing: how many restarts?\n"
              "--restart: mx: unknown key; did you mean max?\n");
}

}  // namespace
}  // namespace muster::spec
