// A gang of thousands of nodes with the interval of checkpoints that Muster chooses.
#include "compare.h"
#include "core/checkpoint_interval.h"
#include "simulator/reference/reliability.h"

namespace muster::compare {
namespace {

using simulator::reference::GangLife;

struct Row {
    std::string key;
    std::int64_t nodes;
    core::FailureCount rate;
    std::int64_t write, restart;  // Seconds.
};

}  // namespace

Status ettr(const Options& options, const Report& report) {
    constexpr Duration kLength{std::int64_t{54} * 24 * 3'600'000};
    const std::vector<Row> rows = {
        {"ettr_54d", 2048, {38, 10'000}, 10, 300},
        {"ettr_1024gpus_d60", 128, {65, 10'000}, 60, 600},
        {"ettr_4096gpus_d60", 512, {65, 10'000}, 60, 600},
        {"ettr_16384gpus_d60", 2048, {65, 10'000}, 60, 600},
        {"ettr_16384gpus_d10", 2048, {65, 10'000}, 10, 300},
        {"ettr_131072gpus_d10", 16384, {65, 10'000}, 10, 300},
    };
    for (const Row& row : rows) {
        GangLife life;
        life.mean_time_to_failure = core::mean_time_to_failure(row.nodes, row.rate, {});
        life.write = seconds(row.write), life.restart = seconds(row.restart);
        life.interval = core::checkpoint_interval(life.mean_time_to_failure, life.write);
        const auto values = in_parallel<double>(options.seeds, options.parallel, [&](int seed) {
            return simulated_ettr(life, kLength, 42 + static_cast<std::uint64_t>(seed));
        });
        Figure figure{.key = row.key, .value = mean(values), .unit = "of time is work kept"};
        figure.sd = deviation(values), figure.seeds = options.seeds;
        figure.published = expected_ettr(life);
        figure.note = std::to_string(row.nodes) + " nodes, MTTF " +
                      std::to_string(life.mean_time_to_failure.ms / 1000) + " s, interval " +
                      std::to_string(life.interval.ms / 1000) + " s";
        report(within_share(figure, 0.02));
    }
    return Ok{};
}

}  // namespace muster::compare
