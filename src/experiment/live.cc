#include "experiment/live.h"

#include <algorithm>
#include <set>

#include "base/error_codes.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "spec/parse.h"
#include "spec/queue_file.h"

namespace muster::experiment {
namespace {

using cli::Json;
using cli::JsonDocument;
using simulator::traces::PaperCluster;

Error unexpected(const std::string& what) {
    return numbered(errors::kBadAnswer, "the controller's answer has no " + what, "",
                    "is it of this version? `muster version`");
}

/// Every page of a list, one JSON document each.
Result<std::vector<JsonDocument>> pages_of(cli::Client& client, const std::string& path,
                                           const cli::Query& query) {
    std::vector<JsonDocument> pages;
    std::string cursor;
    do {
        cli::Query whole = query;
        if (!cursor.empty()) whole.add("cursor", cursor);
        MUSTER_LET(page, client.get(path + whole.text()));
        cursor = page.root()["next_cursor"].text();
        pages.push_back(std::move(page));
    } while (!cursor.empty());
    return pages;
}

model::Device device_of(const Json& json) {
    model::Device device;
    device.id = json["id"].text();
    device.kind = json["kind"].text();
    device.device_class = json["class"].text();
    device.vendor = json["vendor"].text();
    device.memory = {json["memory_bytes"].integer()};
    device.numa = static_cast<int>(json["numa"].integer(-1));
    device.link_group = json["link_group"].text();
    device.healthy = json["healthy"].truth(true);
    return device;
}

model::NodeFacts node_of(const Json& json) {
    model::NodeFacts node;
    node.name = json["name"].text();
    node.addresses = {node.name};
    // Whole CPUs or with decimals, as the API writes them.
    if (const auto cpus = parse_cpus(json["cpus"].text())) node.cpus = *cpus;
    node.memory = {json["memory_bytes"].integer()};
    node.disk = {json["disk_bytes"].integer()};
    node.limits_enforced = json["limits_enforced"].truth(true);
    for (Json device = json["devices"].first(); device.exists(); device = device.next())
        node.devices.push_back(device_of(device));
    std::ranges::sort(node.devices, {}, &model::Device::id);
    for (const auto& [key, value] : json["labels"].members())
        node.labels.emplace_back(key, value.text());
    std::ranges::sort(node.labels);
    return node;
}

Status fetch_nodes(cli::Client& client, PaperCluster& out) {
    cli::Query query;
    query.add("limit", "1000")
        .add("fields",
             "name,usable,cpus,memory_bytes,disk_bytes,labels,domain,devices,limits_enforced");
    MUSTER_LET(pages, pages_of(client, "/v1/nodes", query));
    std::int64_t left_out = 0;
    for (const JsonDocument& page : pages)
        for (Json json = page.root()["items"].first(); json.exists(); json = json.next()) {
            if (!json["usable"].truth()) {
                ++left_out;
                continue;
            }
            model::NodeFacts node = node_of(json);
            if (node.name.empty()) return unexpected("names of nodes");
            const std::string domain = json["domain"].text();
            if (!domain.empty()) {
                std::vector<std::string> path;
                for (const std::string_view part : split(domain, '/')) path.emplace_back(part);
                out.cluster.topology.hosts[node.name] = std::move(path);
            }
            out.cluster.nodes.push_back(std::move(node));
        }
    if (out.cluster.nodes.empty())
        return Error{.code = Code::NotFound,
                     .message = "the cluster has no node that may be used now",
                     .cause = left_out > 0 ? std::to_string(left_out) + " are drained or away" : "",
                     .fix = "`muster nodes`"};
    simulator::traces::describe(out);
    if (left_out > 0) out.words += " (" + std::to_string(left_out) + " more are drained or away)";
    return Ok{};
}

Status fetch_queues(cli::Client& client, PaperCluster& out) {
    MUSTER_LET(answer, client.get("/v1/queues?yaml=1"));
    const std::string yaml = answer.root()["yaml"].text();
    if (yaml.empty()) return unexpected("queues as a file");
    auto parsed = spec::parse_queue_file(yaml, "queues of the cluster");
    if (const auto* problems = std::get_if<spec::Problems>(&parsed))
        return spec::to_error(*problems, errors::kQueueTree);
    auto& file = std::get<spec::QueueFile>(parsed);
    out.cluster.queues = std::move(file.queues);
    out.cluster.rules = file.rules.value_or(model::SchedulingRules{});
    return Ok{};
}

/// What bears on where and when a job runs, and nothing that others may not see.
std::string bare(const Json& spec) {
    constexpr std::string_view kLeftOut[] = {"env",   "secrets", "mounts",   "workdir",  "image",
                                             "setup", "depends", "array",    "sweep",    "parallel",
                                             "hold",  "begin",   "deadline", "log_rules"};
    std::string out = "{";
    for (const auto& [key, value] : spec.members()) {
        if (std::ranges::find(kLeftOut, key) != std::end(kLeftOut)) continue;
        out += (out.size() > 1 ? "," : "") + json_quote(key) + ":" + std::string(value.raw());
    }
    return out + "}";
}

class StandingReader {
public:
    StandingReader(const simulator::study::Cluster& cluster, Time at, Duration assume)
        : at_(at), assume_(assume) {
        for (const model::NodeFacts& node : cluster.nodes) nodes_.insert(node.name);
    }

    Status read(const Json& json) {
        const std::string state = json["state"].text();
        if (json["held"].truth()) return leave_out("held jobs");
        const auto parsed = spec::parse_job(
            bare(json["spec"]),
            {.file = "job " + json["id"].text(), .format = spec::Format::Json, .base_dir = "/"});
        if (const auto* problems = std::get_if<spec::Problems>(&parsed))
            return spec::to_error(*problems);
        simulator::study::TraceJob job;
        job.name = json["id"].text();
        job.user = json["user"].text();
        job.spec = std::get<model::JobSpec>(parsed);
        job.spec.queue = json["queue"].text();
        job.spec.priority = json["priority"].integer(50);
        const Json waiting = json["array"]["waiting"];
        if (state != "pending") return running(json, std::move(job));
        if (json["code"].text() == error_name(errors::kDependency))
            return leave_out("jobs that wait for others");
        std::int64_t copies = waiting.exists() ? waiting.integer() : 1;
        const Duration expected = length_of(job.spec);
        if (expected.ms == 0) out_.assumed += copies;
        job.model.work_ms = expected.ms > 0 ? expected.ms : assume_.ms;
        if (job.spec.time.ms > 0)  // Who needs all of his limit ends by himself.
            job.spec.time.ms = std::max(job.spec.time.ms, job.model.work_ms + 1000);
        job.submit = at_ + Duration{1000};
        out_.waiting += copies;
        const std::int64_t number = json["number"].integer();
        for (; copies > 0; --copies) waiting_.emplace_back(number, job);
        return Ok{};
    }

    Standing take() && {
        out_.running = std::ssize(out_.jobs);
        // The API tells the newest first; they are to be asked for in the order they came.
        std::ranges::stable_sort(waiting_, {}, &std::pair<std::int64_t, Job>::first);
        for (auto& [number, job] : waiting_) out_.jobs.push_back(std::move(job));
        return std::move(out_);
    }

private:
    using Job = simulator::study::TraceJob;
    Status leave_out(const std::string& what) {
        ++out_.left_out[what];
        return Ok{};
    }
    static Duration length_of(const model::JobSpec& spec) {
        return spec.expected_time.ms > 0 ? spec.expected_time : spec.time;
    }

    Status running(const Json& json, simulator::study::TraceJob job) {
        if (json["state"].text() == "stopping") return leave_out("jobs that stop");
        const Duration ran{std::max<std::int64_t>(0, json["run_ms"].integer())};
        const Duration whole = length_of(job.spec);
        // As the scheduler has it: over its estimate, or without one, it takes as long again.
        const Duration left =
            whole > ran ? Duration{whole.ms - ran.ms} : std::max(ran, Duration{60'000});
        job.model.work_ms = left.ms;
        if (job.spec.time.ms > 0)
            job.spec.time = std::max(Duration{job.spec.time.ms - ran.ms}, left + Duration{1000});
        job.spec.expected_time = left;
        model::ConstraintTerm pin{.key = "node", .op = model::ConstraintTerm::Op::In, .values = {}};
        for (Json node = json["node_names"].first(); node.exists(); node = node.next())
            pin.values.push_back(node.text());
        std::ranges::sort(pin.values);
        for (const std::string& name : pin.values)
            if (!nodes_.contains(name)) return leave_out("jobs on nodes that are drained or away");
        if (!pin.values.empty()) job.spec.constraint.push_back(std::move(pin));
        // What it asked for beyond what it has is not asked again.
        job.spec.topology.spares = 0;
        job.submit = at_;
        out_.jobs.push_back(std::move(job));
        return Ok{};
    }

    Time at_;
    Duration assume_;
    std::set<std::string, std::less<>> nodes_;
    Standing out_;
    std::vector<std::pair<std::int64_t, Job>> waiting_;  // With their numbers.
};

}  // namespace

Result<Standing> fetch_jobs(cli::Client& client, const simulator::study::Cluster& cluster, Time at,
                            Duration assume) {
    cli::Query query;
    query.add("limit", "1000")
        .add("state", "live")
        .add("fields",
             "id,number,user,queue,state,code,priority,held,run_ms,node_names,array,spec");
    MUSTER_LET(pages, pages_of(client, "/v1/jobs", query));
    StandingReader reader(cluster, at, assume);
    for (const JsonDocument& page : pages)
        for (Json json = page.root()["items"].first(); json.exists(); json = json.next())
            MUSTER_TRY(reader.read(json));
    return std::move(reader).take();
}

Result<PaperCluster> fetch_cluster(cli::Client& client) {
    PaperCluster out;
    MUSTER_LET(cluster, client.get("/v1/cluster"));
    out.cluster.topology.levels.clear();
    for (Json level = cluster.root()["levels"].first(); level.exists(); level = level.next())
        out.cluster.topology.levels.push_back(level.text());
    MUSTER_TRY(fetch_nodes(client, out));
    for (const auto& [host, path] : out.cluster.topology.hosts)
        if (path.size() != out.cluster.topology.levels.size())
            return unexpected("domain for each level of the topology (node " + host + ")");
    MUSTER_TRY(fetch_queues(client, out));
    return out;
}

Result<simulator::traces::Trace> fetch_history(cli::Client& client, const std::string& since) {
    cli::Query query;
    query.add("limit", "1000").add("all", "1").add("since", since);
    MUSTER_LET(pages, pages_of(client, "/v1/jobs", query));
    std::string lines;
    for (const JsonDocument& page : pages)
        for (Json job = page.root()["items"].first(); job.exists(); job = job.next())
            lines.append(job.raw()).append("\n");
    if (lines.empty())
        return Error{.code = Code::NotFound,
                     .message = "no job ended within " + since,
                     .fix = "look further back with --history"};
    return simulator::traces::read_trace_text("history", std::move(lines), {.format = "history"});
}

}  // namespace muster::experiment
