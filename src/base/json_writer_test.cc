#include "base/json_writer.h"

#include <limits>

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(JsonWriter, nests_and_separates) {
    JsonWriter json;
    json.begin_object().field("id", 7).key("tags").begin_array().value("a").value(true).null();
    json.end_array().key("in").begin_object().end_object().field("x", -1.5).end_object();
    EXPECT_EQ(json.text(), R"({"id":7,"tags":["a",true,null],"in":{},"x":-1.5})");
}

TEST(JsonWriter, escapes) {
    struct Row {
        const char* name;
        std::string text;
        const char* want;
    };
    const Row rows[] = {
        {"plain", "abc", "\"abc\""},
        {"quotes", "a\"b\\c", R"("a\"b\\c")"},
        {"control", std::string("\n\t\x01\x00", 4), R"("\n\t\u0001\u0000")"},
        {"chinese", "训练", "\"训练\""},
        {"bad_utf8", "a\xffz", "\"a\xef\xbf\xbdz\""},
        {"overlong", "\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
        {"cut_off", "\xe4\xb8", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
    };
    for (const Row& row : rows) EXPECT_EQ(json_quote(row.text), row.want) << row.name;
}

TEST(JsonWriter, extreme_numbers) {
    JsonWriter json;
    json.begin_array().value(std::numeric_limits<std::int64_t>::min());
    json.value(std::numeric_limits<std::uint64_t>::max());
    json.value(std::numeric_limits<double>::infinity()).end_array();
    EXPECT_EQ(json.text(), "[-9223372036854775808,18446744073709551615,null]");
}

}  // namespace
}  // namespace muster
