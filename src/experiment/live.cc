#include "experiment/live.h"

#include <algorithm>

#include "base/error_codes.h"
#include "base/text.h"
#include "base/units.h"
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

}  // namespace

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
