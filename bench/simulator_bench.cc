// The simulator's speed: the Philly subset through the production scheduler, arrivals compressed to
// 90 % of the cluster. One JSON line a figure.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>

#include "simulator/reference/philly_world.h"

namespace {

using namespace muster;
using namespace muster::simulator;

class Nothing : public study::Sink {
public:
    void ended(const study::JobOutcome&) override {}
};

void print(const char* what, double value, const char* unit, const char* better, double goal) {
    std::printf(
        "{\"bench\": \"simulator\", \"what\": \"%s\", \"value\": %.4g, \"unit\": \"%s\", "
        "\"better\": \"%s\"",
        what, value, unit, better);
    if (goal > 0) std::printf(", \"goal\": %g", goal);
    std::puts("}");
    std::fflush(stdout);
}
/// CPU time of this thread: what it computes, whoever else uses the machine.
double cpu_seconds() {
    timespec at{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return static_cast<double>(at.tv_sec) + static_cast<double>(at.tv_nsec) / 1e9;
}
double rss_mb() {
    std::ifstream status("/proc/self/statm");
    long pages = 0, resident = 0;
    status >> pages >> resident;
    return static_cast<double>(resident) * 4096.0 / 1e6;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fputs(
            "usage: simulator_bench FOLDER-OF-PHILLY [LOAD-PERCENT] [JOBS] [PLAN-EVERY-MS]\n",
            stderr);
        return 2;
    }
    auto world = reference::read_philly_world(argv[1]);
    if (!world) {
        std::fprintf(stderr, "error: %s\n  fix: %s\n", world.error().message.c_str(),
                     world.error().fix.c_str());
        return 1;
    }
    const double load = argc > 2 ? std::atof(argv[2]) : 90;
    if (argc > 3)
        world->trace.rows.resize(
            std::min<std::size_t>(world->trace.rows.size(), std::strtoul(argv[3], nullptr, 10)));
    const auto compress =
        static_cast<std::int64_t>(load / 100 * 1e9 / static_cast<double>(world->offered_ppm()));
    const study::Cluster cluster = philly_cluster(*world, reference::Sharing::Muster);
    reference::PhillyJobs jobs(*world, reference::Sharing::Muster, compress);
    Nothing sink;
    const Duration every{argc > 4 ? std::atol(argv[4]) : reference::kPhillyPlanEvery.ms};
    const double begin = cpu_seconds();
    const auto summary = study::run(cluster, jobs, {.plan_every = every}, sink);
    const double seconds = cpu_seconds() - begin;
    if (!summary) {
        std::fprintf(stderr, "error: %s\n", summary.error().message.c_str());
        return 1;
    }
    std::fprintf(
        stderr,
        "%zu jobs, arrivals %.3f times as fast: %ld core inputs, %ld node inputs, %ld plans, "
        "%ld succeeded, %ld refused, %ld unfinished, %ld preemptions, %ld live at most, "
        "digest %016lx, useful %.1f %%\n",
        world->trace.rows.size(), static_cast<double>(compress) / 1000,
        static_cast<long>(summary->core_inputs), static_cast<long>(summary->node_inputs),
        static_cast<long>(summary->plans), static_cast<long>(summary->succeeded),
        static_cast<long>(summary->refused), static_cast<long>(summary->unfinished),
        static_cast<long>(summary->preemptions), static_cast<long>(summary->live_max),
        static_cast<unsigned long>(summary->digest),
        100.0 * static_cast<double>(summary->useful) / static_cast<double>(summary->devices_total));
    print("philly_s", seconds, "s", "lower", 20);
    print("events_per_s", static_cast<double>(summary->events) / seconds, "1/s", "higher", 200'000);
    print("philly_rss_mb", rss_mb(), "MB", "lower", 0);
    return 0;
}
