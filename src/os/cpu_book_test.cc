#include "os/cpu_book.h"

#include <gtest/gtest.h>

#include "os/cpu_list.h"

namespace muster::os {
namespace {

protocol::TaskKey key(std::uint64_t job) {
    return {.job = JobId{job}};
}

struct Row {
    const char* name;
    std::vector<std::pair<std::int64_t, std::vector<int>>> asks;  // CPUs, NUMA nodes of devices.
    std::vector<std::string> want;                                // "": not bound.
    const char* floating;
};
void PrintTo(const Row& row, std::ostream* out) {
    *out << row.name;
}

// Two NUMA nodes of four CPUs each, in the way of hyper-threads: 0-1,4-5 and 2-3,6-7.
class CpuBooks : public testing::TestWithParam<Row> {};
TEST_P(CpuBooks, binds_near_the_devices_and_nothing_twice) {
    CpuBook book;
    book.set_node(*parse_cpu_list("0-7"), {{0, "0-1,4-5"}, {1, "2-3,6-7"}});
    for (std::size_t i = 0; i < GetParam().asks.size(); ++i) {
        const auto& [count, numa] = GetParam().asks[i];
        std::vector<model::Device> devices;
        for (const int node : numa) devices.push_back({.id = "D", .numa = node});
        EXPECT_EQ(format_cpu_list(book.bind(key(i + 1), count, devices)), GetParam().want[i]);
        EXPECT_EQ(book.bound(key(i + 1)), !GetParam().want[i].empty());
    }
    EXPECT_EQ(format_cpu_list(book.floating()), GetParam().floating);
}
INSTANTIATE_TEST_SUITE_P(
    Rows, CpuBooks,
    testing::Values(
        Row{"nothing", {}, {}, "0-7"}, Row{"near_one_device", {{2, {1}}}, {"2-3"}, "0-1,4-7"},
        Row{"near_each_in_proportion", {{4, {0, 0, 0, 1}}}, {"0-2,4"}, "3,5-7"},
        Row{"by_halves", {{4, {0, 1}}}, {"0-3"}, "4-7"},
        Row{"beyond_what_is_near", {{6, {1}}}, {"0-3,6-7"}, "4-5"},
        Row{"the_second_gets_others", {{3, {0}}, {3, {0}}}, {"0-1,4", "2-3,5"}, "6-7"},
        Row{"unknown_numa", {{2, {-1}}, {2, {9}}}, {"0-1", "4-5"}, "2-3,6-7"},
        Row{"without_devices_the_tightest_fit",
            {{3, {0}}, {1, {}}, {4, {}}},
            {"0-1,4", "5", "2-3,6-7"},
            "0-7"},
        Row{"over_two_nodes_when_it_must", {{1, {0}}, {5, {}}}, {"0", "1-3,6-7"}, "4-5"},
        Row{"too_many_float", {{6, {}}, {3, {}}, {2, {}}}, {"0-5", "", "6-7"}, "0-7"}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(CpuBook, gives_back_and_takes_over) {
    CpuBook book;
    book.set_node({3, 2, 1, 0}, {});
    const std::uint64_t before = book.revision();
    book.adopt(key(1), {0, 1});
    EXPECT_NE(book.revision(), before);
    EXPECT_EQ(book.bind(key(2), 2, {}), (std::vector<int>{2, 3}));
    book.release(key(1));
    EXPECT_EQ(book.bind(key(2), 1, {}), (std::vector<int>{0})) << "its old ones are free first";
    EXPECT_EQ(book.floating(), (std::vector<int>{1, 2, 3}));
    const std::uint64_t now = book.revision();
    book.release(key(7));
    EXPECT_EQ(book.revision(), now) << "nothing changed";
}

TEST(CpuBook, binds_whole_cpus_where_it_pays) {
    struct {
        std::int64_t cpus;
        bool devices, exclusive;
        std::int64_t want;
    } const rows[] = {{0, true, true, 0},      {500, true, false, 0},  {1000, false, false, 0},
                      {1000, true, false, 1},  {1000, false, true, 1}, {1500, true, false, 0},
                      {2000, false, false, 2}, {2500, false, false, 0}};
    for (const auto& row : rows) {
        protocol::StartTask order;
        order.cpus = MilliCpu{row.cpus};
        if (row.devices) order.devices = {"D"};
        EXPECT_EQ(cpus_to_bind(order, row.exclusive), row.want) << row.cpus;
    }
}

}  // namespace
}  // namespace muster::os
