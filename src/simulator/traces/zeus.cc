#include "simulator/traces/zeus.h"

namespace muster::simulator::traces {

Result<ZeusEpochs> read_zeus_epochs(const std::string& path, const CsvOptions& options) {
    MUSTER_LET(csv, CsvFile::open(path, options));
    MUSTER_LET(dataset, csv.column("dataset"));
    MUSTER_LET(network, csv.column("network"));
    MUSTER_LET(batch, csv.column("batch_size"));
    MUSTER_LET(optimizer, csv.column("optimizer"));
    MUSTER_LET(limit, csv.column("power_limit"));
    MUSTER_LET(seconds, csv.column("time_per_epoch"));
    MUSTER_LET(watts, csv.column("average_power"));
    ZeusEpochs out;
    MUSTER_TRY(csv.each([&](CsvRow& row) {
        ZeusEpoch epoch;
        epoch.dataset = row.text(dataset), epoch.network = row.text(network);
        epoch.optimizer = row.text(optimizer);
        epoch.batch_size = row.integer(batch, 1);
        epoch.power_limit = row.integer(limit, 1, 10'000);
        epoch.seconds = row.decimal(seconds);
        epoch.watts = row.decimal(watts);
        if (row.ok()) out.epochs.push_back(std::move(epoch));
    }));
    out.bad = csv.bad();
    return out;
}

Result<ZeusRuns> read_zeus_runs(const std::string& path, const CsvOptions& options) {
    MUSTER_LET(csv, CsvFile::open(path, options));
    MUSTER_LET(dataset, csv.column("dataset"));
    MUSTER_LET(network, csv.column("network"));
    MUSTER_LET(batch, csv.column("batch_size"));
    MUSTER_LET(optimizer, csv.column("optimizer"));
    MUSTER_LET(target, csv.column("target_metric"));
    MUSTER_LET(epochs, csv.column("target_epoch"));
    ZeusRuns out;
    MUSTER_TRY(csv.each([&](CsvRow& row) {
        if (row.empty(epochs) || row.text(epochs) == "nan") return;
        ZeusRun run;
        run.dataset = row.text(dataset), run.network = row.text(network);
        run.optimizer = row.text(optimizer);
        run.batch_size = row.integer(batch, 1);
        run.target = row.decimal(target);
        run.epochs = row.decimal(epochs);
        if (row.ok()) out.runs.push_back(std::move(run));
    }));
    out.bad = csv.bad();
    return out;
}

}  // namespace muster::simulator::traces
