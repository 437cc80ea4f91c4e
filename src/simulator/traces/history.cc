// Muster's own history, as `muster ps --all -o ndjson` prints it: one job a line, with the names
// of the API.
#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "simulator/traces/readers.h"
#include "spec/tree.h"

namespace muster::simulator::traces {
namespace {

const spec::Value* member(const spec::Value& object, std::string_view name) {
    for (const spec::Entry& entry : object.entries)
        if (entry.key == name && entry.value.kind != spec::Value::Kind::Null) return &entry.value;
    return nullptr;
}

/// One line, looked up by the API's names.
class HistoryJob {
public:
    HistoryJob(CsvRow& row, const spec::Value& object) : row_(row), object_(object) {}

    std::string_view text(std::string_view name) const {
        const spec::Value* value = member(object_, name);
        return value != nullptr && value->kind == spec::Value::Kind::Scalar ? value->text
                                                                            : std::string_view();
    }
    std::int64_t integer(std::string_view name, std::int64_t low, std::int64_t high,
                         std::int64_t missing) {
        const std::string_view written = text(name);
        if (written.empty()) return missing;
        const auto value = parse_integer(written, low, high);
        if (!value) refuse(std::string(name) + ": " + value.error().message);
        return value ? *value : missing;
    }
    void refuse(std::string reason) { row_.refuse(0, std::move(reason)); }
    bool has(std::string_view name) const { return member(object_, name) != nullptr; }
    /// An array as a whole: its elements have lines of their own.
    bool is_array() const {
        const spec::Value* array = member(object_, "array");
        return array != nullptr && member(*array, "count") != nullptr;
    }

private:
    CsvRow& row_;
    const spec::Value& object_;
};

/// "h100:8|a100:8" of one role: its kinds, "h100|a100". "8" and "80GiB:2" name none.
std::string kinds_of(std::string_view gpus) {
    std::string kinds;
    if (gpus.find(',') != std::string_view::npos) return kinds;
    for (const std::string_view part : split(gpus, '|')) {
        const std::string_view kind = part.substr(0, part.find(':'));
        const bool more = kind.find_first_of(" >") != std::string_view::npos;  // Vendor, memory.
        if (kind.empty() || more || (kind.front() >= '0' && kind.front() <= '9')) return "";
        kinds += (kinds.empty() ? "" : "|") + std::string(kind);
    }
    return kinds;
}

void read_job(Reading& reading, CsvRow& row, const spec::Value& object) {
    HistoryJob line(row, object);
    if (line.is_array()) return reading.leave_out("arrays (their elements have rows of their own)");
    const std::string_view state = line.text("state");
    if (state == "pending" || state == "held") return reading.leave_out("jobs that wait");
    if (state == "starting" || state == "running" || state == "stopping" || state == "fencing")
        return reading.leave_out("jobs that still run");
    if (state != "succeeded" && state != "failed" && state != "cancelled")
        return line.refuse(state.empty() ? "has no state"
                                         : "not a state of a job: " + std::string(state));
    if (!line.has("started")) return reading.leave_out("jobs that never started");
    TraceRow job;
    const std::string_view submitted = line.text("submitted");
    const auto at = parse_stamp(submitted);
    if (!at) return line.refuse("submitted is not a time: '" + std::string(submitted) + "'");
    job.submit = *at;
    const std::string_view name = line.text("name"), id = line.text("id");
    job.name = std::string(id) + (name.empty() ? "" : " " + std::string(name));
    const std::int64_t ran = line.integer("run_ms", 0, kMsMax, -1);
    if (ran < 0) line.refuse("has no run_ms");
    job.run_ms = std::max<std::int64_t>(0, ran - line.integer("lost_ms", 0, kMsMax, 0));
    job.nodes = static_cast<std::int32_t>(line.integer("nodes", 1, kTraceNodesMax, 1));
    const std::int64_t gpus = line.integer("gpus", 0, kTraceNodesMax, 0);
    if (gpus % job.nodes != 0)
        line.refuse(std::to_string(gpus) + " devices on " + std::to_string(job.nodes) +
                    " nodes are not the same on each");
    job.devices = static_cast<std::int32_t>(gpus / job.nodes);
    job.kinds = reading.trace.texts.of(kinds_of(line.text("gpus_per_node")));
    if (const std::string_view cpus = line.text("cpus"); !cpus.empty()) {
        const auto all = parse_cpus(cpus);
        if (!all)
            line.refuse("cpus: " + all.error().message);
        else
            job.cpus = {all->value / job.nodes};
    }
    job.memory = {line.integer("memory_bytes", 0, kBytesMax * 16, 0) / job.nodes};
    job.limit_ms = line.integer("time_limit_ms", 0, kMsMax, 0);
    job.priority = static_cast<std::int16_t>(line.integer("priority", 0, 100, -1));
    job.user = reading.trace.texts.of(line.text("user"));
    job.queue = reading.trace.texts.of(line.text("queue"));
    const std::string_view cause = line.text("cause");
    if (cause == "oom")
        job.end = model::Cause::Oom;
    else if (state == "failed" && cause != "time-limit" && cause != "deadline")
        job.end = model::Cause::UserError;
    if (job.limit_ms > 0) job.run_ms = std::min(job.run_ms, job.limit_ms);
    reading.add(row, std::move(job));
}

}  // namespace

Status read_history(Reading& reading) {
    reading.trace.notes.emplace_back(
        "history: a job's work is its time from first start to end, less what was lost");
    return reading.file.each([&](CsvRow& row) {
        const spec::Tree tree = spec::read_json(row.text(0), 0);
        if (const auto* error = std::get_if<spec::SyntaxError>(&tree))
            return row.refuse(
                0, "not JSON (byte " + std::to_string(error->at) + "): " + error->message);
        const auto& object = std::get<spec::Value>(tree);
        if (object.kind != spec::Value::Kind::Map)
            return row.refuse(0, "not a job: one JSON object a line, as -o ndjson prints");
        read_job(reading, row, object);
    });
}

}  // namespace muster::simulator::traces
