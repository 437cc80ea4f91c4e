#include "simulator/traces/zeus.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace muster::simulator::traces {
namespace {

std::string file_of(const std::string& name, const std::string& text) {
    const auto path = std::filesystem::path(testing::TempDir()) / name;
    std::ofstream(path) << text;
    return path;
}

TEST(Zeus, epochs_and_runs) {
    const auto epochs = read_zeus_epochs(
        file_of("muster_zeus_epochs.csv",
                "dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power\n"
                "d,n,32,adam,100,11.5,86.25\nd,n,32,adam,100,-1,86\nd,n,0,adam,100,1,86\n"));
    ASSERT_TRUE(epochs) << epochs.error().message;
    ASSERT_EQ(epochs->epochs.size(), 1u);
    EXPECT_EQ(epochs->epochs[0].seconds, 11.5);
    EXPECT_EQ(epochs->epochs[0].watts, 86.25);
    ASSERT_EQ(epochs->bad.count, 2);
    EXPECT_EQ(epochs->bad.first[0].column, "time_per_epoch");
    EXPECT_EQ(epochs->bad.first[1].column, "batch_size");
    const auto runs = read_zeus_runs(file_of(
        "muster_zeus_runs.csv",
        "dataset,network,batch_size,optimizer,learning_rate,run,target_metric,target_epoch\n"
        "d,n,32,adam,1e-1,1,0.05,3\nd,n,32,adam,1e-1,1,0.9,nan\n"));
    ASSERT_TRUE(runs) << runs.error().message;
    ASSERT_EQ(runs->runs.size(), 1u) << "the other did not get there";
    EXPECT_EQ(runs->runs[0].epochs, 3);
    EXPECT_EQ(runs->bad.count, 0);
}

}  // namespace
}  // namespace muster::simulator::traces
