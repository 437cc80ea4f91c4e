#include "spec/parse.h"

#include <gtest/gtest.h>

#include "base/error_codes.h"
#include "spec/render.h"

namespace muster::spec {
namespace {

constexpr Time kNow{1'796'112'000'000};  // 2026-12-01T08:00:00Z

/// The normal form, or one line a problem.
std::string answer(const ParsedJob& parsed) {
    if (const auto* spec = std::get_if<model::JobSpec>(&parsed)) return to_yaml(*spec);
    std::string out;
    for (const Problem& problem : std::get<Problems>(parsed)) out += render_line(problem) + "\n";
    return out;
}
ParseOptions options(std::string file = "j") {
    ParseOptions out;
    out.file = std::move(file);
    out.now = kNow;
    return out;
}
std::string ask(std::string_view text) {
    return answer(parse_job(text, options()));
}

struct Row {
    const char* text;
    const char* expected;
};

TEST(Parse, TwoLinesAreAJob) {
    const auto parsed = parse_job("gpus: 1\nrun: python train.py --lr 3e-4\n", options());
    ASSERT_TRUE(std::holds_alternative<model::JobSpec>(parsed)) << answer(parsed);
    model::JobSpec expected;
    expected.name = "train";
    model::Role& role = expected.roles.emplace_back();
    role.devices.emplace_back();
    role.run = "python train.py --lr 3e-4";
    EXPECT_TRUE(std::get<model::JobSpec>(parsed) == expected);
    EXPECT_LT(encode(expected).size(), 100u);
}

TEST(Parse, GoodJobs) {
    const Row rows[] = {
        {"run: x", "name: x\nrun: x\n"},
        {"run: \"\\u4f60 x\"\nname: 训练", "name: \"训练\"\nrun: \"你 x\"\n"},
        {"{run: x, nodes: 2}", "name: x\nnodes: 2\nrun: x\n"},
        {R"({"run":"x","nodes":2,"env":{"A":"\ud83d\ude00\/"}})",
         "name: x\nnodes: 2\nenv: {A: \"😀/\"}\nrun: x\n"},
        {"\xef\xbb\xbfrun: x\r\ntime: 90m\r\n", "name: x\ntime: 1h30m\nrun: x\n"},
        {"# comment\n---\nrun: x # more\n...\n", "name: x\nrun: x\n"},
        {"run: |\n  cd /x\n  python a.py\n", "name: cd\nrun: |\n  cd /x\n  python a.py\n"},
        {"run: x\npriority: 0\nqueue: prod/nlp\nlabels: {team: nlp, a: 7}",
         "name: x\nqueue: prod/nlp\npriority: 0\nlabels: {a: \"7\", team: nlp}\nrun: x\n"},
        // YAML's traps: text stays text.
        {"run: x\nenv: {A: 1e-4, B: on, C: 0..4, D: 012, E: 1_000, F: 0x10, G: 1.0, H: 2026-12-01}",
         "name: x\nenv: {A: \"1e-4\", B: \"on\", C: \"0..4\", D: \"012\", E: \"1_000\", F: "
         "\"0x10\", "
         "G: \"1.0\", H: \"2026-12-01\"}\nrun: x\n"},
        {"run: x\nname: 012", "name: \"012\"\nrun: x\n"},
        {"run: x\ncpus: 0.5\nmemory: 64GB\ndisk: 1.5T\nshm: 16GiB\nimage: i\nexclusive: "
         "true\nhold: "
         "true",
         "name: x\ncpus: 0.5\nmemory: 64GiB\ndisk: 1536GiB\nshm: 16GiB\nimage: i\nrun: "
         "x\nexclusive: true\n"
         "hold: true\n"},
        {"run: x\ntime: 2d\nexpected_time: 36h\nbegin: now+2h\ndeadline: 2026-12-24T18:00:00+01:00",
         "name: x\ntime: 2d\nexpected_time: 1d12h\nbegin: \"2026-12-01T10:00:00Z\"\n"
         "deadline: \"2026-12-24T17:00:00Z\"\nrun: x\n"},
        {"run: x\ntime: none", "name: x\nrun: x\n"},
        {"run: x\nimage: repo/img:1\nworkdir: /a//b/./c/\nsetup: make\nmounts: [/d:/e:ro, /f:/g]\n"
         "secrets: {HF_TOKEN: /home/u/.hf}",
         "name: x\nimage: \"repo/img:1\"\nworkdir: /a/b/c\nsetup: make\nrun: x\n"
         "mounts: [\"/d:/e:ro\", \"/f:/g\"]\nsecrets: {HF_TOKEN: /home/u/.hf}\n"},
        {"run: x\nimage: i\nmounts: /d:/e", "name: x\nimage: i\nrun: x\nmounts: [\"/d:/e\"]\n"},
        {"run: x\npty: true", "name: x\nrun: x\npty: true\n"},
    };
    for (const Row& row : rows) EXPECT_EQ(ask(row.text), row.expected) << row.text;
}

TEST(Parse, GpusInAllForms) {
    const Row rows[] = {
        {"8", "gpus: 8"},
        {"h100:8", "gpus: h100:8"},
        {"H100:8", "gpus: h100:8"},
        {"h100", "gpus: h100:1"},
        {"80GB:1", "gpus: {count: 1, memory: 80GiB}"},
        {"80GB", "gpus: {count: 1, memory: 80GiB}"},
        {"h100:80GB:4", "gpus: {kind: h100, count: 4, memory: 80GiB}"},
        {"[h100:8, a100:8]", "gpus: [h100:8, a100:8]"},
        {"h100:8, a100:4", "gpus: [h100:8, a100:4]"},
        {"none", ""},
        {"None", ""},
        {"0", ""},
        {"4090:2", "gpus: 4090:2"},
        {"fpga:2", "gpus: fpga:2"},
        {"ascend910b:8", "gpus: ascend910b:8"},
        {"910b:8", "gpus: 910b:8"},
        {"hygon-dcu:4", "gpus: hygon-dcu:4"},
        {"{kind: H100, count: 8, memory: \">=40Gi\", vendor: NVIDIA}",
         "gpus: {kind: h100, count: 8, memory: 40GiB, vendor: nvidia}"},
        {"{vendor: amd}", "gpus: {count: 1, vendor: amd}"},
        {"[{kind: h100, count: 8}, a100:8]", "gpus: [h100:8, a100:8]"},
        {"1024", "gpus: 1024"},
        {"1025", "!gpus: 1025: the number of devices per node must be in 1..1024"},
        {"h100:0", "!gpus: h100:0: the number of devices per node must be in 1..1024"},
        {"-8", "!gpus: -8: the number of devices per node must be in 1..1024"},
        {"h100:-1", "!gpus: h100:-1: the number of devices per node must be in 1..1024"},
        {"9223372036854775808",
         "!gpus: 9223372036854775808: the number of devices per node must be in 1..1024"},
        {"h100:1/2",
         "!gpus: h100:1/2: the number of devices per node must be in 1..1024; part of one "
         "device is a number in 0.001..0.999"},
        {"[]", "!gpus: an empty list; write none for no devices"},
        {"[h100:8, none]", "!gpus[1]: none cannot be an alternative to devices"},
        {"[h100:8, H100:8]", "!gpus[1]: the same alternative twice"},
        {"h 100:8",
         "!gpus: h 100: not a kind of device; at most 64 letters, digits, . _ + and - "
         "(h100, ascend910b, fpga)"},
        {"a:b:c:1",
         "!gpus: a:b:c:1: must be COUNT, KIND:COUNT or MEMORY:COUNT (8, h100:8, 80GB:1)"},
        {"\"h100:\"", "!gpus: h100:: the number of devices per node must be in 1..1024"},
        {"{memory: 8XB}",
         "!gpus.memory: 8XB: not a size; write a number with K, M, G, T or P "
         "(64GB, 1.5T)"},
        {"{kid: h100}", "!gpus.kid: unknown key; did you mean kind?"},
        {"{h100: 8}",
         "!gpus.h100: unknown key; known here: kind, count, memory, vendor, "
         "fraction, share, profile"},
    };
    for (const Row& row : rows) {
        const std::string text = "run: x\ngpus: " + std::string(row.text);
        std::string got = ask(text);
        if (row.expected[0] == '!') {
            const std::size_t at = got.find("error: ");
            got = "!" + (at == std::string::npos ? got : got.substr(at + 7));
            EXPECT_EQ(got, std::string(row.expected) + "\n") << row.text;
        } else {
            const std::string line = *row.expected ? std::string(row.expected) + "\n" : "";
            EXPECT_EQ(got, "name: x\n" + line + "run: x\n") << row.text;
        }
    }
}

/// "run: x", then one field: its line of the normal form, or "!" and its problem.
void expect_field(const std::vector<Row>& rows) {
    for (const Row& row : rows) {
        const std::string got = ask("run: x\n" + std::string(row.text));
        if (row.expected[0] == '!') {
            const std::string message = std::string("error: ") + (row.expected + 1) + "\n";
            EXPECT_TRUE(got.size() >= message.size() &&
                        got.find(message) == got.size() - message.size())
                << row.text << "\n"
                << got;
        } else {
            EXPECT_EQ(got,
                      "name: x\nrun: x\n" + std::string(row.expected) + (*row.expected ? "\n" : ""))
                << row.text;
        }
    }
}

TEST(Parse, Launch) {
    expect_field({
        {"launch: per-node", ""},
        {"launch: torchrun", "launch: torchrun"},
        {"launch: mpi", "launch: mpi"},
        {"launch: per-gpu", "!launch: per-gpu: needs gpus: there is no device to run on"},
        {"launch: per-device", "!launch: per-device: needs gpus: there is no device to run on"},
        {"launch: torchrn",
         "!launch: torchrn: must be one of torchrun, per-gpu, per-node, mpi; did "
         "you mean torchrun?"},
    });
    const auto launch = [](std::string_view text) {
        const auto parsed = parse_job(text, options());
        return std::get<model::JobSpec>(parsed).launch;
    };
    EXPECT_EQ(launch("run: x\nnodes: 1"), model::Launch::PerNode);
    EXPECT_EQ(launch("run: x\nnodes: 2"), model::Launch::Torchrun);
    EXPECT_EQ(launch("run: x\nroles: {a: {}, b: {}}"), model::Launch::Torchrun);
    EXPECT_EQ(launch("run: x\nroles: {a: {}}"), model::Launch::PerNode);
    EXPECT_EQ(launch("run: x\nnodes: 2\nlaunch: per-node"), model::Launch::PerNode);
    EXPECT_EQ(launch("run: x\ngpus: 8\nlaunch: per-device"), model::Launch::PerGpu);
    EXPECT_EQ(ask("run: x\nnodes: 2\nlaunch: per-node"),
              "name: x\nnodes: 2\nrun: x\nlaunch: per-node\n");
}

TEST(Parse, RestartRules) {
    expect_field({
        {"restart: 3", "restart: 3"},
        {"restart: 0", ""},
        {"restart: none", ""},
        {"restart: unlimited", "restart: unlimited"},
        {"restart: {max: 3}", "restart: 3"},
        {"restart: {max: 3, on: any}", "restart: 3"},
        {"restart: {max: 3, on: [exit:137, oom, exit:9, exit:9], backoff: 30s}",
         "restart: {max: 3, on: [oom, exit:9, exit:137], backoff: 30s}"},
        {"restart: {max: 3, on: [oom, any]}", "restart: 3"},
        {"restart: {max: 3, backoff: 0}", "restart: {max: 3, backoff: 0s}"},
        {"restart: -1", "!restart: -1: must be a whole number in 0..1000000"},
        {"restart: {on: oom}", "!restart: max is missing: how many restarts?"},
        {"restart: {max: 0, on: oom}",
         "!restart: max is 0, so that nothing else here has an effect"},
        {"restart: {max: 1, on: [node]}",
         "!restart.on: node: a job always restarts after this, "
         "without using up a restart; leave it out"},
        {"restart: {max: 1, on: exit:256}",
         "!restart.on: exit:256: the exit code must be in 1..255"},
        {"restart: {max: 1, on: ooom}",
         "!restart.on: ooom: must be one of any, oom, exit:CODE; did you mean oom?"},
        {"restart: {max: 1, on: []}", "!restart.on: an empty list; leave it out for any"},
        {"restart: {max: 1, backoff: 11m}", "!restart.backoff: 11m: must be in 0s..10m"},
        {"restart: [1]", "!restart: one value expected, not a list"},
    });
}

TEST(Parse, CheckpointsAndLogRules) {
    expect_field({
        {"checkpoint: /ckpt/a/", "checkpoint: /ckpt/a"},
        {"checkpoint: {dir: /c, signal: SIGUSR2, grace: 2m, interval: 10m}",
         "checkpoint: {dir: /c, signal: USR2, grace: 2m, interval: 10m}"},
        {"checkpoint: {dir: /c, signal: USR1, grace: 60s, interval: auto}", "checkpoint: /c"},
        {"checkpoint: {grace: 5m}", "checkpoint: {grace: 5m}"},
        {"checkpoint: {dir: /c, grace: 0}", "!checkpoint.grace: 0: must be in 1s..1d"},
        {"checkpoint: {dir: /c, signal: KILL}",
         "!checkpoint.signal: KILL: must be one of USR1, "
         "USR2, TERM, INT, HUP, QUIT, CONT, WINCH"},
        {"checkpoint: ckpt", "!checkpoint: ckpt: must be an absolute path"},
        {"checkpoint: ~/ckpt", "!checkpoint: ~/ckpt: ~ is not expanded; write the absolute path"},
        {"checkpoint: {}", "!checkpoint: empty; give a directory"},
        {"log_rules: [{match: 'CUDA.*', do: exclude-node}, {match: b, do: fail}]",
         "log_rules: [{match: \"CUDA.*\", do: exclude-node}, {match: b, do: fail}]"},
        {"log_rules: {match: b, do: requeue}", "log_rules: [{match: b, do: requeue}]"},
        {"log_rules: [{match: b}]", "!log_rules[0]: do is missing"},
        {"log_rules: [{match: '(', do: fail}]",
         "!log_rules[0].match: (: not a regular expression: Mismatched '(' and ')' in regular "
         "expression"},
        {"log_rules: [{match: '(a{99}){99}', do: fail}]",
         "!log_rules[0].match: (a{99}){99}: too complex; use fewer or smaller repetitions {…}"},
        {"log_rules: [{match: '[(]{2}([0-9a-f]{1,4}:){7}\\{9999', do: fail}]",
         "log_rules: [{match: \"[(]{2}([0-9a-f]{1,4}:){7}\\\\{9999\", do: fail}]"},
        {"log_rules: [{match: b, do: fial}]",
         "!log_rules[0].do: fial: must be one of fail, "
         "exclude-node, requeue; did you mean fail?"},
        {"log_rules: [b]",
         "!log_rules[0]: a map expected, as in {match: \"CUDA error\", do: "
         "exclude-node}"},
    });
}

TEST(Parse, DependenciesArraysAndSweeps) {
    expect_field({
        {"depends: 12", "depends: [afterok:12]"},
        {"depends: afterok:12:13", "depends: [afterok:12, afterok:13]"},
        {"depends: [afterany:12, 12, afternotok:3, 12]",
         "depends: [afterany:12, afterok:12, afternotok:3]"},
        {"depends: after-ok:12",
         "!depends: after-ok:12: must be afterok, afterany or afternotok, then job "
         "ids; did you mean afterok?"},
        {"depends: 0", "!depends: 0: a job id must be in 1..2147483647"},
        {"depends: 2147483648", "!depends: 2147483648: a job id must be in 1..2147483647"},
        {"depends: afterok", "!depends: afterok: a job id is missing (afterok:12)"},
        {"array: 0..99", "array: 0..99"},
        {"array: 100", "array: 0..99"},
        {"array: 0..99:5", "array: 0..95:5"},
        {"array: 3..9%2", "array: 3..9\nparallel: 2"},
        {"array: 0..99\nparallel: 8", "array: 0..99\nparallel: 8"},
        {"array: 16777216", "array: 0..16777215"},
        {"array: 16777217", "!array: 16777217: the number of elements must be in 1..16777216"},
        {"array: 0..16777216",
         "!array: 0..16777216: 16777217 elements, over the limit of 16777216"},
        {"array: 0", "!array: 0: the number of elements must be in 1..16777216"},
        {"array: -5", "!array: -5: the number of elements must be in 1..16777216"},
        {"array: 9..0",
         "!array: 9..0: write a number of elements (100) or a rising range from 0 up "
         "(0..99, 0..99:5), then perhaps %8 for at most 8 at once"},
        {"array: 0..9%2\nparallel: 3",
         "!array: 0..9%2: parallel is given as well; write one of the two"},
        {"parallel: 3", "!parallel: needs array or sweep: there is nothing to run in parallel"},
        {"sweep: {lr: [1e-4, 3e-4, 1e-3], seed: 0..2}\nparallel: 8",
         "sweep: {lr: [\"1e-4\", \"3e-4\", \"1e-3\"], seed: 0..2}\nparallel: 8"},
        {"sweep: {a: [\"0..2\", 0..2, x]}", "sweep: {a: [\"0..2\", \"0\", \"1\", \"2\", x]}"},
        {"sweep: {a: \"0..2\"}", "sweep: {a: 0..2}"},
        {"sweep: {a: -4..4:4, b: [0, 2]}", "sweep: {a: -4..4:4, b: [\"0\", \"2\"]}"},
        {"sweep: {a: on}", "sweep: {a: [\"on\"]}"},
        {"sweep: {}", "!sweep: empty; name at least one variable and its values"},
        {"sweep: {a: []}", "!sweep.a: an empty list; an axis needs at least one value"},
        {"sweep: {a: 5..1}",
         "!sweep.a: 5..1: not a range; write whole numbers, FIRST..LAST or FIRST..LAST:STEP, "
         "rising"},
        {"sweep: {a: 0..65535, b: 0..255}",
         "!sweep.b: more than 65536 values in all axes; an array "
         "may be longer"},
        {"sweep: {a: 0..9999, b: 0..9999}",
         "!sweep: the product of the axes is over the limit of "
         "16777216 elements"},
        {"sweep: {a: 0..99999999999}",
         "!sweep.a: 0..99999999999: not a range; write whole numbers, FIRST..LAST or "
         "FIRST..LAST:STEP, rising"},
        {"sweep: {a: 1e-4..1e-2}",
         "!sweep.a: 1e-4..1e-2: not a range; write whole numbers, FIRST..LAST or "
         "FIRST..LAST:STEP, rising"},
        {"sweep: {a: ../data}", "sweep: {a: [\"../data\"]}"},
        {"sweep: {a b: 1}",
         "!sweep.a b: becomes an environment variable: letters, digits and _ "
         "only, not MUSTER_…"},
        {"array: 3\nsweep: {a: 1}",
         "!sweep: array and sweep cannot both be given; a sweep numbers "
         "its tasks itself"},
        {"array: 3\npty: true", "!pty: a terminal is for one job; take array or sweep away"},
    });
    const auto parsed = parse_job("run: x\nsweep: {a: [1, 2, 3], b: 0..4}", options());
    EXPECT_EQ(std::get<model::JobSpec>(parsed).array.count, 15);
}

TEST(Parse, Constraints) {
    expect_field({
        {"constraint: gpu-gen=3", "constraint: [gpu-gen=3]"},
        {"constraint: [gpu-gen==3, zone!=a, ssd]", "constraint: [gpu-gen=3, \"zone!=a\", ssd]"},
        {"constraint: \"zone in (b, a,a), !old, node not in (n1)\"",
         "constraint: [\"zone in (a,b)\", \"!old\", \"node!=n1\"]"},
        {"constraint: [\"node in (n1,n2)\", 'x notin (a)']",
         "constraint: [\"node in (n1,n2)\", \"x!=a\"]"},
        {"constraint: [zone in (a,b)]",
         "!constraint[1]: b): parentheses do not match; put \"key in "
         "(a,b)\" in quotes in a list"},
        {"constraint: a>=3",
         "!constraint: a>=3: not a condition on nodes; write key, !key, "
         "key=value, key!=value, or key in (a,b)"},
        {"constraint: \"!node\"",
         "!constraint: !node: every node has a name; write \"node in (a,b)\""},
        {"constraint: [!old]",
         "!\"!old\" is a YAML tag here; put text that starts with ! in quotes"},
        {"constraint: zone of (a)",
         "!constraint: zone of (a): not a condition on nodes; write key, "
         "!key, key=value, key!=value, or key in (a,b)"},
        {"constraint: \"\"",
         "!constraint: : not a condition on nodes; write key, !key, key=value, "
         "key!=value, or key in (a,b)"},
    });
}

TEST(Parse, Roles) {
    const Row rows[] = {
        {"roles:\n  ps: {cpus: 8, gpus: none, run: python ps.py, env: {A: 1}}\n  worker: {nodes: "
         "4}\n"
         "gpus: h100:8\nrun: python w.py\nenv: {B: 2}\ncpus: 64",
         "name: ps\nenv: {B: \"2\"}\nroles:\n  ps:\n    cpus: 8\n    env: {A: \"1\"}\n    run: "
         "python "
         "ps.py\n  worker:\n    nodes: 4\n    gpus: h100:8\n    cpus: 64\n    run: python w.py\n"},
        {"roles: {a: {run: x}}", "name: x\nroles:\n  a:\n    run: x\n"},
        {"roles: {a: {}}",
         "j:1:12: error: roles.a: has no run, and the job has none to use instead\n"},
        {"roles: {a: {run: x, image: y, nods: 3}}",
         "j:1:21: error: roles.a.image: a field of the job, not of a role; write it beside roles\n"
         "j:1:31: error: roles.a.nods: unknown key; did you mean nodes?\n"},
        {"roles: {}", "j:1:8: error: roles: empty; name at least one role\n"},
        {"run: x\nroles: {A_b: {}}",
         "j:2:9: error: roles.A_b: not a role's name; at most 63 "
         "lower-case letters, digits and -\n"},
        {"run: x\nnodes: 1048576\nroles: {a: {}, b: {}}",
         "j:3:8: error: roles: 2097152 nodes in all, over the limit of 1048576\n"},
        {"run: x\nroles: [a]",
         "j:2:8: error: roles: a map expected, as in {worker: {nodes: 4, gpus: 8}, ps: {nodes: "
         "1}}\n"},
    };
    for (const Row& row : rows) EXPECT_EQ(ask(row.text), row.expected) << row.text;
}

TEST(Parse, BadNumbersAreRefusedF25) {
    expect_field({
        {"nodes: 0", "!nodes: 0: must be a whole number in 1..1048576"},
        {"nodes: -3", "!nodes: -3: must be a whole number in 1..1048576"},
        {"nodes: 9223372036854775808",
         "!nodes: 9223372036854775808: must be a whole number in 1..1048576"},
        {"nodes: 1e400", "!nodes: 1e400: must be a whole number in 1..1048576"},
        {"nodes: .nan", "!nodes: .nan: must be a whole number in 1..1048576"},
        {"nodes: 4x", "!nodes: 4x: must be a whole number in 1..1048576"},
        {"nodes: 4.0", "!nodes: 4.0: must be a whole number in 1..1048576"},
        {"nodes: 012", "!nodes: 012: leading zeros; write a plain decimal number"},
        {"nodes: 0x10", "!nodes: 0x10: must be a whole number in 1..1048576"},
        {"nodes: 1_000", "!nodes: 1_000: must be a whole number in 1..1048576"},
        {"priority: 101", "!priority: 101: must be a whole number in 0..100"},
        {"cpus: -1", "!cpus: -1: a number of CPUs cannot be negative"},
        {"cpus: 0", "!cpus: 0: must be more than none; leave it out for the default"},
        {"cpus: 1e400", "!cpus: 1e400: not a number of CPUs; write 4, 0.5 or 500m"},
        {"cpus: NaN", "!cpus: NaN: not a number of CPUs; write 4, 0.5 or 500m"},
        {"memory: -64GB", "!memory: -64GB: a size cannot be negative"},
        {"memory: 64", "!memory: 64: only 64 bytes; the least is 1MiB (write a unit, as in 64GB)"},
        {"memory: 9223372036854775808", "!memory: 9223372036854775808: over the limit of 64TiB"},
        {"memory: 65T", "!memory: 65T: over the limit of 64TiB"},
        {"disk: 2P", "!disk: 2P: over the limit of 1PiB"},
        {"time: -5m", "!time: -5m: a duration cannot be negative"},
        {"time: 0", "!time: 0: must be in 1s..3650d"},
        {"time: 9223372036854775808",
         "!time: 9223372036854775808: longer than the limit of 3650d (ten years)"},
        {"begin: now+9223372036854775808d",
         "!begin: now+9223372036854775808d: not a time; after now+ comes a duration, as in now+2h"},
    });
}

TEST(Parse, FieldsThatContradict) {
    expect_field({
        {"time: 1h\nexpected_time: 2h", "!expected_time: 2h: longer than time, the limit, of 1h"},
        {"deadline: 2026-11-30",
         "!deadline: 2026-11-30T00:00:00Z: has passed; it is "
         "2026-12-01T08:00:00Z"},
        {"begin: now+2h\ndeadline: now+1h",
         "!deadline: 2026-12-01T09:00:00Z: not after begin, 2026-12-01T10:00:00Z"},
        {"env: {A: 1}\nsecrets: {A: /f}",
         "!secrets.A: also a variable of env; it can come from one of them only"},
        {"env: {A: 1}\nsweep: {A: 1}",
         "!sweep.A: also a variable of env; it can come from one of them only"},
        {"mounts: [/a:/m]",
         "!mounts: needs image: without one a task sees the node's directories as they are"},
        {"shm: 1GB", "!shm: needs image: without one a task uses the node's /dev/shm"},
        {"roles: {a: {shm: 1GB}}",
         "!roles: shm needs image: without one a task uses the node's /dev/shm"},
        {"image: i\nmounts: [/a:/m, /b:/m/]", "!mounts[1]: /m: two mounts have this target"},
    });
}

TEST(Parse, TextsAndPaths) {
    expect_field({
        {"name: a/b", "!name: must not contain /"},
        {"name: \"\"", "!name: empty"},
        {"name: \"a\\tb\"", "!name: holds a line break or another control character"},
        {"image: a b", "!image: an image's name has no spaces"},
        {"queue: a b", "!queue: a b: letters, digits, . _ - and / only"},
        {"setup: \"a\\0b\"", "!setup: holds a NUL character (\\0), which no program can be given"},
        {"env: {A: \"\\u0000\"}",
         "!env.A: holds a NUL character (\\0), which no program can be given"},
        {"mounts: /a", "!mounts[0]: /a: must be SOURCE:TARGET or SOURCE:TARGET:ro"},
        {"mounts: a:/b", "!mounts[0]: a: must be an absolute path"},
        {"mounts: /a:b", "!mounts[0]: b: the target must be an absolute path"},
        {"mounts: /a/../b:/c", "!mounts[0]: /a/../b: a path must not contain .."},
        {"mounts: /a:/", "!mounts[0]: the target cannot be / itself"},
        {"mounts: /a:/b:rx", "!mounts[0]: /a:/b:rx: must be SOURCE:TARGET or SOURCE:TARGET:ro"},
        {"secrets: {A: f}", "!secrets.A: f: must be an absolute path"},
        {"exclusive: yes", "!exclusive: yes: must be true or false"},
        {"labels: {a b: 1}",
         "!labels.a b: not a label's name; at most 128 letters, digits, . _ - and /"},
        {"env: [A=1]", "!env: a map expected, as in {NAME: value}"},
    });
    EXPECT_EQ(ask("run: '  '"), "j:1:6: error: run: empty\n");
    EXPECT_EQ(ask("run:"),
              "j:1:5: error: run: no value; give one, or take the line away (an empty "
              "text is written \"\")\n");
    EXPECT_EQ(ask("run: [a, b]"), "j:1:6: error: run: one value expected, not a list\n");
}

TEST(Parse, AllProblemsAtOnceInTheOrderOfTheFile) {
    EXPECT_EQ(
        ask("memry: 4GB\nservice: {}\npriority: 200\ngpus: 1.5\nnodes: 8..4\naccelerators: 2"),
        "j:1:1: error: memry: unknown key; did you mean memory?\n"
        "j:2:1: error: service: not supported by this version of Muster\n"
        "j:3:11: error: priority: 200: must be a whole number in 0..100\n"
        "j:4:7: error: gpus: 1.5: the number of devices per node must be in 1..1024; part of one "
        "device is a number in 0.001..0.999\n"
        "j:5:8: error: nodes: 8..4: must be MIN..MAX, rising and within 1..1048576 (4..16); a job "
        "that is not elastic has one number\n"
        "j:6:1: error: accelerators: unknown key; did you mean gpus?\n"
        "j: error: run is missing: the command to run, as in \"run: python train.py\"\n");
}

TEST(Parse, ProblemsCarryTheirParts) {
    const auto parsed =
        parse_job("run: x\nroles: {a/b: {prioritty: 3}}\npriority: 300", options("job.yaml"));
    const auto& problems = std::get<Problems>(parsed);
    ASSERT_EQ(problems.size(), 3u);
    EXPECT_EQ(problems[1].pointer, "/roles/a~1b/prioritty");
    EXPECT_EQ(problems[2].pointer, "/priority");
    EXPECT_EQ(problems[2].value, "300");
    EXPECT_EQ(problems[2].limit, "0..100");
    EXPECT_EQ(problems[2].line, 3);
    EXPECT_EQ(problems[2].column, 11);
    EXPECT_EQ(problems[2].file, "job.yaml");
    const Error error = to_error(problems);
    EXPECT_EQ(error.code, Code::Invalid);
    EXPECT_NE(error.message.find("(and 2 more)"), std::string::npos) << error.message;
}

TEST(Parse, NoMoreThanAHundredProblemsAreListed) {
    std::string text = "run: x\n";
    for (int i = 0; i < 500; ++i) text += "colour" + std::to_string(i) + ": 1\n";
    const auto problems = std::get<Problems>(parse_job(text, options()));
    EXPECT_EQ(problems.size(), kProblemsMax + 1);
    EXPECT_EQ(problems.back().message, "and 400 more problems");
}

TEST(Parse, RelativePathsStartAtTheBase) {
    ParseOptions with = options();
    with.base_dir = "/home/wei";
    with.default_workdir = "/home/wei/x";
    EXPECT_EQ(
        answer(parse_job("run: x\nimage: i\nworkdir: .\ncheckpoint: ck\nmounts: data:/data", with)),
        "name: x\nimage: i\nworkdir: /home/wei\nrun: x\nmounts: [\"/home/wei/data:/data\"]\n"
        "checkpoint: /home/wei/ck\n");
    EXPECT_EQ(answer(parse_job("run: x", with)), "name: x\nworkdir: /home/wei/x\nrun: x\n");
    EXPECT_EQ(answer(parse_job("run: x\nimage: i", with)), "name: x\nimage: i\nrun: x\n");
}

TEST(Parse, FlagsPathsStartWhereTheyAreTyped) {
    ParseOptions with = options();
    with.base_dir = "/home/wei/jobs";
    with.flag_dir = "/home/wei";
    const std::vector<FlagText> flags = {{"checkpoint", "ck"}};
    EXPECT_EQ(answer(parse_job("run: x\nworkdir: a", flags, {}, with)),
              "name: x\nworkdir: /home/wei/jobs/a\nrun: x\ncheckpoint: /home/wei/ck\n");
}

TEST(Parse, DefaultsAreUsedWhereNothingElseIsSaid) {
    ParseOptions with = options();
    with.defaults = {{"queue", "q"}, {"env", "A=1"}, {"env", "B=2"}, {"nodes", "2"}, {"name", "n"}};
    const std::vector<FlagText> flags = {{"name", "m"}};
    EXPECT_EQ(answer(parse_job("{run: x, nodes: 3}", flags, {}, with)),
              "name: m\nqueue: q\nnodes: 3\nenv: {A: \"1\", B: \"2\"}\nrun: x\n");
    with.defaults = {{"queu", "q"}, {"priority", "999"}};
    EXPECT_EQ(answer(parse_job("run: x", with)),
              "default priority: 999: must be a whole number in 0..100\n"
              "default queu: unknown flag; did you mean --queue?\n");
}

TEST(Parse, ProblemsHaveNumbers) {
    struct Numbered {
        const char* text;
        int number;
    };
    const Numbered rows[] = {
        {"run: [", errors::kJobSyntax},
        {"run: x\nmemry: 1", errors::kJobUnknownField},
        {"run: x\nnodes: 0", errors::kJobOutOfRange},
        {"run: x\nmemory: 4XB", errors::kJobOutOfRange},
        {"run: x\nexclusive: 1", errors::kJobOutOfRange},
        {"run: x\ntime: soon", errors::kJobBadValue},
        {"nodes: 1", errors::kJobFieldMissing},
        {"run:", errors::kJobFieldMissing},
        {"run: \xff", errors::kJobNotText},
        {"run: x\nrun: y", errors::kJobFieldsConflict},
        {"run: x\narray: 2\nsweep: {a: 1}", errors::kJobFieldsConflict},
        {"run: x\nnodes: 4..2", errors::kJobOutOfRange},
        {"run: x\ntopology: node\nnodes: 2", errors::kJobFieldsConflict},
        {"run: x\nservice: {}", errors::kJobUnsupported},
        {"#!/bin/sh\nx", errors::kJobUnsupported},
        {"run: x\nnods: 1\ntme: 1", errors::kJobInvalid},
    };
    for (const Numbered& row : rows)
        EXPECT_EQ(to_error(std::get<Problems>(parse_job(row.text, options()))).number, row.number)
            << row.text;
}

TEST(Parse, AnEditorsSchemaIsNoField) {
    EXPECT_EQ(ask("{\"$schema\": \"job.schema.json\", \"run\": \"x\"}"), "name: x\nrun: x\n");
    EXPECT_EQ(ask("run: x\nrestart: {$schema: y, max: 1}"),
              "j:2:11: error: restart.$schema: unknown key; known here: max, on, backoff\n");
}

TEST(Parse, NamesComeFromCommands) {
    const Row rows[] = {
        {"python train.py --lr 3e-4", "train"},
        {"/usr/bin/python3 -u ./src/train.py", "train"},
        {"torchrun --nproc-per-node 8 train.py", "train"},
        {"A=1 B=2 exec ./run.sh", "run"},
        {"# first\n\nnvidia-smi -L", "nvidia-smi"},
        {"python3 -c 'print(1)'", "python3"},
        {"'./my prog' x", "my"},
        {"训练", "job"},
        {"sleep 10", "sleep"},
        {"bash a.sh; b", "a"},
        {"echo hi.txt", "echo"},
    };
    for (const Row& row : rows) {
        const std::vector<FlagText> flags = {{"run", row.text}};
        const auto named = parse_job("", flags, {}, options());
        EXPECT_EQ(std::get<model::JobSpec>(named).name, row.expected) << row.text;
    }
}

}  // namespace
}  // namespace muster::spec
