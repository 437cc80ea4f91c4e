#include "simulator/traces/muri_jobs.h"

namespace muster::simulator::traces {

Result<MuriJobs> read_muri_jobs(const std::string& path, const CsvOptions& options) {
    MUSTER_LET(csv, CsvFile::open(path, options));
    MUSTER_LET(id, csv.column("job_id"));
    MUSTER_LET(gpus, csv.column("num_gpu"));
    MUSTER_LET(submit, csv.column("submit_time"));
    MUSTER_LET(iterations, csv.column("iterations"));
    MUSTER_LET(iteration, csv.column("iteration_time"));
    MUSTER_LET(model, csv.column("model_name"));
    constexpr std::int64_t kCenturyMs = 3'155'760'000'000;
    MuriJobs out;
    MUSTER_TRY(csv.each([&](CsvRow& row) {
        MuriJob job;
        job.id = row.integer(id);
        job.gpus = row.integer(gpus, 1, 1024);
        job.submit_ms = row.integer(submit, 0, kCenturyMs);
        job.iterations = row.integer(iterations, 0, 1'000'000'000'000);
        job.iteration_ms = row.integer(iteration, 0, kCenturyMs);
        job.model = row.text(model);
        if (row.ok()) out.jobs.push_back(std::move(job));
    }));
    out.bad = csv.bad();
    return out;
}

}  // namespace muster::simulator::traces
