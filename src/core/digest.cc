// The digest is over the records as they are stored: equal digests mean equal stores.
#include "base/hash.h"
#include "core/record_codec.h"
#include "core/state.h"

namespace muster::core {

std::uint64_t digest(const State& state) {
    const View& tables = state.tables;
    Fnv fnv;
    fnv.add(encode_meta(tables.meta));
    const auto add = [&](const auto& table, auto encode) {
        fnv.add(table.size());
        table.for_each([&](std::uint64_t id, const auto& record) {
            fnv.add(id);
            fnv.add(encode(record));
        });
    };
    add(tables.jobs, encode_job);
    add(tables.nodes, encode_node);
    add(tables.queues, encode_queue);
    add(tables.specs, encode_spec);
    add(tables.users, encode_user);
    add(tables.tokens, encode_token);
    add(tables.idempotency, encode_idempotency);
    fnv.add(model::encode(*tables.topology));
    fnv.add(model::encode(tables.rules));
    add(tables.reservations, encode_reservation);
    add(tables.usage, encode_usage);
    add(tables.run_times, encode_run_times);
    add(tables.shapes, [](const scheduler::Shape& shape) { return scheduler::encode(shape); });
    return fnv.hash();
}

}  // namespace muster::core
