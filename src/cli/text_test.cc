// Widths, tables, JSON, formats: rows of text.
#include <gtest/gtest.h>

#include "cli/format.h"
#include "cli/json.h"
#include "cli/jsonpath.h"
#include "cli/table.h"
#include "cli/width.h"

namespace muster::cli {
namespace {

struct WidthRow {
    const char* name;
    const char* text;
    std::size_t width;
    friend void PrintTo(const WidthRow& row, std::ostream* out) { *out << row.name; }
};
class Width : public testing::TestWithParam<WidthRow> {};
TEST_P(Width, columns) {
    EXPECT_EQ(display_width(GetParam().text), GetParam().width);
}
INSTANTIATE_TEST_SUITE_P(
    Rows, Width,
    testing::Values(WidthRow{"ascii", "train", 5}, WidthRow{"chinese", "训练任务", 8},
                    WidthRow{"mixed", "模型-v2", 7}, WidthRow{"combining", "e\xcc\x81", 1},
                    WidthRow{"emoji", "🚀", 2}, WidthRow{"fullwidth", "ＡＢ", 4},
                    WidthRow{"hangul", "한글", 4}, WidthRow{"bad byte", "a\xff", 2},
                    WidthRow{"zero width joiner",
                             "a\xe2\x80\x8d"
                             "b",
                             2},
                    WidthRow{"accent", "é", 1}));

TEST(Width, fit_never_halves_a_wide_character) {
    EXPECT_EQ(fit("训练任务", 8), "训练任务");
    EXPECT_EQ(fit("训练任务", 7), "训练任…");
    EXPECT_EQ(fit("训练任务", 6), "训练…");
    EXPECT_EQ(fit("train", 3), "tr…");
    EXPECT_EQ(fit("train", 0), "");
    EXPECT_EQ(fit_painted("\x1b[32mtrain\x1b[0m", 5), "\x1b[32mtrain\x1b[0m");
    EXPECT_EQ(fit_painted("\x1b[32mtrain\x1b[0m", 4), "\x1b[32mtra…\x1b[0m");
    EXPECT_EQ(fit_painted("a 训练 b", 5), "a 训…");
}

TEST(Width, names_cannot_reach_the_terminal) {
    EXPECT_EQ(printable("a\x1b[2Jb"), "a·[2Jb");
    EXPECT_EQ(printable("a\nb\tc"), "a b c");
    EXPECT_EQ(printable("a\xff"), "a\xef\xbf\xbd");
    EXPECT_EQ(printable("\xe2\x80\xae"
                        "evil"),
              "·evil");
    EXPECT_TRUE(is_printable("训练"));
}

Table sample() {
    Table table({{"JOB", true}, {"NAME", false, true}, {"STATE"}});
    const char* rows[][3] = {{"7", "llama-sft", "R running"},
                             {"12", "大模型预训练", "P pending"},
                             {"113", "a-name-that-is-far-too-long-for-here", "F failed"}};
    for (const auto& row : rows)
        for (const char* cell : row) table.add(cell);
    return table;
}

TEST(Table, aligns_chinese_names) {
    EXPECT_EQ(sample().render({}),
              "JOB  NAME                                  STATE\n"
              "  7  llama-sft                             R running\n"
              " 12  大模型预训练                          P pending\n"
              "113  a-name-that-is-far-too-long-for-here  F failed\n");
}

TEST(Table, gives_way_in_a_narrow_terminal) {
    EXPECT_EQ(sample().render({.width = 30}),
              "JOB  NAME            STATE\n"
              "  7  llama-sft       R running\n"
              " 12  大模型预训练    P pending\n"
              "113  a-name-that-i…  F failed\n");
    EXPECT_EQ(sample().render({.width = 12, .header = false}),
              "  7  llama-…\n 12  大模型…\n113  a-name…\n");
}

TEST(Json, reads_what_is_json_and_refuses_the_rest) {
    const auto document = JsonDocument::parse(
        R"( {"a":[1,-2.5e3,"x\"\u4e2d\ud83d\ude80\n"],"b":{"c":null,"d":true},"e":""} )");
    ASSERT_TRUE(document);
    const Json root = document->root();
    EXPECT_EQ(root["a"].size(), 3u);
    EXPECT_EQ(root["a"].at(1).number(), -2500);
    EXPECT_EQ(root["a"].at(2).text(), "x\"中🚀\n");
    EXPECT_EQ(root.path("a.0").integer(), 1);
    EXPECT_EQ(root.path("b.d").truth(), true);
    EXPECT_TRUE(root["b"]["c"].empty());
    EXPECT_TRUE(root["e"].empty());
    EXPECT_FALSE(root["no"]["such"].exists());
    for (const char* bad : {"", "{", "[1,]", "{\"a\"}", "tru", "\"\x01\"", "1 2", "{\"a\":1,}",
                            "[\"a]", "\\", "\"\\"})
        EXPECT_FALSE(JsonDocument::parse(bad)) << bad;
    EXPECT_FALSE(JsonDocument::parse(std::string(100'000, '[')));
}

TEST(Json, as_yaml) {
    const auto document = JsonDocument::parse(
        R"({"id":"12","name":"a: b","on":"yes","n":1.5,"empty":[],"none":null,)"
        R"("list":[{"rank":0,"node":"n1"},{"rank":1,"node":"n2"}],"run":"a\nb\n","map":{"k":{}}})");
    ASSERT_TRUE(document);
    EXPECT_EQ(to_yaml(document->root()), R"(id: "12"
name: "a: b"
"on": "yes"
"n": 1.5
empty: []
none: null
list:
  - rank: 0
    node: n1
  - rank: 1
    node: n2
run: |
  a
  b
map:
  k: {}
)");
}

struct PathRow {
    const char* name;
    const char* path;
    const char* want;
    friend void PrintTo(const PathRow& row, std::ostream* out) { *out << row.name; }
};
class JsonPath : public testing::TestWithParam<PathRow> {};
TEST_P(JsonPath, template_of) {
    const auto document = JsonDocument::parse(
        R"({"items":[{"id":"1","name":"a","tags":["x","y"]},{"id":"2","name":"b","tags":[]}]})");
    ASSERT_TRUE(document);
    const auto text = json_path(GetParam().path, document->root());
    EXPECT_EQ(text ? *text : "error: " + text.error().message, GetParam().want);
}
INSTANTIATE_TEST_SUITE_P(
    Rows, JsonPath,
    testing::Values(
        PathRow{"wildcard", "{.items[*].name}", "a b"}, PathRow{"index", "{.items[1].id}", "2"},
        PathRow{"negative", "{.items[-1].id}", "2"}, PathRow{"bare", ".items[0].tags[*]", "x y"},
        PathRow{"quoted", "{.items[0]['name']}", "a"},
        PathRow{"range", "{range .items[*]}{.id}{\"\\t\"}{.name}{\"\\n\"}{end}", "1\ta\n2\tb\n"},
        PathRow{"missing", "{.nothing}", ""},
        PathRow{"unclosed", "{.items[*}", "error: jsonpath '{.items[*}': a ']' is missing"},
        PathRow{"no end", "{range .items[*]}{.id}",
                "error: jsonpath '{range .items[*]}{.id}': {range} without {end}"}));

TEST(Format, host_lists) {
    EXPECT_EQ(host_list({"n1", "n2", "n3"}), "n[1-3]");
    EXPECT_EQ(host_list({"n9", "n10", "n11", "x"}), "n[9-11],x");
    EXPECT_EQ(host_list({"gpu001", "gpu003", "gpu002", "gpu010"}), "gpu[001-003,010]");
    EXPECT_EQ(host_list({"a-b-c7"}), "a-b-c7");
    EXPECT_EQ(host_list({"b", "a"}), "a,b");
}

TEST(Format, times_and_sizes) {
    const auto moment = [](const char* text) {
        const auto document = JsonDocument::parse("\"" + std::string(text) + "\"");
        return moment_of(document->root()).ms;
    };
    EXPECT_EQ(moment("1970-01-01T00:00:01.500Z"), 1500);
    EXPECT_EQ(moment("2026-12-01T08:00:00Z"), 1'796'112'000'000);
    EXPECT_EQ(moment("nonsense"), 0);
    EXPECT_EQ(length_text(850), "850ms");
    EXPECT_EQ(length_text(31'240), "31.2s");
    EXPECT_EQ(length_text(72'000), "1m12s");
    EXPECT_EQ(length_text(3'900'000), "1h05m");
    EXPECT_EQ(length_text(2 * 86'400'000LL), "2d00h");
    EXPECT_EQ(bytes_text(1536), "1.5KiB");
    EXPECT_EQ(bytes_text(64LL << 30), "64GiB");
    EXPECT_EQ(grouped(1234567), "1,234,567");
    EXPECT_EQ(metric_text(0.31234), "0.3123");
    EXPECT_EQ(metric_text(8123.4), "8123");
    EXPECT_EQ(metric_text(1e-5), "1.00e-05");
    EXPECT_EQ(bar(0.5, 4), "██░░");
    EXPECT_EQ(bar(0.3125, 4), "█▎░░");
}

}  // namespace
}  // namespace muster::cli
