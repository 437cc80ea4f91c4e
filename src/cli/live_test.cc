// What redraws in place: the panel, the bar, the line of ranks; and lines of output with prefixes.
#include <gtest/gtest.h>

#include "cli/job_view.h"
#include "cli/log_printer.h"
#include "cli/panel.h"

namespace muster::cli {
namespace {

TEST(Panel, text_scrolls_above_and_the_panel_leaves_no_trace) {
    Output out(-1), err(-1);
    Panel panel(out, err, true);
    panel.draw({"job 7", "bar"});
    EXPECT_EQ(err.kept(), "\rjob 7\x1b[K\nbar\x1b[K\n\x1b[J\x1b[2A");
    panel.draw({"job 7", "bar"});  // Nothing new, nothing written.
    EXPECT_EQ(err.kept().size(), 24u);
    panel.print("line\n");
    EXPECT_TRUE(err.kept().ends_with("\r\x1b[J"));
    EXPECT_EQ(out.kept(), "line\n");
    panel.draw({"job 7", "bar"});
    panel.close();
    EXPECT_TRUE(err.kept().ends_with("\x1b[2A\r\x1b[J"));
}

TEST(Panel, without_a_terminal_only_text) {
    Output out(-1), err(-1);
    Panel panel(out, err, false);
    panel.draw({"job 7"});
    panel.note("said");
    EXPECT_EQ(err.kept(), "said\n");
}

JobView sample() {
    const auto document = JsonDocument::parse(R"({"id":"7","name":"digits","state":"running",
      "nodes":3,"gpus_per_node":"h100:8","since":"2026-12-01T07:59:00.000Z","attempt":1,"faults":1,
      "progress":{"step":412,"total":800,"metrics":{"accuracy":0.91,"samples_per_s":8123.4,"loss":0.31234}},
      "ranks":[{"rank":0,"node":"n1","state":"running","node_state":"ready","progress":{"step":412}},
      {"rank":1,"node":"n2","state":"running","node_state":"suspect","progress":{"step":409}},
      {"rank":2,"node":"n4","state":"pulling","pulled_bytes":50,"pull_total_bytes":200,"node_state":"ready"}]})");
    return job_view(document->root());
}

TEST(LiveView, lines_of_a_job) {
    const JobView job = sample();
    EXPECT_EQ(header_line(job, Time{1'796'112'000'000}, false),
              "job 7 digits  R running 1m00s  3 nodes × h100:8  attempt 1  1 fault");
    EXPECT_EQ(progress_line(job, 10, 100, false),
              "████████████▉░░░░░░░░░░░░  412/800  51%  loss 0.3123  8,123 samples/s  "
              "accuracy 0.91  ETA 38.0s");
    EXPECT_EQ(progress_line(job, 0, 60, false),
              "███████▋░░░░░░░  412/800  51%  loss 0.3123  8,123 samples/s");
    EXPECT_EQ(progress_words(job, 10),
              "step 412/800 (51%), loss 0.3123, 8,123 samples/s, accuracy 0.91, 38.0s left");
    EXPECT_EQ(rank_line(job, 80, false), "0 R n1 412 · 1 silent n2 409 · 2 I n4 image 25%");
    EXPECT_EQ(rank_line(job, 30, false), "3 ranks:  I×1  R×1  silent×1  slowest 1 n2 at 409");
}

TEST(LogPrinter, whole_lines_and_bars_that_redraw_themselves) {
    LogPrinter printer({.by_line = true});
    printer.set_ranks(2);
    EXPECT_EQ(printer.take(0, "a\nb"), "[0] a\n");
    EXPECT_EQ(printer.take(1, "10%\r20%\r\n"), "[1] 20%\n");
    EXPECT_EQ(printer.take(0, "c\n"), "[0] bc\n");
    EXPECT_EQ(printer.take(0, "open"), "");
    EXPECT_EQ(printer.rest(), "[0] open\n");
    LogPrinter plain({.by_line = false});
    plain.set_ranks(1);
    EXPECT_EQ(plain.take(0, "no end"), "no end");
}

TEST(ExitCode, of_a_job) {
    const auto code = [](const char* json) {
        const auto document = JsonDocument::parse(json);
        return job_exit_code(job_view(document->root()));
    };
    EXPECT_EQ(code(R"({"state":"succeeded","exit_code":0})"), 0);
    EXPECT_EQ(code(R"({"state":"failed","exit_code":42})"), 42);
    EXPECT_EQ(code(R"({"state":"failed","ranks":[{"rank":0,"signal":11}]})"), 139);
    EXPECT_EQ(code(R"x({"state":"failed","signal":9,"message":"ended by signal 9 (SIGKILL)"})x"), 137);
    EXPECT_EQ(code(R"({"state":"cancelled"})"), 1);
}

}  // namespace
}  // namespace muster::cli
