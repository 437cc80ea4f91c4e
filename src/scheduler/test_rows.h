// Plans as rows of text: a cluster, a moment, and what must come.
#pragma once

#include "scheduler/test_cluster.h"

namespace muster::scheduler {

struct Row {
    const char* name;
    const char* world;
    const char* plan;
    std::int64_t now = 1000;
    std::uint64_t ask = 0;  // Whose reason; 0: nobody's.
    const char* why = "";
    friend void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }
};

/// The plan and the reason are the row's; an index made anew is as this one is (F6).
inline void come_out_right(const Row& row) {
    Cluster cluster(row.world);
    EXPECT_EQ(Cluster::text_of(cluster.step({row.now})), row.plan);
    if (row.ask != 0) EXPECT_EQ(cluster.why(row.ask, {row.now}), row.why);
    EXPECT_EQ(cluster.anew().digest(), cluster.index.digest());
}

}  // namespace muster::scheduler
