#include "simulator/reference/muri_world.h"

#include <algorithm>
#include <bit>

namespace muster::simulator::reference {
namespace {

struct Overhead {
    std::string_view model;
    std::array<double, 6> seconds;  // On 1, 2, 4, 8, 16, 32 GPUs.
};
constexpr std::array<Overhead, 8> kOverheads = {{
    {"vgg16", {7, 7, 8, 9, 9, 10}},
    {"vgg19", {7, 7, 8, 9, 10, 10}},
    {"resnet18", {4, 5, 5, 7, 7, 7}},
    {"shufflenet_v2_x1_0", {4, 4, 5, 5, 7, 8}},
    {"bert", {10, 10, 10, 10, 10, 10}},
    {"gpt2", {10, 10, 10, 10, 10, 10}},
    {"a2c", {38, 39, 39, 46, 46, 46}},
    {"dqn", {5, 5, 6, 6, 8, 8}},
}};

}  // namespace

double muri_overhead(std::string_view model, std::int64_t gpus) {
    const auto at = std::ranges::find(kOverheads, model, &Overhead::model);
    if (at == kOverheads.end() || gpus < 1) return 0;
    const auto step =
        static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(gpus))) - 1;
    return at->seconds[std::min(step, at->seconds.size() - 1)];
}

std::vector<QueueingJob> muri_jobs(std::span<const traces::MuriJob> jobs) {
    std::vector<QueueingJob> out;
    for (const traces::MuriJob& job : jobs) {
        QueueingJob& to = out.emplace_back();
        to.gpus = job.gpus;
        to.submit = static_cast<double>(job.submit_ms) / 1000;
        to.iterations = static_cast<double>(job.iterations);
        to.iteration_seconds = static_cast<double>(job.iteration_ms) *
                               (static_cast<double>(traces::kMuriSlowdown) / 1000) / 1000;
        to.overhead = muri_overhead(job.model, job.gpus);
    }
    return out;
}

}  // namespace muster::simulator::reference
