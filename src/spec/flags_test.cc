#include <gtest/gtest.h>

#include "base/prng.h"
#include "spec/fields.h"
#include "spec/parse.h"
#include "spec/render.h"

namespace muster::spec {
namespace {

struct Row {
    const char* name;
    const char* document;
    std::vector<FlagText> flags;
    std::vector<std::string> command;
    const char* expected;
};

std::string answer(const ParsedJob& parsed) {
    if (const auto* spec = std::get_if<model::JobSpec>(&parsed)) return to_yaml(*spec);
    return render(std::get<Problems>(parsed));
}

TEST(Flags, MergeOverADocument) {
    const Row rows[] = {
        {"a command alone",
         "",
         {},
         {"python3", "train.py", "--name", "a b", "it's", ""},
         "name: train\nrun: \"python3 train.py --name 'a b' 'it'\\\\''s' ''\"\n"},
        {"flags alone",
         "",
         {{"run", "x"}, {"gpus", "h100:8,a100:8"}},
         {},
         "name: x\ngpus: [h100:8, a100:8]\nrun: x\n"},
        {"a flag replaces a value",
         "run: x\nnodes: 2\ngpus: [h100:8]",
         {{"nodes", "4"}, {"gpus", "a100:4"}},
         {},
         "name: x\nnodes: 4\ngpus: a100:4\nrun: x\n"},
        {"the command replaces run", "run: x\nname: n", {}, {"y"}, "name: n\nrun: y\n"},
        {"maps are overridden by key",
         "run: x\nenv: {A: 1, B: 2}",
         {{"env", "B=3=4"}, {"env", "C="}},
         {},
         "name: x\nenv: {A: \"1\", B: \"3=4\", C: \"\"}\nrun: x\n"},
        {"lists grow",
         "run: x\nimage: i\ndepends: 12\nmounts: [/a:/a]",
         {{"depends", "afterany:13"}, {"mount", "/b:/b:ro"}},
         {},
         "name: x\nimage: i\nrun: x\nmounts: [\"/a:/a\", \"/b:/b:ro\"]\ndepends: [afterok:12, "
         "afterany:13]\n"},
        {"sweeps",
         "run: x",
         {{"sweep", "lr=1e-4,3e-4"}, {"sweep", "seed=0..2"}, {"sweep", "m=[\"a,b\"]"}},
         {},
         "name: x\nrun: x\nsweep: {lr: [\"1e-4\", \"3e-4\"], seed: 0..2, m: "
         "[\"a,b\"]}\n"},
        {"YAML in a flag",
         "run: x",
         {{"restart", "{max: 3, on: [oom, exit:137]}"},
          {"checkpoint", "{dir: /c, grace: 2m}"},
          {"log-rule", "{match: bad, do: fail}"},
          {"role", "a={nodes: 2}"},
          {"role", "b={run: y}"}},
         {},
         "name: x\nrestart: {max: 3, on: [oom, exit:137]}\nlog_rules: [{match: bad, do: fail}]\n"
         "checkpoint: {dir: /c, grace: 2m}\nroles:\n  a:\n    nodes: 2\n    run: x\n  b:\n    run: "
         "y\n"},
        {"a text is not YAML",
         "",
         {{"run", "[ -f x ]"}, {"name", "{a}"}},
         {},
         "name: \"{a}\"\nrun: \"[ -f x ]\"\n"},
        {"dashes and underscores",
         "run: x",
         {{"expected-time", "5m"}, {"time", "1h"}},
         {},
         "name: x\ntime: 1h\nexpected_time: 5m\nrun: x\n"},
        {"switches",
         "run: x\nhold: true",
         {{"hold", "false"}, {"exclusive", "true"}},
         {},
         "name: x\nrun: x\nexclusive: true\n"},
        {"all that is wrong",
         "run: x\nnods: 2",
         {{"gpsu", "8"},
          {"nodes", "0"},
          {"env", "A"},
          {"env", "B=1"},
          {"env", "B=2"},
          {"time", "1h"},
          {"time", "2h"},
          {"restart", "{max"},
          {"queue", "\xff"}},
         {},
         ":2:1: error: nods: unknown key; did you mean nodes?\n    nods: 2\n    ^\n"
         "--nodes: 0: must be a whole number in 1..1048576\n"
         "--env: B: given twice\n"
         "--gpsu: unknown flag; did you mean --gpus?\n"
         "--env: A: must be NAME=VALUE\n"
         "--time: given twice\n"
         "--restart: a key must be text, not a list or a map; is a bracket not closed?\n"
         "--queue: byte 0 (0xff) is not UTF-8; save the file as UTF-8\n"},
        {"run twice", "", {{"run", "x"}}, {"y"}, "--run: a command after -- is given too\n"},
        {"nothing",
         "",
         {},
         {},
         "error: run is missing: the command to run, as in \"run: python train.py\"\n"},
    };
    for (const Row& row : rows) {
        std::string got = answer(parse_job(row.document, row.flags, row.command, ParseOptions{}));
        if (got.substr(0, 2) == "2:") got = ":" + got;
        EXPECT_EQ(got, row.expected) << row.name;
    }
}

TEST(Flags, MutantsNeverCrash) {
    Prng random(31);
    const std::string_view pieces = "{}[]:,-?&*!|>'\"%@`#\\\n\t 0a9.=\xff\x80";
    const auto fields = job_fields();
    for (int i = 0; i < 4000; ++i) {
        std::vector<FlagText> flags;
        for (std::uint64_t n = 1 + random.below(3); n > 0; --n) {
            const Field& field = fields[random.below(fields.size())];
            std::string text(field.example);
            for (std::uint64_t m = random.below(3); m > 0; --m)
                text.insert(random.below(text.size()), 1, pieces[random.below(pieces.size())]);
            flags.push_back({std::string(field.name), text});
        }
        const std::vector<std::string> command = {"x", std::string(flags[0].text)};
        const auto parsed = parse_job("run: x\nenv: {A: 1}", flags, command, ParseOptions{});
        const auto* spec = std::get_if<model::JobSpec>(&parsed);
        if (spec == nullptr) continue;
        const auto again = parse_job(to_yaml(*spec), ParseOptions{});
        ASSERT_EQ(again.index(), 0u) << to_yaml(*spec);
        EXPECT_TRUE(std::get<model::JobSpec>(again) == *spec) << to_yaml(*spec);
    }
}

TEST(Flags, CommandsAreQuotedForTheShell) {
    const auto quote = [](std::vector<std::string> words) { return shell_quote(words); };
    EXPECT_EQ(quote({"a", "b c", "$x", "it's", "", "-x=1", "*"}),
              "a 'b c' '$x' 'it'\\''s' '' -x=1 '*'");
    EXPECT_EQ(quote({"A=1", "B=2"}), "'A=1' B=2");
    EXPECT_EQ(quote({"~/x", "#y"}), "'~/x' '#y'");
    EXPECT_EQ(quote({}), "");
}

}  // namespace
}  // namespace muster::spec
