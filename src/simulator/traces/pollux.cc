#include "simulator/traces/pollux.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

namespace muster::simulator::traces {
namespace {

namespace fs = std::filesystem;
using models::Application;
using models::ApplicationTables;

/// The published simulator caps this one below what was measured, and no file says so.
constexpr std::string_view kCappedApplication = "yolov3";
constexpr int kCappedLocalBatch = 8;

CsvOptions strict() {
    return {.strict = true};
}
constexpr std::int64_t kMost = 1'000'000;

int small(CsvRow& row, std::size_t column) {
    return static_cast<int>(row.integer(column, 1, kMost));
}

Status read_placements(const std::string& path, ApplicationTables& tables) {
    MUSTER_LET(csv, CsvFile::open(path, strict()));
    MUSTER_LET(placement, csv.column("placement"));
    MUSTER_LET(local, csv.column("local_bsz"));
    MUSTER_LET(step, csv.column("step_time"));
    MUSTER_LET(sync, csv.column("sync_time"));
    return csv.each([&](CsvRow& row) {
        ApplicationTables::Placed placed;
        for (const char digit : row.text(placement)) {
            if (digit < '1' || digit > '9')
                return row.refuse(placement, "not a digit of devices for each node");
            placed.placement.push_back(digit - '0');
        }
        if (placed.placement.empty()) return row.refuse(placement, "empty");
        placed.local_batch = small(row, local);
        placed.time = {row.decimal(step), row.decimal(sync)};
        if (row.ok()) tables.placed.push_back(std::move(placed));
    });
}

Status read_scalability(const std::string& path, ApplicationTables& tables) {
    MUSTER_LET(csv, CsvFile::open(path, strict()));
    MUSTER_LET(nodes, csv.column("num_nodes"));
    MUSTER_LET(replicas, csv.column("num_replicas"));
    MUSTER_LET(local, csv.column("local_bsz"));
    MUSTER_LET(step, csv.column("step_time"));
    MUSTER_LET(sync, csv.column("sync_time"));
    return csv.each([&](CsvRow& row) {
        const ApplicationTables::Scaled scaled{.nodes = small(row, nodes),
                                               .replicas = small(row, replicas),
                                               .local_batch = small(row, local),
                                               .time = {row.decimal(step), row.decimal(sync)}};
        if (row.ok()) tables.scaled.push_back(scaled);
    });
}

Status read_validation(const std::string& path, std::vector<ApplicationTables::Epoch>& epochs) {
    MUSTER_LET(csv, CsvFile::open(path, strict()));
    MUSTER_LET(progress, csv.column("progress"));
    MUSTER_LET(iteration, csv.column("iteration"));
    MUSTER_LET(sqr, csv.column("grad_sqr"));
    MUSTER_LET(var, csv.column("grad_var"));
    return csv.each([&](CsvRow& row) {
        const ApplicationTables::Epoch epoch{.progress = row.decimal(progress),
                                             .iteration = row.decimal(iteration),
                                             .grad_sqr = row.decimal(sqr),
                                             .grad_var = row.decimal(var)};
        if (!epochs.empty() && epoch.progress <= epochs.back().progress)
            row.refuse(progress, "not above that of the epoch before");
        if (row.ok()) epochs.push_back(epoch);
    });
}

/// The names in a folder, ascending.
Result<std::vector<std::string>> names_in(const std::string& folder) {
    std::error_code failed;
    std::vector<std::string> names;
    for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
        names.push_back(at->path().filename());
    if (failed) return Error{Code::NotFound, folder + ": " + failed.message()};
    std::sort(names.begin(), names.end());
    return names;
}

}  // namespace

Result<Application> read_application(const std::string& folder) {
    ApplicationTables tables;
    tables.name = fs::path(folder).filename();
    if (tables.name == kCappedApplication) tables.local_batch_max = kCappedLocalBatch;
    MUSTER_TRY(read_placements(folder + "/placements.csv", tables));
    MUSTER_TRY(read_scalability(folder + "/scalability.csv", tables));
    MUSTER_LET(names, names_in(folder));
    for (const std::string& name : names) {
        constexpr std::string_view kBefore = "validation-", kAfter = ".csv";
        if (!name.starts_with(kBefore) || !name.ends_with(kAfter)) continue;
        int batch = 0;
        const char* end = name.data() + name.size() - kAfter.size();
        const auto read = std::from_chars(name.data() + kBefore.size(), end, batch);
        if (read.ptr != end || batch <= 0)
            return Error{Code::Invalid, folder + "/" + name + ": no batch size in its name"};
        MUSTER_TRY(read_validation(folder + "/" + name, tables.validation[batch]));
    }
    return Application::of(std::move(tables));
}

Result<std::map<std::string, Application>> read_applications(const std::string& folder) {
    MUSTER_LET(names, names_in(folder));
    std::map<std::string, Application> all;
    for (const std::string& name : names) {
        if (!fs::is_directory(fs::path(folder) / name)) continue;
        MUSTER_LET(application, read_application(folder + "/" + name));
        all.emplace(name, std::move(application));
    }
    if (all.empty()) return Error{Code::NotFound, folder + " holds no folders of profiles"};
    return all;
}

Result<PolluxWorkload> read_pollux_workload(const std::string& path, const CsvOptions& options) {
    MUSTER_LET(csv, CsvFile::open(path, options));
    MUSTER_LET(name, csv.column("name"));
    MUSTER_LET(time, csv.column("time"));
    MUSTER_LET(application, csv.column("application"));
    MUSTER_LET(replicas, csv.column("num_replicas"));
    MUSTER_LET(batch, csv.column("batch_size"));
    PolluxWorkload workload;
    MUSTER_TRY(csv.each([&](CsvRow& row) {
        PolluxJob job{.name = std::string(row.text(name)),
                      .submit_s = row.integer(time),
                      .application = std::string(row.text(application)),
                      .replicas = small(row, replicas),
                      .batch = small(row, batch)};
        if (!workload.jobs.empty() && job.submit_s < workload.jobs.back().submit_s)
            row.refuse(time, "earlier than the row before");
        if (row.ok()) workload.jobs.push_back(std::move(job));
    }));
    workload.bad = csv.bad();
    return workload;
}

}  // namespace muster::simulator::traces
