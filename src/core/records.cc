#include "core/records.h"

#include "core/indexes.h"
#include "core/record_codec.h"

namespace muster::core {
namespace {

template <class Table, class Encode>
std::optional<std::string> encoded(const Table& table, std::uint64_t id, Encode encode) {
    const auto* record = table.find(id);
    if (record == nullptr) return std::nullopt;
    return encode(*record);
}
Error corrupt(RecordName name) {
    return {.code = Code::Corrupt,
            .message = "record " + std::to_string(static_cast<int>(name.kind)) + "/" +
                       std::to_string(name.id) + " cannot be read",
            .cause = "its bytes are not what a controller of this or an earlier version writes",
            .fix = "restore the state folder from a backup, or start the version that wrote it"};
}

}  // namespace

std::optional<RecordName> record_of(const Change& change) {
    struct Visit {
        using Name = std::optional<RecordName>;
        Name operator()(const MetaPut&) { return RecordName{RecordKind::Meta, 0}; }
        Name operator()(const JobPut& c) { return RecordName{RecordKind::Job, c.job.id.value}; }
        Name operator()(const JobDropped& c) { return RecordName{RecordKind::Job, c.id.value}; }
        Name operator()(const SpecPut& c) { return RecordName{RecordKind::Spec, c.id.value}; }
        Name operator()(const SpecDropped& c) { return RecordName{RecordKind::Spec, c.id.value}; }
        Name operator()(const ShapePut& c) {
            return RecordName{RecordKind::Shape, c.shape.id.value};
        }
        Name operator()(const ShapeDropped& c) { return RecordName{RecordKind::Shape, c.id.value}; }
        Name operator()(const NodePut& c) { return RecordName{RecordKind::Node, c.node.id.value}; }
        Name operator()(const NodeDropped& c) { return RecordName{RecordKind::Node, c.id.value}; }
        Name operator()(const QueuePut& c) {
            return RecordName{RecordKind::Queue, c.queue.id.value};
        }
        Name operator()(const QueueDropped& c) { return RecordName{RecordKind::Queue, c.id.value}; }
        Name operator()(const TopologyPut&) { return RecordName{RecordKind::Topology, 0}; }
        Name operator()(const RulesPut&) { return RecordName{RecordKind::Rules, 0}; }
        Name operator()(const ReservationPut& c) {
            return RecordName{RecordKind::Reservation, c.reservation.id.value};
        }
        Name operator()(const ReservationDropped& c) {
            return RecordName{RecordKind::Reservation, c.id.value};
        }
        Name operator()(const UsagePut& c) {
            return RecordName{RecordKind::Usage, usage_key(c.usage.queue, c.usage.user)};
        }
        Name operator()(const UsageDropped& c) {
            return RecordName{RecordKind::Usage, usage_key(c.queue, c.user)};
        }
        Name operator()(const RunTimesPut& c) {
            return RecordName{RecordKind::RunTimes, c.times.id};
        }
        Name operator()(const RunTimesDropped& c) { return RecordName{RecordKind::RunTimes, c.id}; }
        Name operator()(const UserPut& c) { return RecordName{RecordKind::User, c.user.id.value}; }
        Name operator()(const TokenPut& c) { return RecordName{RecordKind::Token, c.token.id}; }
        Name operator()(const TokenDropped& c) { return RecordName{RecordKind::Token, c.id}; }
        Name operator()(const IdempotencyPut& c) {
            return RecordName{RecordKind::Idempotency, c.entry.id};
        }
        Name operator()(const IdempotencyDropped& c) {
            return RecordName{RecordKind::Idempotency, c.id};
        }
        Name operator()(const JobLivePut&) { return std::nullopt; }
        Name operator()(const JobLiveDropped&) { return std::nullopt; }
        Name operator()(const NodeLivePut&) { return std::nullopt; }
        Name operator()(const WaitPut&) { return std::nullopt; }
        Name operator()(const WaitDropped&) { return std::nullopt; }
        Name operator()(const FreezePut&) { return std::nullopt; }
        Name operator()(const TaskPut&) { return std::nullopt; }
        Name operator()(const ProgressPut&) { return std::nullopt; }
        Name operator()(const ShapeWaitPut&) { return std::nullopt; }
        Name operator()(const PredictedPut&) { return std::nullopt; }
        Name operator()(const BookingsPut&) { return std::nullopt; }
    };
    return std::visit(Visit{}, change);
}

std::optional<std::string> encode_record(const State& state, RecordName name) {
    const View& tables = state.tables;
    switch (name.kind) {
        case RecordKind::Meta: return encode_meta(tables.meta);
        case RecordKind::Job: return encoded(tables.jobs, name.id, encode_job);
        case RecordKind::Node: return encoded(tables.nodes, name.id, encode_node);
        case RecordKind::Queue: return encoded(tables.queues, name.id, encode_queue);
        case RecordKind::Topology: return model::encode(*tables.topology);
        case RecordKind::Rules: return model::encode(tables.rules);
        case RecordKind::Reservation:
            return encoded(tables.reservations, name.id, encode_reservation);
        case RecordKind::Usage: return encoded(tables.usage, name.id, encode_usage);
        case RecordKind::RunTimes: return encoded(tables.run_times, name.id, encode_run_times);
        case RecordKind::Spec: return encoded(tables.specs, name.id, encode_spec);
        case RecordKind::User: return encoded(tables.users, name.id, encode_user);
        case RecordKind::Token: return encoded(tables.tokens, name.id, encode_token);
        case RecordKind::Idempotency:
            return encoded(tables.idempotency, name.id, encode_idempotency);
        case RecordKind::Shape:
            return encoded(tables.shapes, name.id,
                           [](const scheduler::Shape& shape) { return scheduler::encode(shape); });
    }
    return std::nullopt;
}

Result<Change> decode_record(RecordName name, std::string_view bytes) {
    switch (name.kind) {
        case RecordKind::Meta:
            if (auto meta = decode_meta(bytes)) return Change(MetaPut{*meta});
            break;
        case RecordKind::Job:
            if (auto job = decode_job(bytes); job && job->id.value == name.id)
                return Change(JobPut{*std::move(job)});
            break;
        case RecordKind::Node:
            if (auto node = decode_node(bytes); node && node->id.value == name.id)
                return Change(NodePut{*std::move(node)});
            break;
        case RecordKind::Queue:
            if (auto queue = decode_queue(bytes); queue && queue->id.value == name.id)
                return Change(QueuePut{*std::move(queue)});
            break;
        case RecordKind::Topology:
            if (auto topology = model::decode_topology(bytes))
                return Change(
                    TopologyPut{std::make_shared<const model::Topology>(*std::move(topology))});
            break;
        case RecordKind::Rules:
            if (auto rules = model::decode_scheduling_rules(bytes))
                return Change(RulesPut{*std::move(rules)});
            break;
        case RecordKind::Reservation:
            if (auto made = model::decode_reservation(bytes); made && made->id.value == name.id)
                return Change(ReservationPut{*std::move(made)});
            break;
        case RecordKind::Usage:
            if (auto usage = decode_usage(bytes);
                usage && usage_key(usage->queue, usage->user) == name.id)
                return Change(UsagePut{*usage});
            break;
        case RecordKind::RunTimes:
            if (auto times = decode_run_times(bytes); times && times->id == name.id)
                return Change(RunTimesPut{*std::move(times)});
            break;
        case RecordKind::Spec:
            if (auto spec = decode_spec(bytes))
                return Change(SpecPut{SpecId{name.id}, *std::move(spec)});
            break;
        case RecordKind::User:
            if (auto user = decode_user(bytes); user && user->id.value == name.id)
                return Change(UserPut{*std::move(user)});
            break;
        case RecordKind::Token:
            if (auto token = decode_token(bytes); token && token->id == name.id)
                return Change(TokenPut{*std::move(token)});
            break;
        case RecordKind::Idempotency:
            if (auto entry = decode_idempotency(bytes); entry && entry->id == name.id)
                return Change(IdempotencyPut{*entry});
            break;
        case RecordKind::Shape:
            if (auto shape = scheduler::decode_shape(bytes)) {
                shape->id = ShapeId{name.id};
                return Change(ShapePut{*std::move(shape)});
            }
            break;
    }
    return corrupt(name);
}

Status finish_load(State& state) {
    const View& tables = state.tables;
    std::string broken;
    tables.jobs.for_each([&](std::uint64_t id, const Job& job) {
        const auto lacks = [&](bool found, const char* what, std::uint64_t other) {
            if (!found && broken.empty())
                broken = "job " + std::to_string(id) + " refers to " + what + " " +
                         std::to_string(other) + ", which is not there";
        };
        lacks(tables.specs.contains(job.spec.value), "spec", job.spec.value);
        lacks(!job.shape || tables.shapes.contains(job.shape.value), "shape", job.shape.value);
        lacks(model::ended(job.state) || bool(job.shape), "shape", 0);
        lacks(tables.users.contains(job.user), "user", job.user);
        lacks(tables.queues.contains(job.queue), "queue", job.queue);
        lacks(id < tables.meta.next_job, "an id that was never given,", id);
        const JobExtra& extra = extra_of(job);
        if (!extra.allocation) return;
        for (const Placed& slot : extra.allocation->slots)
            lacks(tables.nodes.contains(slot.node.value), "node", slot.node.value);
    });
    const auto lacks_queue = [&](QueueId queue, const char* who, std::uint64_t id) {
        if (queue && !tables.queues.contains(queue.value) && broken.empty())
            broken = std::string(who) + " " + std::to_string(id) + " refers to queue " +
                     std::to_string(queue.value) + ", which is not there";
    };
    tables.queues.for_each([&](std::uint64_t id, const Queue& queue) {
        // A parent is older than its children, so no chain of parents is a circle.
        if (queue.parent.value >= id && broken.empty())
            broken = "queue " + std::to_string(id) + " has a parent that is younger";
        lacks_queue(queue.parent, "queue", id);
    });
    tables.usage.for_each(
        [&](std::uint64_t id, const Usage& usage) { lacks_queue(usage.queue, "usage", id); });
    if (!broken.empty())
        return Error{.code = Code::Corrupt,
                     .message = broken,
                     .cause = "the state on disk is not whole",
                     .fix = "restore the state folder from a backup"};
    rebuild_indexes(state);
    return Ok{};
}

}  // namespace muster::core
