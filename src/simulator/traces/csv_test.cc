#include "simulator/traces/csv.h"

#include <filesystem>
#include <fstream>

#include <zlib.h>

#include <gtest/gtest.h>

namespace muster::simulator::traces {
namespace {

/// All fields of all good rows: fields with '|', rows with a line's end.
std::string read(std::string text, CsvOptions options = {}) {
    auto file = CsvFile::of_text("t.csv", std::move(text), std::move(options));
    if (!file) return file.error().message;
    std::string out;
    const auto status = file->each([&](CsvRow& row) {
        for (std::size_t i = 0; i < file->columns().size(); ++i)
            out += (i == 0 ? "" : "|") + std::string(row.text(i));
        out += '\n';
    });
    return (status ? out : status.error().message) + text_of(file->bad());
}

struct Row {
    std::string name, text, want;
    CsvOptions options = {};
};
void PrintTo(const Row& row, std::ostream* out) {
    *out << row.name;
}
class CsvText : public testing::TestWithParam<Row> {};

TEST_P(CsvText, splits) {
    EXPECT_EQ(read(GetParam().text, GetParam().options), GetParam().want);
}
INSTANTIATE_TEST_SUITE_P(
    Rows, CsvText,
    testing::Values(Row{"plain", "a,b\n1,2\n3,4\n", "1|2\n3|4\n"},
                    Row{"no_newline_at_the_end", "a,b\n1,2", "1|2\n"},
                    Row{"carriage_returns", "a,b\r\n1,2\r\n", "1|2\n"},
                    Row{"byte_order_mark",
                        "\xef\xbb\xbf"
                        "a,b\n1,2\n",
                        "1|2\n"},
                    Row{"blank_lines", "a,b\n\n1,2\n   \n", "1|2\n"},
                    Row{"empty_fields", "a,b\n,\n1,\n", "|\n1|\n"},
                    Row{"quotes", "a,b\n\"1,5\",\"say \"\"so\"\"\"\n\"\",\"two\nlines\"\n",
                        "1,5|say \"so\"\n|two\nlines\n"},
                    Row{"quoted_in_a_single_column", "a\n\"\"\nx\n", "\nx\n"},
                    Row{"too_few", "a,b\n1\n3,4\n", "3|4\nt.csv:2: 1 fields, the header has 2\n"},
                    Row{"too_many", "a,b\n1,2,3\n", "t.csv:2: 3 fields, the header has 2\n"},
                    Row{"an_open_quote", "a,b\n1,\"2\n3,4\n", "t.csv:2: a quote is not closed\n"},
                    Row{"lines_are_those_of_the_file", "a,b\n\"x\ny\",2\n1\n",
                        "x\ny|2\nt.csv:4: 1 fields, the header has 2\n"},
                    Row{"empty", "", "t.csv: empty, without a header"},
                    Row{"header_only", "a,b\n", ""},
                    Row{"cut_rows", "a,b\n1\n", "1|\n", {.may_be_cut = true}},
                    Row{"bars", "a|b\n1,0|2\n", "1,0|2\n", {.separator = '|'}},
                    Row{"blanks_and_comments",
                        "; c\n  1   2\n;\n3\t4  \n",
                        "1|2\n3|4\n",
                        {.separator = ' ', .comment = ';', .header = "a b"}},
                    Row{"strict",
                        "a,b\n1\n3,4\n",
                        "t.csv:2: 1 fields, the header has 2t.csv:2: 1 fields, the header has 2\n",
                        {.strict = true}}),
    [](const auto& row) { return row.param.name; });

std::string number(const std::string& how, const std::string& text) {
    auto file = CsvFile::of_text("t.csv", "x,y\n" + text + ",\n");
    std::string out;
    EXPECT_TRUE(file->each([&](CsvRow& row) {
        if (how == "integer") out = std::to_string(row.integer(0, -5, 100));
        if (how == "thousandths") out = std::to_string(row.thousandths(0, 10'000'000));
        if (how == "decimal") out = std::to_string(row.decimal(0));
        if (!row.ok()) out.clear();
    }));
    return file->bad().first.empty() ? out : file->bad().first[0].reason;
}

TEST(Csv, numbers) {
    EXPECT_EQ(number("integer", "42"), "42");
    EXPECT_EQ(number("integer", " 42 "), "42");
    EXPECT_EQ(number("integer", "-5"), "-5");
    EXPECT_EQ(number("integer", "-6"), "below -5");
    EXPECT_EQ(number("integer", "101"), "above 100");
    EXPECT_EQ(number("integer", "4.0"), "not a whole number");
    EXPECT_EQ(number("integer", "0x4"), "not a whole number");
    EXPECT_EQ(number("integer", ""), "a whole number is missing");
    EXPECT_EQ(number("integer", "9223372036854775808"), "too large a number");
    EXPECT_EQ(number("thousandths", "1.5"), "1500");
    EXPECT_EQ(number("thousandths", "0.0005"), "1");
    EXPECT_EQ(number("thousandths", "66.0"), "66000");
    EXPECT_EQ(number("thousandths", "-0.1"), "below 0");
    EXPECT_EQ(number("thousandths", "1e30"), "above 10000");
    EXPECT_EQ(number("decimal", "1e3"), "1000.000000");
    EXPECT_EQ(number("decimal", "nan"), "not a number");
    EXPECT_EQ(number("decimal", "inf"), "not a number");
}

TEST(Csv, a_missing_column_is_named_with_those_there_are) {
    const auto file = CsvFile::of_text("t.csv", "a,b\n1,2\n");
    ASSERT_TRUE(file);
    EXPECT_EQ(*file->column("b"), 1u);
    EXPECT_FALSE(file->find("c").has_value());
    EXPECT_EQ(file->column("c").error().message, "t.csv: no column 'c'; there are: a, b");
}

TEST(Csv, the_first_bad_rows_are_kept_and_all_are_counted) {
    std::string text = "a\n";
    for (int i = 0; i < 50; ++i) text += "x\n";
    auto file = CsvFile::of_text("t.csv", text);
    ASSERT_TRUE(file->each([](CsvRow& row) { row.integer(0); }));
    EXPECT_EQ(file->bad().count, 50);
    ASSERT_EQ(file->bad().first.size(), BadRows::kKept);
    EXPECT_EQ(file->bad().first[0], (BadRow{2, "a", "x", "not a whole number"}));
    EXPECT_TRUE(text_of(file->bad()).ends_with("t.csv: 30 more bad rows\n"));
}

TEST(Csv, files) {
    const auto folder = std::filesystem::path(testing::TempDir());
    const auto plain = folder / "muster_csv_test.csv", packed = folder / "muster_csv_test.csv.gz";
    const std::string text = "a,b\n" + std::string(100'000, '7') + ",2\n";
    std::ofstream(plain) << text;
    const gzFile out = gzopen(packed.c_str(), "wb");
    ASSERT_EQ(gzwrite(out, text.data(), static_cast<unsigned>(text.size())),
              static_cast<int>(text.size()));
    gzclose(out);
    for (const auto& path : {plain, packed}) {
        auto file = CsvFile::open(path);
        ASSERT_TRUE(file) << path;
        std::size_t length = 0;
        ASSERT_TRUE(file->each([&](CsvRow& row) { length += row.text(0).size(); }));
        EXPECT_EQ(length, 100'000u);
    }
    std::filesystem::resize_file(packed, std::filesystem::file_size(packed) / 2);
    EXPECT_EQ(CsvFile::open(packed).error().code, Code::Corrupt);
    EXPECT_EQ(CsvFile::open(folder / "muster_no_such.csv").error().code, Code::NotFound);
    std::filesystem::resize_file(plain, 0);
    EXPECT_EQ(CsvFile::open(plain).error().code, Code::Invalid);
    EXPECT_EQ(CsvFile::open(folder).error().code, Code::Corrupt) << "a folder";
    std::filesystem::remove(plain);
    std::filesystem::remove(packed);
}

}  // namespace
}  // namespace muster::simulator::traces
