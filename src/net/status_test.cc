#include "net/status.h"

#include <gtest/gtest.h>

namespace muster::net {
namespace {

struct Row {
    const char* name;
    Code code;
    int http;
    int grpc;
};
void PrintTo(const Row& row, std::ostream* out) {
    *out << row.name;
}

constexpr Row kRows[] = {
    {"invalid", Code::Invalid, 400, 3},     {"unauthenticated", Code::Unauthenticated, 401, 16},
    {"denied", Code::Denied, 403, 7},       {"not-found", Code::NotFound, 404, 5},
    {"conflict", Code::Conflict, 409, 10},  {"precondition", Code::Precondition, 412, 9},
    {"gone", Code::Gone, 410, 11},          {"too-large", Code::TooLarge, 413, 8},
    {"exhausted", Code::Exhausted, 429, 8}, {"unavailable", Code::Unavailable, 503, 14},
    {"no-space", Code::NoSpace, 507, 8},    {"corrupt", Code::Corrupt, 500, 15},
    {"internal", Code::Internal, 500, 13},
};

class StatusTable : public ::testing::TestWithParam<Row> {};

TEST_P(StatusTable, EveryCodeHasAnHttpAndAGrpcStatus) {
    const Row& row = GetParam();
    EXPECT_EQ(http_status(row.code), row.http);
    EXPECT_EQ(grpc_status(row.code), row.grpc);
    EXPECT_STRNE(http_reason(row.http), "");
    if (row.code != Code::Corrupt) EXPECT_EQ(code_of_http(row.http), row.code);
    if (row.grpc != 8) EXPECT_EQ(code_of_grpc(row.grpc), row.code);
}
INSTANTIATE_TEST_SUITE_P(Rows, StatusTable, ::testing::ValuesIn(kRows));

TEST(Status, StatusesWithoutACodeOfTheirOwnHaveTheNearest) {
    EXPECT_EQ(code_of_http(422), Code::Invalid);
    EXPECT_EQ(code_of_http(431), Code::TooLarge);
    EXPECT_EQ(code_of_http(502), Code::Unavailable);
    EXPECT_EQ(code_of_http(599), Code::Internal);
    EXPECT_EQ(code_of_grpc(8), Code::Exhausted);
    EXPECT_EQ(code_of_grpc(4), Code::Unavailable);
    EXPECT_EQ(code_of_grpc(99), Code::Internal);
}

TEST(Status, AProblemSaysWhatWhyAndWhatToDo) {
    EXPECT_EQ(problem_json(Error{.code = Code::Conflict,
                                 .message = "job 7 has ended",
                                 .cause = "it \"failed\"",
                                 .fix = "submit it again",
                                 .number = 1203}),
              R"({"type":"about:blank","title":"Conflict","status":409,"detail":"job 7 has ended",)"
              R"("cause":"it \"failed\"","fix":"submit it again","code":"E1203"})");
    EXPECT_EQ(problem_json(Error{.message = "x"}, 431),
              R"({"type":"about:blank","title":"Request Header Fields Too Large","status":431,)"
              R"("detail":"x"})");
}

}  // namespace
}  // namespace muster::net
