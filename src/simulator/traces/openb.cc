#include "simulator/traces/openb.h"

namespace muster::simulator::traces {
namespace {

constexpr std::int64_t kDevicesMax = 8;  // Of a node.
constexpr std::int64_t kCpuMax = 100'000'000, kMemoryMax = 1'000'000'000;

std::vector<std::string> alternatives(std::string_view text) {
    std::vector<std::string> out;
    while (!text.empty()) {
        const std::size_t bar = std::min(text.find('|'), text.size());
        if (bar > 0) out.emplace_back(text.substr(0, bar));
        text.remove_prefix(std::min(bar + 1, text.size()));
    }
    return out;
}

}  // namespace

Result<OpenbNodes> read_openb_nodes(const std::string& path, const CsvOptions& options) {
    MUSTER_LET(csv, CsvFile::open(path, options));
    MUSTER_LET(name, csv.column("sn"));
    MUSTER_LET(cpu, csv.column("cpu_milli"));
    MUSTER_LET(memory, csv.column("memory_mib"));
    MUSTER_LET(gpu, csv.column("gpu"));
    MUSTER_LET(model, csv.column("model"));
    OpenbNodes out;
    MUSTER_TRY(csv.each([&](CsvRow& row) {
        OpenbNode node;
        node.name = row.text(name);
        node.cpu_milli = row.integer(cpu, 0, kCpuMax);
        node.memory_mib = row.integer(memory, 0, kMemoryMax);
        node.gpus = row.integer(gpu, 0, kDevicesMax);
        node.model = row.text(model);
        if (node.gpus > 0 && node.model.empty()) row.refuse(model, "devices without a model");
        if (row.ok()) out.nodes.push_back(std::move(node));
    }));
    out.bad = csv.bad();
    return out;
}

Result<OpenbPods> read_openb_pods(const std::string& path, const CsvOptions& options) {
    MUSTER_LET(csv, CsvFile::open(path, options));
    MUSTER_LET(name, csv.column("name"));
    MUSTER_LET(cpu, csv.column("cpu_milli"));
    MUSTER_LET(memory, csv.column("memory_mib"));
    MUSTER_LET(gpus, csv.column("num_gpu"));
    MUSTER_LET(milli, csv.column("gpu_milli"));
    const auto spec = csv.find("gpu_spec");
    OpenbPods out;
    MUSTER_TRY(csv.each([&](CsvRow& row) {
        OpenbPod pod;
        pod.name = row.text(name);
        pod.cpu_milli = row.integer(cpu, 0, kCpuMax);
        pod.memory_mib = row.integer(memory, 0, kMemoryMax);
        pod.gpus = row.integer(gpus, 0, kDevicesMax);
        pod.gpu_milli = row.integer(milli, 0, 1000);
        if (spec) pod.models = alternatives(row.text(*spec));
        if (pod.gpus > 1 && pod.gpu_milli < 1000)
            row.refuse(milli, "parts of more than one device");
        if (pod.gpus > 0 && pod.gpu_milli == 0) row.refuse(milli, "a device of which it wants 0");
        if (row.ok()) out.pods.push_back(std::move(pod));
    }));
    out.bad = csv.bad();
    return out;
}

}  // namespace muster::simulator::traces
