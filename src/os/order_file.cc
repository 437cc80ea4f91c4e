#include "os/order_file.h"

#include <utility>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/units.h"

namespace muster::os {
namespace {

constexpr std::uint64_t kVersion = 1;

std::uint32_t narrow(Reader& reader) {
    return static_cast<std::uint32_t>(reader.number());
}

// An older agent stops before this; what an older agent wrote ends before it.
void put_more(Writer& writer, const protocol::StartTask& order) {
    writer.signed_number(order.device_share);
    writer.signed_number(order.device_memory.value);
    const auto put = [&](const std::vector<std::string>& texts) {
        writer.number(texts.size());
        for (const std::string& text : texts) writer.text(text);
    };
    put(order.levels);
    if (!order.gang) return;
    for (const protocol::GangMember& member : *order.gang) put(member.path);
}

void get_more(Reader& reader, protocol::StartTask& order, protocol::Gang& gang) {
    if (reader.at_end()) return;
    order.device_share = reader.signed_number();
    order.device_memory.value = reader.signed_number();
    const auto get = [&](std::vector<std::string>& texts) {
        texts.resize(reader.count());
        for (std::string& text : texts) text = reader.text();
    };
    get(order.levels);
    for (protocol::GangMember& member : gang) get(member.path);
}

}  // namespace

std::string encode(const protocol::StartTask& order) {
    Writer writer;
    writer.number(kVersion);
    writer.number(order.term);
    writer.number(order.key.job.value);
    writer.number(order.key.epoch);
    writer.number(order.key.rank);
    writer.text(order.user);
    writer.text(order.job_name);
    writer.text(order.queue);
    writer.text(order.spec ? *order.spec : std::string());
    writer.number(order.gang ? order.gang->size() : 0);
    if (order.gang)
        for (const protocol::GangMember& member : *order.gang) {
            writer.text(member.name);
            writer.text(member.address);
            writer.number(member.role);
            writer.number(member.slots);
        }
    writer.number(order.role);
    writer.number(order.role_index);
    writer.signed_number(order.array_job);
    writer.signed_number(order.array_element);
    writer.number(order.devices.size());
    for (const std::string& device : order.devices) writer.text(device);
    writer.signed_number(order.cpus.value);
    writer.signed_number(order.memory.value);
    writer.number(order.restart_count);
    writer.text(order.latest_checkpoint);
    writer.signed_number(order.checkpoint_step);
    writer.signed_number(order.deadline.ms);
    writer.flag(order.barrier);
    put_more(writer, order);
    std::string bytes = std::move(writer).bytes();
    // A file that a power cut has emptied or torn is told by its sum.
    Fnv sum;
    sum.add(bytes);
    Writer tail;
    tail.number(sum.hash());
    tail.text(bytes);
    return std::move(tail).bytes();
}

std::optional<protocol::StartTask> decode_order(std::string_view bytes) {
    Reader outer(bytes);
    const std::uint64_t sum = outer.number();
    const std::string_view body = outer.text();
    Fnv computed;
    computed.add(body);
    if (!outer.ok() || computed.hash() != sum) return std::nullopt;
    Reader reader(body);
    if (reader.number() != kVersion) return std::nullopt;
    protocol::StartTask order;
    order.term = reader.number();
    order.key.job.value = reader.number();
    order.key.epoch = narrow(reader);
    order.key.rank = narrow(reader);
    order.user = reader.text();
    order.job_name = reader.text();
    order.queue = reader.text();
    order.spec = std::make_shared<const std::string>(reader.text());
    protocol::Gang gang(reader.count());
    for (protocol::GangMember& member : gang) {
        member.name = reader.text();
        member.address = reader.text();
        member.role = narrow(reader);
        member.slots = narrow(reader);
    }
    order.role = narrow(reader);
    order.role_index = narrow(reader);
    order.array_job = reader.signed_number();
    order.array_element = reader.signed_number();
    order.devices.resize(reader.count());
    for (std::string& device : order.devices) device = reader.text();
    order.cpus.value = reader.signed_number();
    order.memory.value = reader.signed_number();
    order.restart_count = narrow(reader);
    order.latest_checkpoint = reader.text();
    order.checkpoint_step = reader.signed_number();
    order.deadline.ms = reader.signed_number();
    order.barrier = reader.flag();
    get_more(reader, order, gang);
    order.gang = std::make_shared<const protocol::Gang>(std::move(gang));
    if (!reader.ok()) return std::nullopt;
    return order;
}

std::string folder_name(const protocol::TaskKey& key) {
    return std::to_string(key.job.value) + "-" + std::to_string(key.epoch) + "-" +
           std::to_string(key.rank);
}

std::optional<protocol::TaskKey> parse_folder_name(std::string_view name) {
    const std::vector<std::string_view> parts = split(name, '-');
    if (parts.size() != 3) return std::nullopt;
    constexpr std::int64_t kMax = (std::int64_t{1} << 32) - 1;
    const auto job = parse_integer(parts[0], 1, static_cast<std::int64_t>(kJobIdMax));
    const auto epoch = parse_integer(parts[1], 0, kMax);
    const auto rank = parse_integer(parts[2], 0, kMax);
    if (!job || !epoch || !rank) return std::nullopt;
    return protocol::TaskKey{.job = JobId{static_cast<std::uint64_t>(*job)},
                             .epoch = static_cast<std::uint32_t>(*epoch),
                             .rank = static_cast<std::uint32_t>(*rank)};
}

}  // namespace muster::os
