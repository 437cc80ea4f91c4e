// Any bytes as the files of a cluster: queues, topology of each form, a zone file, a list of hosts.
// No crash; what is accepted reads back as itself. The first byte chooses.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/require.h"
#include "spec/host_list.h"
#include "spec/queue_file.h"
#include "spec/time_zone.h"
#include "spec/topology_reader.h"

using namespace muster::spec;

namespace {

void queues(std::string_view text) {
    const auto parsed = parse_queue_file(text, "q");
    const auto* file = std::get_if<QueueFile>(&parsed);
    if (file == nullptr) {
        MUSTER_REQUIRE(!render(std::get<Problems>(parsed)).empty());
        return;
    }
    if (file->queues.empty() && !file->rules) return;
    const auto again = parse_queue_file(to_yaml(*file), "q");
    MUSTER_REQUIRE(std::get_if<QueueFile>(&again) != nullptr);
    MUSTER_REQUIRE(std::get<QueueFile>(again) == *file);
}

void topology(std::string_view text, TopologyFormat format) {
    const TopologyReading reading = read_topology(text, {.format = format, .file = "t"});
    MUSTER_REQUIRE((reading.bad == 0) == reading.problems.empty());
    for (const auto& [host, path] : reading.topology.hosts)
        MUSTER_REQUIRE(path.size() == reading.topology.levels.size());
    if (reading.bad > 0) return;
    const TopologyReading again =
        read_topology(to_yaml(reading.topology), {.format = TopologyFormat::Yaml});
    MUSTER_REQUIRE(again.bad == 0 && again.topology == reading.topology);
}

void zone(std::string_view bytes) {
    const auto read = TimeZone::parse(bytes, "fuzz");
    if (!read) return;
    muster::model::Recurrence daily;
    daily.every = muster::model::Recurrence::Every::Day;
    const muster::Time start{1'774'000'000'000};
    const auto windows = expand({start, start + muster::seconds(3600)}, daily, *read, start,
                                start + muster::seconds(40 * 86'400));
    for (std::size_t i = 1; i < windows.size(); ++i)
        MUSTER_REQUIRE(windows[i - 1].end <= windows[i].start && windows[i].start < windows[i].end);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    switch (data[0] % 8) {
        case 0: queues(text); break;
        case 1: topology(text, TopologyFormat::Yaml); break;
        case 2: topology(text, TopologyFormat::Slurm); break;
        case 3: topology(text, TopologyFormat::Ib); break;
        case 4: topology(text, TopologyFormat::Csv); break;
        case 5: topology(text, TopologyFormat::Auto); break;
        case 6: zone(text); break;
        default: (void)expand_host_list(text, 10'000);
    }
    return 0;
}
