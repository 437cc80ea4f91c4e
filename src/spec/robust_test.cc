// Bad files: every one gets a clear answer, none a crash or an hour of thinking.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "base/utf8.h"
#include "spec/parse.h"
#include "spec/render.h"

namespace muster::spec {
namespace {

std::string first_line(std::string_view text, Format format = Format::Auto) {
    ParseOptions options;
    options.file = "j";
    options.format = format;
    const auto parsed = parse_job(text, options);
    const auto* problems = std::get_if<Problems>(&parsed);
    return problems == nullptr ? "valid" : render_line(problems->front());
}
std::string repeat(std::string_view text, int count) {
    std::string out;
    for (int i = 0; i < count; ++i) out += text;
    return out;
}

struct Row {
    const char* name;
    std::string text;
    const char* expected;
};

TEST(Robust, BadBytesF25) {
    using namespace std::string_literals;
    const Row rows[] = {
        {"empty", "",
         "j: error: run is missing: the command to run, as in \"run: python train.py\""},
        {"comments only", "# x\n\n",
         "j: error: run is missing: the command to run, as in \"run: python train.py\""},
        {"ELF",
         "\x7f"
         "ELF\x02\x01\x01\0\0\0"s,
         "j:1:8: error: byte 7 is NUL: this is a binary file, not a job's text"},
        {"gzip", "\x1f\x8b\x08\0\0"s,
         "j:1:2: error: byte 1 (0x8b) is not UTF-8; save the file as UTF-8"},
        {"latin 1", "run: x\nname: caf\xe9\n",
         "j:2:10: error: byte 16 (0xe9) is not UTF-8; save the file as UTF-8"},
        {"overlong", "run: \xc0\xaf",
         "j:1:6: error: byte 5 (0xc0) is not UTF-8; save the file as UTF-8"},
        {"surrogate", "run: \xed\xa0\x80",
         "j:1:6: error: byte 5 (0xed) is not UTF-8; save the file as UTF-8"},
        {"UTF-16", "\xff\xfer\0u\0n\0"s,
         "j:1:1: error: byte 0 (0xff) is not UTF-8; save the file as UTF-8"},
        {"a script", "#!/bin/bash\n#SBATCH -N 2\nsrun x\n",
         "j:1:1: error: a shell script; this version of Muster does not read #SBATCH scripts (run "
         "it "
         "with \"muster run -- bash FILE\", or write a job file)"},
        {"a script without #!", "#SBATCH -N 2\nsrun x\n",
         "j:1:1: error: a shell script; this version of Muster does not read #SBATCH scripts (run "
         "it with \"muster run -- bash FILE\", or write a job file)"},
        {"a script that is no YAML", "\n#SBATCH -N 2\nx: y: z\n",
         "j:1:1: error: a shell script; this version of Muster does not read #SBATCH scripts (run "
         "it with \"muster run -- bash FILE\", or write a job file)"},
        {"text", "hello", "j:1:1: error: a job is a map of fields, as in \"run: python train.py\""},
        {"a list", "- run: x",
         "j:1:1: error: a job is a map of fields, as in \"run: python train.py\""},
    };
    for (const Row& row : rows) EXPECT_EQ(first_line(row.text), row.expected) << row.name;
}

TEST(Robust, BadYaml) {
    const Row rows[] = {
        {"two documents", "run: x\n---\nrun: y\n",
         "j:2:1: error: a second document (after ---); one file holds one"},
        {"tabs", "env:\n\tA: 1\nrun: x", "j:2:3: error: a tab cannot indent YAML; use spaces"},
        {"a colon in text", "run: echo a: b",
         "j:1:12: error: a ':' is not expected here; put text that holds ': ' in quotes, or on "
         "lines of "
         "its own after '|'"},
        {"open list", "gpus: [h100:8\nrun: x",
         "j:2:4: error: a list opened with '[' is not closed with ']'"},
        {"unaligned", "run: x\n  name: y\n",
         "j:2:7: error: a ':' is not expected here; put text that holds ': ' in quotes, or on "
         "lines of "
         "its own after '|'"},
        {"tag", "run: !!binary aGk=",
         "j:1:6: error: \"tag:yaml.org,2002:binary\" is a YAML tag here; put "
         "text that starts with ! in quotes"},
        {"at sign", "run: @x",
         "j:1:6: error: this character cannot start a value; put the text in quotes"},
        {"folded", "run: >=40GB\n",
         "j:1:7: error: text cannot stand after '|' or '>' on the same line; put a "
         "value like \">=40GB\" in quotes"},
        {"unknown alias", "run: *x", "j:1:6: error: no anchor of this name stands before it"},
        {"own alias", "env: &e {A: *e}\nrun: x",
         "j:1:13: error: this alias is inside the value that it stands for"},
        {"list as key", "? [a]\n: b\n",
         "j:1:3: error: a key must be text, not a list or a map; is a bracket not closed?"},
        {"null key", "~: x", "j:1:1: error: an empty key"},
        {"merge of a text", "<<: x\nrun: y", "j:1:5: error: << merges maps only; this is not one"},
        {"deep lists", "run: " + repeat("[", 100) + repeat("]", 100),
         "j:1:70: error: nested deeper than the limit of 64"},
        {"deeper lists", repeat("[", 100'000),
         "j:1:1: error: a key must be text, not a list or a map; is a bracket not closed?"},
        {"deep maps", repeat("{a: ", 10'000),
         "j:1:1: error: a key must be text, not a list or a map; is a bracket not closed?"},
        {"deep dashes", repeat("- ", 50'000), "j:1:131: error: nested deeper than the limit of 64"},
        {"deep keys", repeat("? ", 50'000),
         "j:1:3: error: a key must be text, not a list or a map; is a bracket not closed?"},
        {"null", "run: ~",
         "j:1:6: error: run: no value; give one, or take the line away (an empty text "
         "is written \"\")"},
    };
    for (const Row& row : rows) EXPECT_EQ(first_line(row.text), row.expected) << row.name;
    EXPECT_EQ(
        first_line("run: x\nenv: " + repeat("{a: ", 62) + "1" + repeat("}", 62)).substr(0, 30),
        "j:2:10: error: env.a: one valu");
}

TEST(Robust, AliasesAndMergeKeysWorkWithinLimits) {
    ParseOptions options;
    const auto parsed = parse_job(
        "roles:\n  a: &base {cpus: 4, run: x, env: {A: 1}}\n  b: {<<: *base, cpus: 8}\n"
        "  c: {<<: [{cpus: 2}, *base]}\nenv: &e {E: 1}\n",
        options);
    ASSERT_EQ(parsed.index(), 0u);
    EXPECT_EQ(to_yaml(std::get<model::JobSpec>(parsed)),
              "name: x\nenv: {E: \"1\"}\nroles:\n"
              "  a:\n    cpus: 4\n    env: {A: \"1\"}\n    run: x\n"
              "  b:\n    cpus: 8\n    env: {A: \"1\"}\n    run: x\n"
              "  c:\n    cpus: 2\n    env: {A: \"1\"}\n    run: x\n");
}

TEST(Robust, AliasBombsAreRefused) {
    std::string values = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
    for (int i = 1; i < 12; ++i) {
        const std::string before = "*a" + std::to_string(i - 1);
        values += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" +
                  repeat(before + ", ", 8) + before + "]\n";
    }
    const std::string refused =
        "error: anchors and aliases multiply to more than the limit of 20000 values or 4 MiB";
    EXPECT_NE(first_line(values).find(refused), std::string::npos) << first_line(values);
    const std::string long_text =
        "a: &a \"" + std::string(500'000, 'x') + "\"\nb: [" + repeat("*a, ", 9) + "*a]";
    EXPECT_NE(first_line(long_text).find(refused), std::string::npos);
    std::string deep = "a0: &a0 " + repeat("[", 40) + repeat("]", 40) + "\n";
    deep += "a1: " + repeat("[", 40) + "*a0" + repeat("]", 40) + "\n";
    EXPECT_NE(first_line(deep).find("nested deeper than the limit of 64"), std::string::npos);
}

TEST(Robust, BadJson) {
    const Row rows[] = {
        {"trailing comma", "{\"run\": \"x\",}",
         "j:1:13: error: no ',' may stand before the closing '}' in JSON"},
        {"bare word", "{\"run\": x}",
         "j:1:9: error: not a JSON value; text must be in double quotes"},
        {"open string", "{\"run\": \"x}", "j:1:9: error: this JSON string has no closing '\"'"},
        {"after the end", "{\"run\": \"x\"} y",
         "j:1:14: error: only one JSON value is expected; this is after its end"},
        {"half a pair", R"({"run": "\ud800"})",
         "j:1:10: error: half of a surrogate pair is not a character"},
        {"escape", R"({"run": "\x"})",
         "j:1:10: error: no such escape in JSON; a backslash is written \\\\"},
        {"octal", "{\"run\": 012}",
         "j:1:9: error: not a JSON value; text must be in double quotes"},
        {"missing", "{\"run\": }", "j:1:9: error: a JSON value is missing here"},
        {"NUL", R"({"run": "a\u0000"})",
         "j:1:9: error: run: holds a NUL character (\\0), which no program can be given"},
        {"null", R"({"run": null})",
         "j:1:9: error: run: no value; give one, or take the line away (an "
         "empty text is written \"\")"},
        {"twice", R"({"run": "x", "run": "y"})", "j:1:14: error: run: given twice"},
        {"deep", repeat("[", 100'000), "j:1:66: error: nested deeper than the limit of 64"},
        {"huge number", "{\"run\": \"x\", \"nodes\": 1e400}",
         "j:1:23: error: nodes: 1e400: must be a whole number in 1..1048576"},
        {"lines", "{\n  \"run\": \"x\",\n  \"nods\": 2\n}",
         "j:3:3: error: nods: unknown key; did you mean nodes?"},
    };
    for (const Row& row : rows)
        EXPECT_EQ(first_line(row.text, Format::Json), row.expected) << row.name;
}

TEST(Robust, JsonAndYamlReadersAgreeOnJson) {
    const char* texts[] = {
        R"({"run":"x"})",
        R"( { "run" : "a\tb\n\"c\" \\ \/ \u00e9", "nodes": 3, "hold": true } )",
        R"({"run":"x","env":{"A":"1","B":"true"},"gpus":["h100:8","a100:8"]})",
        R"({"run":"x","memry":1,"restart":{"max":1,"on":["oom","nod"]}})",
        R"({"run":["x"]})",
    };
    for (const char* text : texts) {
        ParseOptions options;
        options.format = Format::Json;
        const auto json = parse_job(text, options);
        options.format = Format::Yaml;
        EXPECT_TRUE(json == parse_job(text, options)) << text;
    }
}

class TemporaryFile {
public:
    TemporaryFile()
        : path_(std::filesystem::path(MUSTER_BINARY_DIR) /
                ("job_file_" + std::to_string(::getpid()))) {}
    ~TemporaryFile() { std::filesystem::remove(path_); }
    std::string path() const { return path_.string(); }

private:
    std::filesystem::path path_;
};

TEST(Robust, FilesAreRefusedBySizeBeforeTheyAreRead) {
    const TemporaryFile file;
    std::ofstream(file.path()) << "run: x\n";
    ASSERT_TRUE(read_job_file(file.path()));
    EXPECT_EQ(*read_job_file(file.path()), "run: x\n");
    std::filesystem::resize_file(file.path(), std::uintmax_t{1} << 30);  // Sparse.
    const auto big = read_job_file(file.path());
    ASSERT_FALSE(big);
    EXPECT_EQ(big.error().code, Code::TooLarge);
    EXPECT_EQ(big.error().message, file.path() + ": 1GiB, over the limit of 1MiB for a job file");
    std::filesystem::resize_file(file.path(), kJobFileMax);
    EXPECT_TRUE(read_job_file(file.path()));

    EXPECT_EQ(read_job_file("/no/such/job.yaml").error().code, Code::NotFound);
    EXPECT_EQ(read_job_file("/no/such/job.yaml").error().message,
              "/no/such/job.yaml: cannot be read: No such file or directory");
    EXPECT_EQ(read_job_file("/").error().message, "/: is a directory, not a job file");
    EXPECT_EQ(read_job_file("/dev/zero").error().code, Code::TooLarge);  // Endless, and of size 0.
    EXPECT_EQ(first_line(std::string(kJobFileMax + 1, 'x')),
              "j: error: 1048577 bytes, over the limit of 1048576 for a job");
}

// Much of the worst patterns: each is answered in time that grows with its size, which the
// test's own time-out watches over.
TEST(Robust, MuchOfAnything) {
    const char* patterns[] = {"[",     "{",      "- ",    "? ",     ": ",   "a: ", "a:\n ",
                              "\n",    " ",      "\t",    "'",      "\"",   "&a ", "*a ",
                              "! ",    "| ",     "> ",    "#",      ",",    "[]",  "{}",
                              "- a\n", "a: b\n", "---\n", "[a, ",   "{a, ", "\\",  "%",
                              "?\n",   "- - ",   "a\n",   "\"a\":", "[?",   "{?:", "*a: "};
    for (const std::string_view pattern : patterns) {
        std::string text;
        while (text.size() < kJobFileMax / 8) text += pattern;
        EXPECT_NE(first_line(text), "valid") << pattern;
        EXPECT_NE(first_line("run: x\nenv: " + text), "valid") << pattern;
    }
}

constexpr const char* kSeeds[] = {
    "name: 训练\ngpus: [h100:8, {kind: a100, memory: \">=40GB\"}]\nrun: |\n  a\n  b\nenv: &e {A: "
    "1e-4}\n",
    "roles:\n  a: &a {nodes: 2, run: x}\n  b: {<<: *a, cpus: 0.5}\nlaunch: per-node\ntime: 1-12:00:00\n",
    "run: x\nsweep: {lr: [1e-4, 3e-4], seed: 0..4:2}\nparallel: 8\nrestart: {max: 3, on: [oom, "
    "exit:9]}\n",
    "run: x\nnodes: 4..16\ngpus: [h100:0.5, {kind: a100, profile: 1g.10gb}, {share: 10GB}]\n"
    "topology: {required: leaf, slice: {size: 4, required: nvlink}, spares: 1}\nkinds: mixed\n",
    "run: x\narray: 0..99%8\ndepends: [12, afterany:13]\nconstraint: \"zone in (a,b), !old\"\n",
    R"({"run": "x \u00e9", "log_rules": [{"match": "a+b", "do": "fail"}], "checkpoint": {"dir": "/c"}})",
};

// Mutants of valid files never crash, and what is accepted is a job that reads back as itself.
TEST(Robust, MutantsNeverCrash) {
    Prng random(25);
    const std::string_view pieces = "{}[]:,-?&*!|>'\"%@`#\\\n\t 0a9.\xff\x80\0";
    int valid = 0;
    for (const char* seed : kSeeds) EXPECT_EQ(first_line(seed), "valid") << seed;
    for (int i = 0; i < 6000; ++i) {
        std::string text = kSeeds[random.below(std::size(kSeeds))];
        for (std::uint64_t n = 1 + random.below(2); n > 0 && !text.empty(); --n) {
            const std::size_t at = random.below(text.size());
            const char piece = pieces[random.below(pieces.size() + 1)];
            switch (random.below(4)) {
                case 0: text[at] = piece; break;
                case 1: text.insert(at, 1, piece); break;
                case 2: text.erase(at, 1 + random.below(8)); break;
                default: text.insert(at, text.substr(random.below(text.size()), random.below(30)));
            }
        }
        const auto parsed = parse_job(text, ParseOptions{});
        const auto* spec = std::get_if<model::JobSpec>(&parsed);
        if (spec == nullptr) {
            EXPECT_FALSE(render(std::get<Problems>(parsed)).empty());
            continue;
        }
        ++valid;
        const auto again = parse_job(to_yaml(*spec), ParseOptions{});
        ASSERT_EQ(again.index(), 0u) << text << "\n" << to_yaml(*spec);
        EXPECT_TRUE(std::get<model::JobSpec>(again) == *spec) << text;
    }
    EXPECT_GT(valid, 200);
}

}  // namespace
}  // namespace muster::spec
