#include "base/error_codes.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(ErrorCodes, rise_and_say_what_to_do) {
    int last = 0;
    for (const ErrorCode& entry : error_codes()) {
        EXPECT_GT(entry.number, last);
        last = entry.number;
        for (const std::string_view text : {entry.title, entry.meaning, entry.fix}) {
            EXPECT_FALSE(text.empty()) << entry.number;
        }
        EXPECT_EQ(find_error_code(entry.number), &entry);
        EXPECT_EQ(parse_error_number(error_name(entry.number)), entry.number);
    }
}

TEST(ErrorCodes, are_read_as_people_write_them) {
    EXPECT_EQ(parse_error_number("E1203"), 1203);
    EXPECT_EQ(parse_error_number("e1203"), 1203);
    EXPECT_EQ(parse_error_number("1203"), 1203);
    for (const char* text : {"", "E", "E12", "E12034", "F1203", "E12x3", "E-123"}) {
        EXPECT_EQ(parse_error_number(text), 0) << text;
    }
}

TEST(ErrorCodes, fill_in_code_and_fix) {
    const Error error = numbered(errors::kJobNotFound, "job 12: not found");
    EXPECT_EQ(error.code, Code::NotFound);
    EXPECT_EQ(error.fix, "See `muster ps --all`.");
    EXPECT_EQ(numbered(errors::kJobNotFound, "m", "c", "f").fix, "f");
    EXPECT_EQ(number_of(error), 3001);
    EXPECT_EQ(number_of(Error{.code = Code::NoSpace, .message = "full"}), errors::kDiskFull);
}

TEST(ErrorCodes, page_is_up_to_date) {
    const std::string path = std::string(MUSTER_SOURCE_DIR) + "/docs/errors.md";
    if (std::getenv("UPDATE") != nullptr) std::ofstream(path) << errors_page();
    std::ostringstream page;
    page << std::ifstream(path).rdbuf();
    EXPECT_EQ(page.str(), errors_page()) << "run this test with UPDATE=1 to rewrite docs/errors.md";
}

}  // namespace
}  // namespace muster
