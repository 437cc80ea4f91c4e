// Every format as rows of text: the file, and the jobs or the refusal that it gives.
#include "simulator/traces/trace.h"

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/units.h"
#include "simulator/traces/pollux.h"

namespace muster::simulator::traces {
namespace {

/// "NAME @SUBMIT run 5s 2x8 v100|a100 user/queue limit 1h cpus 4 mem 1GiB user-error"
std::string text_of(const Trace& trace, const TraceRow& row) {
    const Time zero = trace.relative ? kRelativeStart : Time{};
    std::string out = row.name + " @";
    out += trace.relative ? format_duration(row.submit - zero) : format_time(row.submit);
    out += " run " + format_duration({row.run_ms});
    out += " " + std::to_string(row.nodes) + "x" + std::to_string(row.devices);
    if (row.fraction > 0) out += "." + std::to_string(row.fraction);
    if (row.kinds != 0) out += " " + trace.texts[row.kinds];
    if (row.user != 0 || row.queue != 0)
        out += " " + trace.texts[row.user] + "/" + trace.texts[row.queue];
    if (row.limit_ms != 0) out += " limit " + format_duration({row.limit_ms});
    if (row.cpus.value != 0) out += " cpus " + format_cpus(row.cpus);
    if (row.memory.value != 0) out += " mem " + format_bytes(row.memory);
    if (row.priority >= 0) out += " priority " + std::to_string(row.priority);
    if (row.end != model::Cause::Success) out += " " + std::string(model::to_text(row.end));
    return out + "\n";
}
std::string text_of(const Result<Trace>& trace) {
    if (!trace) return "error: " + trace.error().message + "\n";
    std::string out = trace->format + "\n";
    for (const TraceRow& row : trace->rows) out += text_of(*trace, row);
    out += text_of(trace->bad);
    for (const auto& [what, count] : trace->left_out)
        out += "left out: " + std::to_string(count) + " " + what + "\n";
    return out;
}

struct Row {
    const char* name;
    const char* text;
    const char* want;
    ReadOptions options = {};
    friend void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }
};
class Reader : public testing::TestWithParam<Row> {};
TEST_P(Reader, reads) {
    EXPECT_EQ(text_of(read_trace_text("t", GetParam().text, GetParam().options)), GetParam().want);
}

constexpr const char* kSacct =
    "JobID|JobName|User|Partition|Submit|Start|End|State|ElapsedRaw|Timelimit|NNodes|AllocTRES\n";
const std::string kSacctRows =
    std::string(kSacct) +
    "7|train|wei|gpu,debug|2026-01-02T00:00:10|2026-01-02T00:01:00|2026-01-02T01:01:00|COMPLETED|"
    "3600|1-00:00:00|2|billing=16,cpu=16,gres/gpu:a100=16,gres/gpu=16,mem=64G,node=2\n"
    "7.batch|batch||||2026-01-02T00:01:00|2026-01-02T01:01:00|COMPLETED|3600||1|cpu=8\n"
    "7.0|x||||2026-01-02T00:01:00|2026-01-02T01:01:00|COMPLETED|3600||1|cpu=8\n"
    "8_1|cpu|ana|batch|2026-01-02T00:00:00|2026-01-02T00:00:00|2026-01-02T00:00:05|FAILED|5|"
    "UNLIMITED|1|cpu=1,mem=100M,node=1\n"
    "9|w|ana|batch|2026-01-02T00:00:00|Unknown|Unknown|PENDING|0|UNLIMITED|1|\n"
    "10|r|ana|batch|2026-01-02T00:00:00|2026-01-02T00:00:00|Unknown|RUNNING|9|UNLIMITED|1|cpu=1\n"
    "11|c|ana|batch|2026-01-02T00:00:00|None|2026-01-02T00:00:01|CANCELLED by 1000|0|01:00:00|1|\n"
    "12|o|ana|batch|2026-01-02T00:00:01|2026-01-02T00:00:01|2026-01-02T00:10:03|TIMEOUT|602|"
    "00:10:00|1|cpu=1\n"
    "13|b|ana|batch|yesterday|2026-01-02T00:00:01|2026-01-02T00:10:03|COMPLETED|602|00:10:00|1|\n"
    "14|d|ana|batch|2026-01-02T00:00:01|2026-01-02T00:00:01|2026-01-02T00:10:03|COMPLETED|602|"
    "00:10:00|2|gres/gpu=3\n";

INSTANTIATE_TEST_SUITE_P(
    Rows, Reader,
    testing::Values(
        Row{"sacct", kSacctRows.c_str(),
            "sacct\n"
            "8_1 cpu @2026-01-02T00:00:00Z run 5s 1x0 ana/batch cpus 1 mem 100MiB user-error\n"
            "12 o @2026-01-02T00:00:01Z run 10m 1x0 ana/batch limit 10m cpus 1\n"
            "7 train @2026-01-02T00:00:10Z run 1h 2x8 a100 wei/gpu limit 1d cpus 8 mem 32GiB\n"
            "t:10: Submit is 'yesterday': not a time; 2026-12-01T08:00:00 expected\n"
            "t:11: AllocTRES is 'gres/gpu=3': 3 devices on 2 nodes are not the same on each\n"
            "left out: 2 jobs that never started\n"
            "left out: 1 jobs that still run\n"
            "left out: 2 steps of jobs\n"},
        Row{"sacct without what jobs held", "JobID|Submit|State|ElapsedRaw\n1|x|y|z\n",
            "error: t: has no column for what jobs held: AllocTRES, ReqTRES, AllocCPUS or NCPUS\n"},
        Row{"sacct without the id", "Job|Submit|State|ElapsedRaw\n1|x|y|z\n",
            "error: t: no column 'JobID'; there are: Job, Submit, State, ElapsedRaw\n"},
        Row{"workload",
            "; UnixStartTime: 0\n"
            "1 0 5 60 4 -1 -1 4 600 -1 1 3 -1 -1 1 -1 -1 -1\n"
            "2 10 5 60 12 -1 -1 -1 -1 -1 0 3 -1 -1 1 -1 -1 -1\n"
            "3 11 5 -1 -1 -1 -1 4 600 -1 5 3 -1 -1 1 -1 -1 -1\n"
            "4 -7 5 60 4 -1 -1 4 600 -1 1 3 -1 -1 1 -1 -1 -1\n"
            "5 12 5 60 4 -1 -1 4 600\n",
            "swf\n"
            "1 @0s run 1m 1x0 user3/queue1 limit 10m cpus 4\n"
            "2 @10s run 1m 2x0 user3/queue1 cpus 6 user-error\n"
            "t:5: submit is '-7': below 0\n"
            "t:6: 9 fields, the header has 18\n"
            "left out: 1 jobs without a run time (cancelled while waiting)\n",
            {.cpus_per_node = 8}},
        Row{"workload of devices",
            "1 0 5 60 16 -1 -1 -1 -1 -1 1 3 -1 -1 1 -1 -1 -1\n",
            "swf\n1 @0s run 1m 2x8 user3/queue1\n",
            {.format = "swf", .processors_are_devices = true}},
        Row{"philly",
            "timestamp,duration,num_gpus,gpu_time,cluster\n\n"
            "2017-10-09 07:01:55,66.0,1,66.0,11cb48\n"
            "2017-10-09 06:13:03,2951.5,12,2951.0,6214e9\n"
            "2017-10-09 06:13,-1,1,1,x\n",
            "philly\n"
            " @2017-10-09T06:13:03Z run 49m11s500ms 2x6 /6214e9\n"
            " @2017-10-09T07:01:55Z run 1m6s 1x1 /11cb48\n"
            "t:5: duration is '-1': below 0\n"},
        Row{"muri",
            "job_id,num_gpu,submit_time,iterations,model_name,iteration_time\n"
            "0,4,0,1000,resnet18,886\n1,32,1500,10,bert,0.5\n",
            "muri\n0 @0s run 14m46s 1x4\n1 @1s500ms run 5ms 4x8\n"},
        Row{"gavel",
            "job_id,job_type,scale_factor,total_steps,v100_duration_s,unit_exp_interarrival\n"
            "0,ResNet-18 (batch size 64),8,1.5,60.5,0.5\n1,LM,1,1,60,2\n2,LM,0,1,60,2\n",
            "gavel\n0 @0s run 1m500ms 1x8\n1 @30m run 1m 1x1\n"
            "t:4: scale_factor is '0': below 1\n"},
        Row{"pollux without profiles",
            "name,time,application,num_replicas,batch_size\ncifar10-0,107,cifar10,6,2048\n",
            "error: t: a job's length follows from the profile of its application, and none were "
            "given\n"},
        Row{"openb",
            "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
            "deletion_time,scheduled_time\n"
            "p0,12000,16384,1,1000,,LS,Running,0,60,10\n"
            "p1,6000,1024,1,460,V100M16|V100M32,BE,Running,5,65,5\n"
            "p2,6000,1024,0,0,,BE,Pending,5,65,\n"
            "p3,6000,1024,2,460,,BE,Running,5,65,5\n",
            "openb\n"
            "p0 @0s run 50s 1x1 cpus 12 mem 16GiB\n"
            "p1 @5s run 1m 1x1.460 v100m16|v100m32 cpus 6 mem 1GiB\n"
            "t:5: gpu_milli is '460': a part of more than one device\n"
            "left out: 1 pods that were never bound\n"},
        Row{"openb without times", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np0,1,1,1,1000\n",
            "error: t: no column 'creation_time'; there are: name, cpu_milli, memory_mib, num_gpu, "
            "gpu_milli\n"},
        Row{"history",
            R"({"id":"7","name":"a","user":"wei","queue":"prod","state":"succeeded","cause":null,)"
            R"("priority":60,"nodes":2,"gpus":16,"gpus_per_node":"h100:8|a100:8","cpus":32,)"
            R"("memory_bytes":2147483648,"submitted":"2026-12-01T08:00:00Z",)"
            R"("started":"2026-12-01T08:01:00Z","run_ms":61000,"lost_ms":1000,)"
            R"("time_limit_ms":3600000})"
            "\n"
            R"({"id":"8","state":"failed","cause":"user-error","submitted":"2026-12-01T08:00:00Z",)"
            R"("started":"2026-12-01T08:01:00Z","run_ms":5,"nodes":1,"gpus":0})"
            "\n"
            R"({"id":"9","state":"pending"})"
            "\n"
            R"({"id":"10","state":"running"})"
            "\n"
            R"({"id":"11","state":"cancelled","started":null})"
            "\n"
            R"({"id":"12","state":"lost"})"
            "\n"
            "{]\n",
            "history\n"
            "7 a @2026-12-01T08:00:00Z run 1m 2x8 h100|a100 wei/prod limit 1h cpus 16 mem 1GiB "
            "priority 60\n"
            "8 @2026-12-01T08:00:00Z run 5ms 1x0 user-error\n"
            "t:6: job is '{\"id\":\"12\",\"state\":\"lost\"}': not a state of a job: lost\n"
            "t:7: job is '{]': not JSON (byte 1): a JSON key must be in double quotes\n"
            "left out: 1 jobs that never started\n"
            "left out: 1 jobs that still run\n"
            "left out: 1 jobs that wait\n"},
        Row{"csv",
            "submit,duration,name,user,queue,nodes,gpus,kind,gpu_fraction,cpus,memory_gib,"
            "time_limit,end,priority\n"
            "0,60,a,wei,prod,,16,V100,,,,,,\n"
            "1.5,0,b,,,2,4,,,0.5,1.5,90,failed,7\n"
            "2,1,c,,,,1,,0.25,,,,,\n"
            "-3,1,d,,,,1,,,,,,,\n"
            "4,1,e,,,3,4,,,,,,,\n"
            "5,1,f,,,,2,,0.5,,,,,\n"
            "6,1,g,,,,1,,,,,,gone,\n"
            "2026-01-01,1,h,,,,1,,,,,,,\n",
            "csv\n"
            "a @0s run 1m 2x8 v100 wei/prod\n"
            "b @1s500ms run 0s 2x2 limit 1m30s cpus 0.5 mem 1.5GiB priority 7 user-error\n"
            "c @2s run 1s 1x1.250\n"
            "t:5: submit is '-3': below 0\n"
            "t:6: gpus is '4': not a multiple of its nodes\n"
            "t:7: gpu_fraction is '0.5': a part of more than one device\n"
            "t:8: end is 'gone': must be success, failed or oom\n"
            "t:9: submit is '2026-01-01': a date, after rows with seconds\n"},
        Row{"csv with dates", "submit,duration\n2026-01-01T00:00:00+01:00,1\n2026-01-01,1\n",
            "csv\n @2025-12-31T23:00:00Z run 1s 1x0\n @2026-01-01T00:00:00Z run 1s 1x0\n"},
        Row{"csv with a misspelt column", "submit,duration,gpu\n0,1,1\n",
            "error: t: unknown column 'gpu'; did you mean gpus?\n"},
        Row{"strict",
            "submit,duration\n0,1\nx,1\n",
            "error: t:3: submit is 'x': not a number\n",
            {.strict = true}},
        Row{"only bad rows", "submit,duration\nx,1\n", "error: t: no job to simulate\n"},
        Row{"no rows", "submit,duration\n", "error: t: no job to simulate\n"},
        Row{"empty", "", "error: t: empty, without a header\n"},
        Row{"unknown", "a,b,c\n1,2,3\n",
            "error: t: its first line is that of no known trace: 'a,b,c'\n"},
        Row{"no such format",
            "submit,duration\n0,1\n",
            "error: phily: unknown format of a trace; did you mean philly?\n",
            {.format = "phily"}}));

TEST(TraceSource, compresses_and_cuts) {
    const auto trace =
        read_trace_text("t", "submit,duration,gpus\n100,60,16\n200,60,1\n300,60,1\n", {});
    ASSERT_TRUE(trace);
    TraceSource source(*trace, {.compress = 4000, .know_durations = true, .jobs_max = 2});
    std::string got;
    while (const auto job = source.next())
        got += job->name + " " + format_duration(job->submit - kRelativeStart) + " " +
               format_duration(job->spec.expected_time) + " " + std::to_string(job->spec.nodes()) +
               "x" + std::to_string(job->spec.roles[0].devices[0].count) + "\n";
    EXPECT_EQ(got, "job-1 1m40s 1m 2x8\njob-2 2m5s 1m 1x1\n");
}

TEST(Trace, a_total_is_spread_over_the_fewest_equal_nodes) {
    const auto on = [](std::int64_t total) {
        TraceRow row;
        spread(row, total, 8);
        return std::to_string(row.nodes) + "x" + std::to_string(row.devices);
    };
    EXPECT_EQ(on(0), "1x0");
    EXPECT_EQ(on(8), "1x8");
    EXPECT_EQ(on(9), "3x3");
    EXPECT_EQ(on(12), "2x6");
    EXPECT_EQ(on(24), "3x8");
    EXPECT_EQ(on(11), "11x1");
}

/// The public traces, where MUSTER_TRACES names a folder of them.
TEST(Trace, public_files) {
    const char* folder = std::getenv("MUSTER_TRACES");
    if (folder == nullptr) GTEST_SKIP() << "MUSTER_TRACES names no folder";
    const auto profiles = read_applications(std::string(folder) + "/pollux/profiles");
    ASSERT_TRUE(profiles) << profiles.error().message;
    struct Want {
        const char* file;
        const char* format;
        std::size_t jobs;
    };
    for (const Want& want :
         {Want{"philly/philly.csv.gz", "philly", 82'247}, Want{"muri/trace1.csv", "muri", 1494},
          Want{"openb/openb_pod_list_default.csv.gz", "openb", 8152 - 897}}) {
        const auto trace = read_trace(std::string(folder) + "/" + want.file, {});
        ASSERT_TRUE(trace) << trace.error().message;
        EXPECT_EQ(trace->format, want.format);
        EXPECT_EQ(trace->rows.size(), want.jobs) << want.file;
        EXPECT_EQ(trace->bad.count, 0) << traces::text_of(trace->bad);
    }
}

}  // namespace
}  // namespace muster::simulator::traces
