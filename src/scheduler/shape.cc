#include "base/bytes.h"
#include "scheduler/plan.h"

namespace muster::scheduler {
namespace {

constexpr std::uint64_t kVersion = 2;  // 1: without sharing, elasticity and topology.

void put(Writer& out, const model::DeviceAsk& ask) {
    out.text(ask.kind);
    out.signed_number(ask.count);
    out.signed_number(ask.memory_min.value);
    out.text(ask.vendor);
    out.signed_number(ask.fraction);
    out.signed_number(ask.share_memory.value);
    out.text(ask.profile);
}
void put(Writer& out, const GroupAsk& group) {
    out.signed_number(group.nodes);
    out.number(group.devices.size());
    for (const model::DeviceAsk& ask : group.devices) put(out, ask);
    out.signed_number(group.cpus.value);
    out.signed_number(group.memory.value);
    out.signed_number(group.disk.value);
    out.signed_number(group.nodes_max);
}
void put(Writer& out, const model::TopologyAsk& ask) {
    out.text(ask.required);
    out.text(ask.preferred);
    out.signed_number(ask.slice);
    out.text(ask.slice_required);
    out.signed_number(ask.spares);
}

model::DeviceAsk device_ask(Reader& in, std::uint64_t version) {
    model::DeviceAsk ask;
    ask.kind = in.text();
    ask.count = in.signed_number();
    ask.memory_min.value = in.signed_number();
    ask.vendor = in.text();
    if (version < 2) return ask;
    ask.fraction = in.signed_number();
    ask.share_memory.value = in.signed_number();
    ask.profile = in.text();
    return ask;
}
model::TopologyAsk topology_ask(Reader& in) {
    model::TopologyAsk ask;
    ask.required = in.text();
    ask.preferred = in.text();
    ask.slice = in.signed_number();
    ask.slice_required = in.text();
    ask.spares = in.signed_number();
    return ask;
}

}  // namespace

std::string encode(const Shape& shape) {
    Writer out;
    out.number(kVersion);
    out.number(shape.queue.value);
    out.number(shape.groups.size());
    for (const GroupAsk& group : shape.groups) put(out, group);
    out.number(shape.constraint.size());
    for (const model::ConstraintTerm& term : shape.constraint) {
        out.text(term.key);
        out.number(static_cast<std::uint64_t>(term.op));
        out.number(term.values.size());
        for (const std::string& value : term.values) out.text(value);
    }
    out.flag(shape.exclusive);
    put(out, shape.topology);
    out.flag(shape.mixed_kinds);
    out.flag(shape.preemptible);
    out.flag(shape.share_unenforced);
    out.signed_number(shape.time.ms);
    out.signed_number(shape.expected_time.ms);
    return std::move(out).bytes();
}

std::optional<Shape> decode_shape(std::string_view bytes) {
    Reader in(bytes);
    const std::uint64_t version = in.number();
    if (version < 1 || version > kVersion) return std::nullopt;
    Shape shape;
    shape.queue.value = in.number();
    for (std::size_t n = in.count(); n > 0 && in.ok(); --n) {
        GroupAsk& group = shape.groups.emplace_back();
        group.nodes = in.signed_number();
        for (std::size_t asks = in.count(); asks > 0 && in.ok(); --asks)
            group.devices.push_back(device_ask(in, version));
        group.cpus.value = in.signed_number();
        group.memory.value = in.signed_number();
        group.disk.value = in.signed_number();
        if (version >= 2) group.nodes_max = in.signed_number();
    }
    for (std::size_t n = in.count(); n > 0 && in.ok(); --n) {
        model::ConstraintTerm& term = shape.constraint.emplace_back();
        term.key = in.text();
        const std::uint64_t op = in.number();
        if (op > static_cast<std::uint64_t>(model::ConstraintTerm::Op::NotExists)) return {};
        term.op = static_cast<model::ConstraintTerm::Op>(op);
        for (std::size_t values = in.count(); values > 0 && in.ok(); --values)
            term.values.emplace_back(in.text());
    }
    shape.exclusive = in.flag();
    if (version >= 2) {
        shape.topology = topology_ask(in);
        shape.mixed_kinds = in.flag();
        shape.preemptible = in.flag();
        shape.share_unenforced = in.flag();
    }
    shape.time.ms = in.signed_number();
    shape.expected_time.ms = in.signed_number();
    if (!in.ok() || !in.at_end()) return std::nullopt;
    return shape;
}

}  // namespace muster::scheduler
