// Energy to a training target by power limit alone, from the Zeus paper's measurements.
#include "simulator/traces/zeus.h"

#include <algorithm>
#include <cstdio>

#include "compare.h"

namespace muster::compare {
namespace {

using namespace simulator;

struct Workload {
    std::string key, dataset, network;
    std::int64_t batch_size = 0;  // The default one.
    double target = 0;
    double expected = 0;  // % saved, as an independent calculation from the same data has it.
};
const std::vector<Workload>& workloads() {
    static const std::vector<Workload> kAll = {
        {"deepspeech2", "librispeech", "deepspeech2", 192, 40, 16.2},
        {"bert_squad", "squad", "bert_base_uncased", 32, 84, 17.8},
        {"bert_sentiment140", "sentiment140", "bert_base_uncased", 128, 0.84, 21.2},
        {"resnet50", "imagenet", "resnet50", 256, 0.65, 22.5},
        {"shufflenetv2", "cifar100", "shufflenetv2", 1024, 0.6, 31.4},
        {"ncf", "movielens-1m", "ncf", 1024, 0.41, 3.0},
    };
    return kAll;
}

}  // namespace

Status zeus(const Options& options, const Report& report) {
    const std::string folder = options.traces + "/zeus";
    MUSTER_LET(measured,
               traces::read_zeus_epochs(folder + "/summary_power_v100.csv", {.strict = true}));
    MUSTER_LET(trained, traces::read_zeus_runs(folder + "/summary_train.csv", {.strict = true}));
    for (const Workload& workload : workloads()) {
        std::string optimizer;
        std::vector<double> epochs;
        for (const traces::ZeusRun& run : trained.runs) {
            if (run.dataset != workload.dataset || run.network != workload.network ||
                run.batch_size != workload.batch_size || run.target != workload.target)
                continue;
            optimizer = run.optimizer;
            epochs.push_back(run.epochs);
        }
        const traces::ZeusEpoch *most = nullptr, *best = nullptr;
        const auto joules = [](const traces::ZeusEpoch& one) { return one.seconds * one.watts; };
        for (const traces::ZeusEpoch& one : measured.epochs) {
            if (one.dataset != workload.dataset || one.network != workload.network ||
                one.batch_size != workload.batch_size || one.optimizer != optimizer)
                continue;
            if (most == nullptr || one.power_limit > most->power_limit) most = &one;
            if (best == nullptr || joules(one) < joules(*best)) best = &one;
        }
        if (most == nullptr || epochs.empty())
            return Error{
                .code = Code::Invalid,
                .message = folder + ": no measurement, or no run to the target, of " + workload.key,
                .fix = "give the whole trace"};
        const auto kwh = [&](const traces::ZeusEpoch& one) {
            return joules(one) * mean(epochs) / 3.6e6;
        };
        Figure figure{.key = "zeus_" + workload.key,
                      .value = 100 * (1 - kwh(*best) / kwh(*most)),
                      .unit = "% of energy saved"};
        figure.published = workload.expected;
        char note[160];
        std::snprintf(note, sizeof note, "%.3g kWh at %d W, %.3g kWh at %d W; takes %+.0f %% time",
                      kwh(*most), static_cast<int>(most->power_limit), kwh(*best),
                      static_cast<int>(best->power_limit),
                      100 * (best->seconds / most->seconds - 1));
        figure.note = note;
        report(within(figure, 0.1, "points"));
    }
    return Ok{};
}

}  // namespace muster::compare
