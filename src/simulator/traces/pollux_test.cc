#include "simulator/traces/pollux.h"

#include <filesystem>
#include <fstream>

namespace muster::simulator::traces {
namespace {

namespace fs = std::filesystem;

class PolluxFiles : public testing::Test {
protected:
    PolluxFiles() {
        fs::create_directories(folder());
        write("placements.csv",
              "placement,local_bsz,step_time,sync_time\n1,4,0.5,0\n1,8,0.7,0\n12,4,0.6,0.1\n");
        write("scalability.csv",
              "num_nodes,num_replicas,local_bsz,step_time,sync_time\n"
              "6,6,4,1,0.5\n6,12,8,1.2,0.5\n8,16,4,1.4,0.5\n");
        write("validation-4.csv", "progress,iteration,metric,grad_sqr,grad_var\n10,10,0.5,1,2\n");
        write("validation-16.csv", "progress,iteration,metric,grad_sqr,grad_var\n9,3,0.5,1,2\n");
    }
    ~PolluxFiles() override { fs::remove_all(root_); }
    std::string folder() const { return root_ / "toy"; }
    void write(const std::string& name, const std::string& text) {
        std::ofstream(fs::path(folder()) / name) << text;
    }
    std::string error() {
        const auto read = read_application(folder());
        return read ? "read" : read.error().message.substr(folder().size() + 1);
    }
    fs::path root_ =
        fs::path(testing::TempDir()) /
        ("pollux_files_" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) +
         ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(PolluxFiles, make_applications) {
    const auto all = read_applications(root_);
    ASSERT_TRUE(all) << all.error().message;
    ASSERT_EQ(all->size(), 1u);
    const auto& toy = all->at("toy");
    EXPECT_EQ(toy.batch_min(), 4);
    EXPECT_EQ(toy.batch_max(), 16);
    EXPECT_EQ(toy.local_max(), 8);
    EXPECT_EQ(toy.progress_after(0), 9);
    EXPECT_EQ(toy.step_time({2, 1}, 4)->step_s, 0.6);
}

TEST_F(PolluxFiles, faults_name_file_and_line) {
    write("placements.csv", "placement,local_bsz,step_time,sync_time\n1,4,0.5,0\n1x,4,0.5,0\n");
    EXPECT_EQ(error(), "placements.csv:3: placement is '1x': not a digit of devices for each node");
    write("placements.csv", "placement,local_bsz,step_time\n1,4,0.5\n");
    EXPECT_NE(error().find("sync_time"), std::string::npos) << error();
    write("placements.csv", "placement,local_bsz,step_time,sync_time\n1,4,-0.5,0\n");
    EXPECT_NE(error().find("placements.csv:2: step_time is '-0.5'"), std::string::npos) << error();
}

TEST_F(PolluxFiles, progress_must_grow) {
    write("validation-4.csv",
          "progress,iteration,metric,grad_sqr,grad_var\n10,1,0,1,2\n10,1,0,1,2\n");
    EXPECT_EQ(error(), "validation-4.csv:3: progress is '10': not above that of the epoch before");
}

TEST_F(PolluxFiles, names_carry_batch_sizes) {
    write("validation-x.csv", "progress\n");
    EXPECT_EQ(error(), "validation-x.csv: no batch size in its name");
}

TEST_F(PolluxFiles, workloads_tell_their_bad_rows) {
    write("w.csv",
          "name,time,application,num_replicas,batch_size\na,5,toy,1,4\nb,4,toy,1,4\n"
          "c,6,toy,0,4\nd,7,toy,2,16\n");
    const auto workload = read_pollux_workload(folder() + "/w.csv");
    ASSERT_TRUE(workload);
    ASSERT_EQ(workload->jobs.size(), 2u);
    EXPECT_EQ(workload->jobs[1].name, "d");
    EXPECT_EQ(workload->bad.count, 2);
    EXPECT_EQ(workload->bad.first[0].reason, "earlier than the row before");
    EXPECT_EQ(workload->bad.first[1].column, "num_replicas");
}

TEST_F(PolluxFiles, a_folder_that_is_not_there) {
    const auto read = read_applications(folder() + "/none");
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, Code::NotFound);
}

}  // namespace
}  // namespace muster::simulator::traces
