// Whole commands in a made-up world: what people type, what they see.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include <gtest/gtest.h>

#include "cli/files.h"
#include "experiment/simulate.h"

namespace muster::experiment {
namespace {

struct Ran {
    int code = 0;
    std::string out, err;
};

class Simulate : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = testing::TempDir() + "simulate-XXXXXX";
        folder_ = ::mkdtemp(pattern.data());
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    std::string file(const std::string& name, const std::string& text) const {
        std::ofstream(folder_ + "/" + name) << text;
        return folder_ + "/" + name;
    }
    static std::string read(const std::string& path) {
        std::stringstream text;
        text << std::ifstream(path).rdbuf();
        return text.str();
    }
    static Ran run(std::vector<std::string> words, const char* verb = "simulate") {
        words.insert(words.begin(), verb);
        cli::World world;
        world.now = [] { return Time{1'796'112'000'000}; };
        cli::Output out(-1), err(-1);
        const int code = run_verb(world, words, out, err);
        return {code, out.kept(), err.kept()};
    }

    std::string folder_;
};

constexpr const char* kJobs =
    "submit,duration,gpus,user,queue,time_limit\n"
    "0,3600,8,ana,x,4000\n60,3600,8,wei,x,4000\n120,600,8,wei,y,4000\n";

TEST_F(Simulate, tells_how_it_went_and_writes_reports) {
    const std::string trace = file("jobs.csv", kJobs);
    const std::string html = folder_ + "/r.html", json = folder_ + "/r.json";
    const Ran ran =
        run({"--trace", trace, "--cluster", "1x8:v100", "--report", html, "--json", json});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_NE(ran.err.find("csv: 3 jobs on 1 nodes, 8 devices: v100"), std::string::npos)
        << ran.err;
    EXPECT_NE(ran.err.find("muster, seed 1: 3 succeeded, 0 failed"), std::string::npos) << ran.err;
    EXPECT_TRUE(std::regex_search(ran.out, std::regex("METRIC +MUSTER\n"))) << ran.out;
    EXPECT_TRUE(std::regex_search(ran.out, std::regex("makespan +2h10m\n"))) << ran.out;
    EXPECT_TRUE(std::regex_search(ran.out, std::regex("allocated +100.00 %\n"))) << ran.out;
    EXPECT_NE(read(json).find("\"makespan_s\":7800"), std::string::npos);
    EXPECT_NE(read(html).find("\"makespan_s\":7800"), std::string::npos);
}

TEST_F(Simulate, the_same_seed_gives_the_same_bytes_whatever_runs_beside_it) {
    std::string text = "submit,duration,gpus,queue,time_limit\n";
    for (int i = 0; i < 60; ++i)
        text += std::to_string(i * 200) + "," + std::to_string(600 + i * 37 % 9000) + "," +
                std::to_string(1 + i % 8) + ",q" + std::to_string(i % 3) + ",10000\n";
    const std::string trace = file("jobs.csv", text);
    const auto json = [&](const char* parallel) {
        const Ran ran = run({"--trace", trace, "--cluster", "4x8:v100", "--policy", "muster",
                             "--policy", "fifo", "--seeds", "4..5", "--failures", "2000",
                             "--checkpoint", "10m", "--parallel", parallel, "--json", "-"});
        EXPECT_EQ(ran.code, 0) << ran.err;
        return ran.out;
    };
    const std::string alone = json("1");
    EXPECT_TRUE(alone == json("4"));
    EXPECT_TRUE(alone.find("fifo, seed 5") != std::string::npos);
    EXPECT_TRUE(alone.find("\"node_failures\":") != std::string::npos);
    EXPECT_TRUE(alone.find("\"node_failures\":0,") == std::string::npos);
}

TEST_F(Simulate, stops_at_a_time_and_says_so) {
    const std::string trace = file("jobs.csv", kJobs);
    const Ran ran = run({"--trace", trace, "--cluster", "1x8:v100", "--until", "90m"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_NE(ran.err.find("1 succeeded, 0 failed, 2 unfinished (stopped before its end)"),
              std::string::npos)
        << ran.err;
}

TEST_F(Simulate, a_cluster_file_brings_queues_and_power) {
    const std::string trace = file("jobs.csv", kJobs);
    const std::string cluster = file("site.yaml",
                                     "nodes:\n- {count: 2, gpus: h100:8, cpus: 96, memory: 1TB, "
                                     "blocks: {leaf: 1}}\n"
                                     "power: {h100: {idle: 0, busy: 500}, node: 0, pue: 1.0}\n"
                                     "queues: {x: {limit: {gpus: 8}}, y: {}}\n");
    const Ran ran = run({"--trace", trace, "--cluster", cluster, "--json", "-"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    // x may hold one node's devices: its second job waits for the first, y's has a node.
    EXPECT_TRUE(ran.out.find("\"makespan_s\":7200") != std::string::npos);
    // 8 devices of 500 W for 2 h 10 min in all.
    EXPECT_TRUE(ran.out.find("\"energy_kwh\":8.66667") != std::string::npos)
        << ran.out.substr(ran.out.find("\"energy_kwh"), 40);
}

TEST_F(Simulate, jobs_of_unknown_queues_are_refused_and_counted) {
    const std::string trace = file("jobs.csv", kJobs);
    const std::string queues = file("queues.yaml", "queues: {x: {}}\n");
    const Ran ran = run({"--trace", trace, "--cluster", "1x8:v100", "--queues", queues});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_NE(ran.err.find("2 succeeded, 0 failed, 1 refused"), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find("refused: 1 × "), std::string::npos) << ran.err;
}

TEST_F(Simulate, a_million_zero_length_jobs) {
    std::string text = "submit,duration,gpus\n";
    for (int i = 0; i < 1'000'000; ++i) text += "5,0,1\n";
    const std::string trace = file("jobs.csv", text);
    // One whole plan over a million jobs is not what this is about: a prefix is enough.
    const Ran ran = run({"--trace", trace, "--cluster", "4x8:v100", "--jobs", "2000"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_NE(ran.err.find("2,000 succeeded, 0 failed"), std::string::npos) << ran.err;
}

/// Short jobs behind long ones of one queue on one node: what orders them matters.
TEST_F(Simulate, tune_finds_what_helps_and_judges_it_on_later_jobs) {
    std::string text = "submit,duration,gpus,queue,expected_time,time_limit\n";
    for (int i = 0; i < 100; ++i) {
        const int length = i % 4 == 0 ? 4000 : 100;
        text += std::to_string(i * 500) + "," + std::to_string(length) + ",8,q," +
                std::to_string(length) + ",5000\n";
    }
    const std::string trace = file("jobs.csv", text);
    const std::string queues = file("queues.yaml", "queues: {q: {policy: fifo}}\n");
    const std::string tuned = folder_ + "/tuned.yaml";
    const std::vector<std::string> words = {"--trace",  trace,  "--cluster", "1x8:v100",
                                            "--queues", queues, "--write",   tuned};
    const Ran ran = run(words, "tune");
    EXPECT_EQ(ran.code, 0) << ran.err;
    // Short ones first: by what users expect, or by what they have had.
    std::smatch found;
    const std::regex policy("policy of all queues +fifo +(shortest|las)\n");
    ASSERT_TRUE(std::regex_search(ran.out, found, policy)) << ran.out;
    EXPECT_TRUE(std::regex_search(
        ran.out, std::regex("expected gain in mean job completion time: \\+[0-9.]+ % \\(\\+")))
        << ran.out;
    EXPECT_NE(read(tuned).find("policy: " + found[1].str()), std::string::npos) << read(tuned);
    EXPECT_EQ(run(words, "tune").out, ran.out);
}

TEST_F(Simulate, tune_says_so_when_nothing_is_better) {
    std::string text = "submit,duration,gpus\n";
    for (int i = 0; i < 100; ++i) text += std::to_string(i * 1000) + ",100,8\n";
    const std::string trace = file("jobs.csv", text);
    const Ran ran = run({"--trace", trace, "--cluster", "1x8:v100"}, "tune");
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.out, "nothing that was tried is better than the present settings\n");
}

TEST_F(Simulate, tune_needs_enough_jobs_and_a_known_goal) {
    const std::string trace = file("jobs.csv", "submit,duration,gpus\n0,1,1\n");
    const Ran few = run({"--trace", trace, "--cluster", "1x8:v100"}, "tune");
    EXPECT_EQ(few.code, 6);
    EXPECT_NE(few.err.find("1 jobs are too few"), std::string::npos) << few.err;
    EXPECT_EQ(run({"--trace", trace, "--cluster", "1x8:v100", "--goal", "joy"}, "tune").code, 2);
    EXPECT_EQ(run({"--cluster", "1x8:v100"}, "tune").code, 6);
}

struct Wrong {
    const char* name;
    const char* trace;  // Text; nullptr: no such file.
    std::vector<std::string> words;
    int code;
    const char* told;
    friend void PrintTo(const Wrong& row, std::ostream* out) { *out << row.name; }
};
class Refuses : public Simulate, public testing::WithParamInterface<Wrong> {};
TEST_P(Refuses, and_says_why) {
    std::vector<std::string> words = GetParam().words;
    if (GetParam().trace != nullptr) {
        words.emplace_back("--trace");
        words.push_back(file("jobs.csv", GetParam().trace));
    }
    const Ran ran = run(words);
    EXPECT_EQ(ran.code, GetParam().code) << ran.err;
    EXPECT_NE(ran.err.find(GetParam().told), std::string::npos) << ran.err;
    EXPECT_EQ(ran.out, "");
}
INSTANTIATE_TEST_SUITE_P(
    Rows, Refuses,
    testing::Values(
        Wrong{"no trace", nullptr, {"--cluster", "1x8:v100"}, 6, "--trace is missing"},
        Wrong{"no cluster", kJobs, {}, 6, "--cluster is missing"},
        Wrong{"no such file",
              nullptr,
              {"--cluster", "1x8:v100", "--trace", "/nowhere/x.csv"},
              3,
              "cannot open /nowhere/x.csv: No such file or directory"},
        Wrong{"empty", "", {"--cluster", "1x8:v100"}, 6, "empty, without a header"},
        Wrong{"missing column",
              "submit,gpus\n0,1\n",
              {"--cluster", "1x8:v100", "--format", "csv"},
              6,
              "no column 'duration'"},
        Wrong{"negative time",
              "submit,duration\n-5,1\n",
              {"--cluster", "1x8:v100"},
              6,
              "jobs.csv:2: submit is '-5': below 0"},
        Wrong{"strict",
              "submit,duration\n0,1\n1,-1\n",
              {"--cluster", "1x8:v100", "--strict"},
              6,
              "jobs.csv:3: duration is '-1': below 0"},
        Wrong{"cluster", kJobs, {"--cluster", "8 nodes"}, 6, "8 nodes: not a cluster"},
        Wrong{"cluster file",
              kJobs,
              {"--cluster", "/nowhere.yaml"},
              3,
              "/nowhere.yaml: cannot be read"},
        Wrong{"compress",
              kJobs,
              {"--cluster", "1x8:v100", "--compress", "0"},
              6,
              "--compress: 0: must be a number in 0.001..1000"},
        Wrong{"seeds", kJobs, {"--cluster", "1x8:v100", "--seeds", "5..1"}, 6, "--seeds: 5..1"},
        Wrong{"policy",
              kJobs,
              {"--cluster", "1x8:v100", "--policy", "best"},
              2,
              "--policy: 'best' is not one of its values"},
        Wrong{"failures",
              kJobs,
              {"--cluster", "1x8:v100", "--failures", "often"},
              6,
              "--failures: often: must be a number"}));

TEST_F(Simulate, problems_of_a_cluster_file_have_places) {
    const std::string trace = file("jobs.csv", kJobs);
    const std::string cluster =
        file("site.yaml", "nodes:\n- {cout: 2, gpus: h100}\npower: {h100: {idle: 9, busy: 1}}\n");
    const Ran ran = run({"--trace", trace, "--cluster", cluster});
    EXPECT_NE(ran.err.find("site.yaml:2:4: error: nodes[0].cout: unknown key; did you mean count?"),
              std::string::npos)
        << ran.err;
    EXPECT_NE(ran.err.find("gpus: h100: must be KIND:N"), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find("busy is below idle"), std::string::npos) << ran.err;
}

}  // namespace
}  // namespace muster::experiment
