#include "base/bytes.h"
#include "scheduler/plan.h"

namespace muster::scheduler {
namespace {

constexpr std::uint64_t kVersion = 1;

void put(Writer& out, const model::DeviceAsk& ask) {
    out.text(ask.kind);
    out.signed_number(ask.count);
    out.signed_number(ask.memory_min.value);
    out.text(ask.vendor);
}
void put(Writer& out, const GroupAsk& group) {
    out.signed_number(group.nodes);
    out.number(group.devices.size());
    for (const model::DeviceAsk& ask : group.devices) put(out, ask);
    out.signed_number(group.cpus.value);
    out.signed_number(group.memory.value);
    out.signed_number(group.disk.value);
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
    out.signed_number(shape.time.ms);
    out.signed_number(shape.expected_time.ms);
    return std::move(out).bytes();
}

std::optional<Shape> decode_shape(std::string_view bytes) {
    Reader in(bytes);
    if (in.number() != kVersion) return std::nullopt;
    Shape shape;
    shape.queue.value = in.number();
    for (std::size_t n = in.count(); n > 0 && in.ok(); --n) {
        GroupAsk& group = shape.groups.emplace_back();
        group.nodes = in.signed_number();
        for (std::size_t asks = in.count(); asks > 0 && in.ok(); --asks) {
            model::DeviceAsk& ask = group.devices.emplace_back();
            ask.kind = in.text();
            ask.count = in.signed_number();
            ask.memory_min.value = in.signed_number();
            ask.vendor = in.text();
        }
        group.cpus.value = in.signed_number();
        group.memory.value = in.signed_number();
        group.disk.value = in.signed_number();
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
    shape.time.ms = in.signed_number();
    shape.expected_time.ms = in.signed_number();
    if (!in.ok() || !in.at_end()) return std::nullopt;
    return shape;
}

}  // namespace muster::scheduler
