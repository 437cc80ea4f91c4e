#include "simulator/traces/gavel.h"

#include <filesystem>
#include <fstream>

namespace muster::simulator::traces {
namespace {

struct Row {
    std::string name, text, want;
};
void PrintTo(const Row& row, std::ostream* out) {
    *out << row.name;
}
class Speeds : public testing::TestWithParam<Row> {};
TEST_P(Speeds, are_read) {
    const auto table = read_throughputs_text("t.json", GetParam().text);
    std::string got;
    if (table) {
        for (const std::string& kind : table->kinds())
            got += kind + " " + std::to_string(table->steps_per_s(kind, "LM (batch size 5)", 2)) +
                   "\n";
    } else {
        got = table.error().message;
    }
    EXPECT_EQ(got, GetParam().want);
}
INSTANTIATE_TEST_SUITE_P(
    Rows, Speeds,
    testing::Values(
        Row{"alone_only",
            R"j({"k80": {"('LM (batch size 5)', 2)": {"null": 2.5, "('A3C', 1)": [1, 2]}}})j",
            "k80 2.500000\n"},
        Row{"what_was_not_measured_is_0",
            R"j({"k80": {"('LM (batch size 5)', 2)": {"null": 2}},
                 "v100": {"('A3C', 1)": {"null": 1}}})j",
            "k80 2.000000\nv100 0.000000\n"},
        Row{"spread_out_is_left_out",
            R"j({"k80_unconsolidated": {"('LM (batch size 5)', 2)": {"null": 2}}})j", ""},
        Row{"a_bad_key", R"j({"k80": {"LM": {"null": 2}}})j",
            "t.json: 'k80', \"LM\" is not of the form \"('type', devices)\""},
        Row{"a_bad_count", R"j({"k80": {"('LM', 0)": {"null": 2}}})j",
            "t.json: 'k80', \"('LM', 0)\" is not of the form \"('type', devices)\""},
        Row{"no_speed", R"j({"k80": {"('LM', 1)": {}}})j",
            "t.json: 'k80', \"('LM', 1)\" has no \"null\" with its steps a second alone"},
        Row{"below_0", R"j({"k80": {"('LM', 1)": {"null": -1}}})j",
            "t.json: 'k80', \"('LM', 1)\" has no \"null\" with its steps a second alone"},
        Row{"not_json", "{", "t.json: not JSON at byte 1: Missing a name for object member."},
        Row{"not_an_object", "[]", "t.json: not an object of kinds"},
        Row{"a_kind_that_is_none", R"j({"k80": 1})j", "t.json: 'k80' is not an object of types"}));

TEST(GavelStream, arrivals_follow_the_draws_of_those_before) {
    const std::string path = std::filesystem::path(testing::TempDir()) / "gavel_stream.csv";
    std::ofstream(path) << "job_id,job_type,scale_factor,total_steps,v100_duration_s,"
                           "unit_exp_interarrival\n"
                           "0,A3C,1,10.5,1,0.5\n1,LM,2,20,1,1.5\n2,LM,0,20,1,9\n3,LM,1,5,1,1\n";
    const auto stream = read_gavel_stream(path);
    std::filesystem::remove(path);
    ASSERT_TRUE(stream) << stream.error().message;
    ASSERT_EQ(stream->jobs.size(), 3u);
    EXPECT_EQ(stream->bad.count, 1);
    EXPECT_EQ(stream->jobs[0].steps, 10.5);
    EXPECT_EQ(stream->jobs[1].devices, 2);
    EXPECT_EQ(stream->arrivals(2), (std::vector<double>{0, 900, 900 + 10.5 * 1800}));
}

}  // namespace
}  // namespace muster::simulator::traces
