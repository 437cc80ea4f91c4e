#include "simulator/traces/trace.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "simulator/traces/readers.h"

namespace muster::simulator::traces {
namespace {

constexpr char kWholeLines = '\x01';  // A separator that no text has.

/// How a format's file is laid out, and how it is told from others by its first line.
struct FormatRow {
    Format format;
    ReadFunction read;
    CsvOptions layout;
    std::vector<std::string_view> columns;  // Its header has all of these.
};

CsvOptions separated(char separator) {
    return {.separator = separator, .quotes = separator == ','};
}

const std::vector<FormatRow>& rows() {
    static const std::vector<FormatRow> kRows = [] {
        CsvOptions swf = separated(' ');
        swf.comment = ';';
        swf.header =
            "job submit wait run processors cpu_time used_memory processors_asked time_asked "
            "memory_asked status user group executable queue partition after think";
        CsvOptions lines = separated(kWholeLines);
        lines.header = "job";
        // Formats with a marked header before those that any header could have.
        return std::vector<FormatRow>{
            {{"sacct", "Slurm's accounting: sacct -P"}, read_sacct, separated('|'), {}},
            {{"history", "Muster's own: muster ps --all -o ndjson"}, read_history, lines, {}},
            {{"swf", "Standard Workload Format"}, read_swf, swf, {}},
            {{"philly", "Microsoft Philly: submit, duration, devices, virtual cluster"},
             read_philly,
             separated(','),
             {"timestamp", "duration", "num_gpus", "cluster"}},
            {{"openb", "Alibaba openb (2023): pods with their times"},
             read_openb,
             separated(','),
             {"name", "cpu_milli", "num_gpu", "gpu_milli"}},
            {{"muri", "Muri: iterations and time of each"},
             read_muri,
             separated(','),
             {"job_id", "num_gpu", "submit_time", "iterations", "iteration_time"}},
            {{"pollux", "Pollux: applications with their profiles"},
             read_pollux,
             separated(','),
             {"name", "time", "application", "num_replicas", "batch_size"}},
            {{"gavel", "Gavel: types of jobs with their lengths on a V100"},
             read_gavel,
             separated(','),
             {"job_type", "scale_factor", "v100_duration_s", "unit_exp_interarrival"}},
            {{"csv", "any: submit and duration, and what else is known"},
             read_csv_jobs,
             separated(','),
             {"submit", "duration"}},
        };
    }();
    return kRows;
}

bool has_columns(const CsvFile& file, const FormatRow& row) {
    return !row.columns.empty() &&
           std::ranges::all_of(row.columns, [&](auto name) { return file.find(name).has_value(); });
}

/// By what the first line is; nullptr: no format has such a line.
const FormatRow* recognised(const std::string& first) {
    const auto named = [](std::string_view name) {
        return &*std::ranges::find(rows(), name,
                                   [](const FormatRow& row) { return row.format.name; });
    };
    const std::string_view line = trim(first);
    if (line.starts_with('{')) return named("history");
    if (line.starts_with(';')) return named("swf");
    if (line.starts_with("JobID") && line.find('|') != std::string_view::npos)
        return named("sacct");
    if (line.find('|') != std::string_view::npos && line.find("State") != std::string_view::npos)
        return named("sacct");
    const auto header = CsvFile::of_text("", first + "\n");
    if (header)
        for (const FormatRow& row : rows())
            if (has_columns(*header, row)) return &row;
    return nullptr;
}

Error unknown_format(const std::string& message) {
    std::string names;
    for (const FormatRow& row : rows())
        names += (names.empty() ? "" : ", ") + std::string(row.format.name);
    return {
        .code = Code::Invalid,
        .message = message,
        .fix = "name one with --format: " + names + " (docs/simulator.md says what each holds)"};
}

Result<const FormatRow*> format_of(const std::string& name, const std::string& path,
                                   const std::string& first_line) {
    if (name == "auto") {
        if (const FormatRow* row = recognised(first_line)) return row;
        return unknown_format(path + ": its first line is that of no known trace: '" +
                              first_line.substr(0, 120) + "'");
    }
    for (const FormatRow& row : rows())
        if (row.format.name == name) return &row;
    std::vector<std::string> names;
    for (const FormatRow& row : rows()) names.emplace_back(row.format.name);
    const std::string near = nearest(name, names);
    return unknown_format(name + ": unknown format of a trace" +
                          (near.empty() ? "" : "; did you mean " + near + "?"));
}

/// Sorted, and put after 1970 where times count from the trace's beginning.
void finish(Trace& trace) {
    std::ranges::stable_sort(trace.rows, {}, &TraceRow::submit);
    if (trace.relative)
        for (TraceRow& row : trace.rows) row.submit.ms += kRelativeStart.ms;
}

/// `file` was opened to show its first line; `open` opens it again as the format wants it.
template <class Open>
Result<Trace> read_with(const std::string& name, const ReadOptions& options, const Open& open) {
    MUSTER_LET(peek, open(separated(kWholeLines)));
    MUSTER_LET(format, format_of(options.format, name, peek.columns().front()));
    CsvOptions layout = format->layout;
    layout.strict = options.strict;
    MUSTER_LET(file, open(layout));
    Trace trace;
    trace.format = format->format.name;
    trace.file = name;
    Reading reading{trace, file, options};
    MUSTER_TRY(format->read(reading));
    trace.bad = file.bad();
    finish(trace);
    if (!trace.rows.empty()) return trace;
    std::string why = trace.bad.count > 0
                          ? std::to_string(trace.bad.count) + " bad rows:\n" + text_of(trace.bad)
                          : "it has no rows";
    for (const auto& [what, count] : trace.left_out)
        why += "\nleft out: " + std::to_string(count) + " " + what;
    return Error{.code = Code::Invalid,
                 .message = name + ": no job to simulate",
                 .cause = std::move(why),
                 .fix = "look at the file, and at --format (read as " + trace.format + ")"};
}

}  // namespace

std::uint32_t Texts::of(std::string_view text) {
    const auto found = index_.find(text);
    if (found != index_.end()) return found->second;
    const auto index = static_cast<std::uint32_t>(texts_.size());
    texts_.emplace_back(text);
    index_.emplace(std::string(text), index);
    return index;
}

std::int64_t Trace::device_ms() const {
    std::int64_t sum = 0;
    for (const TraceRow& row : rows) {
        const std::int64_t milli = row.fraction > 0 ? row.fraction : 1000 * row.devices;
        sum +=
            static_cast<std::int64_t>(static_cast<__int128>(row.run_ms) * row.nodes * milli / 1000);
    }
    return sum;
}

std::vector<std::string> Trace::queues() const {
    std::set<std::string> names;
    for (const TraceRow& row : rows) names.insert(texts[row.queue]);
    return {names.begin(), names.end()};
}

const std::vector<Format>& formats() {
    static const std::vector<Format> kFormats = [] {
        std::vector<Format> all;
        for (const FormatRow& row : rows()) all.push_back(row.format);
        return all;
    }();
    return kFormats;
}

Result<Trace> read_trace(const std::string& path, const ReadOptions& options) {
    return read_with(path, options,
                     [&](const CsvOptions& layout) { return CsvFile::open(path, layout); });
}

Result<Trace> read_trace_text(std::string name, std::string text, const ReadOptions& options) {
    return read_with(name, options, [&](const CsvOptions& layout) {
        return CsvFile::of_text(name, text, layout);
    });
}

std::optional<study::TraceJob> TraceSource::next() {
    const auto from = static_cast<std::size_t>(play_.jobs_from);
    const std::size_t all = trace_.rows.size();
    const auto most =
        play_.jobs_max > 0 ? std::min(from + static_cast<std::size_t>(play_.jobs_max), all) : all;
    if (at_ >= most) return std::nullopt;
    const Time first = trace_.rows[from].submit;
    const TraceRow& row = trace_.rows[at_++];
    study::TraceJob job;
    job.name = row.name.empty() ? "job-" + std::to_string(at_) : row.name;
    const std::int64_t since = (row.submit - first).ms;
    job.submit.ms =
        first.ms + static_cast<std::int64_t>(static_cast<__int128>(since) * 1000 / play_.compress);
    job.user = trace_.texts[row.user];
    model::JobSpec& spec = job.spec;
    spec.name = job.name;
    spec.queue = trace_.texts[row.queue];
    if (row.priority >= 0) spec.priority = row.priority;
    // Who ran right up to his limit ends by himself here: what he did counts.
    spec.time.ms = row.limit_ms == 0 ? 0 : std::max(row.limit_ms, row.run_ms + 1000);
    spec.expected_time.ms =
        play_.know_durations ? std::max<std::int64_t>(row.run_ms, 1) : row.expected_ms;
    spec.preemptible = row.preemptible;
    spec.launch = row.nodes > 1 ? model::Launch::Torchrun : model::Launch::PerNode;
    model::Role& role = spec.roles.emplace_back();
    role.nodes = role.nodes_max = row.nodes;
    role.cpus = row.cpus;
    role.memory = row.memory;
    role.run = "true";
    if (row.devices > 0) {
        for (const std::string_view kind : split(trace_.texts[row.kinds], '|')) {
            model::DeviceAsk ask;
            ask.kind = kind;
            ask.count = row.devices;
            ask.fraction = row.fraction;
            role.devices.push_back(std::move(ask));
        }
        spec.share_unenforced = row.fraction > 0;
    }
    job.model.work_ms = row.run_ms;
    job.model.profile = trace_.texts[row.profile];
    job.model.end = row.end;
    job.model.checkpoint_every =
        row.checkpoint_ms > 0 ? Duration{row.checkpoint_ms} : play_.checkpoint_every;
    job.model.checkpoint_auto = row.checkpoint_ms == 0 && play_.checkpoint_auto;
    job.model.checkpoint_stall = play_.checkpoint_stall;
    job.model.restart_cost = play_.restart_cost;
    return job;
}

void spread(TraceRow& row, std::int64_t total, std::int64_t per_node) {
    std::int64_t nodes = 1;
    if (per_node > 0 && total > per_node) {
        nodes = (total + per_node - 1) / per_node;
        while (total % nodes != 0) ++nodes;
    }
    row.nodes = static_cast<std::int32_t>(nodes);
    row.devices = static_cast<std::int32_t>(total / nodes);
}

std::optional<Time> parse_stamp(std::string_view text) {
    if (text.empty()) return std::nullopt;
    std::string whole(text);
    const char last = whole.back();
    const bool zone = last == 'Z' || last == 'z' ||
                      (whole.size() > 19 && (whole.find('+', 19) != std::string::npos ||
                                             whole.find('-', 19) != std::string::npos));
    if (!zone && whole.size() > 10) whole += 'Z';
    const auto time = parse_time(whole, {});
    if (!time || text.starts_with("now")) return std::nullopt;
    return *time;
}

std::string queue_name(std::string_view text) {
    std::string name;
    for (const char c : text) {
        const bool good = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' ||
                          c == '_' || c == '-' || c == '/';
        name += good ? c : '-';
    }
    return name;
}

}  // namespace muster::simulator::traces
