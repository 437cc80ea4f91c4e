// What attempts take of limits and shares, and what is known of how long jobs run.
#include <algorithm>

#include "base/decay.h"
#include "core/indexes.h"
#include "core/stepper.h"
#include "scheduler/place.h"

namespace muster::core {
namespace {

/// Least-recently used names are forgotten beyond so many: some 10 MB.
constexpr std::size_t kRunTimesMax = 50'000;
/// Of a name that is not known yet: what is shorter tells more of the start than of the work.
constexpr Duration kRunTimeLeast{1'000};

std::int64_t sum(std::int64_t a, std::int64_t b) {
    std::int64_t out = 0;
    return __builtin_add_overflow(a, b, &out) ? INT64_MAX : out;
}
/// On a kind of speed 1000, how long `length` on one of `speed` is; and back with `from` false.
Duration scaled(Duration length, std::int64_t speed, bool from) {
    const __int128 wide = from ? static_cast<__int128>(length.ms) * speed / 1000
                               : static_cast<__int128>(length.ms) * 1000 / speed;
    return {static_cast<std::int64_t>(std::min<__int128>(wide, kDurationMax.ms))};
}
/// Of the slowest kind that the attempt has.
std::int64_t speed_of(const model::SchedulingRules& rules, const Allocation& allocation) {
    std::int64_t speed = 0;
    for (const auto& [kind, value] : rules.kind_speeds)
        if (amount_of(allocation.devices, kind) > 0 && value > 0)
            speed = speed == 0 ? value : std::min(speed, value);
    return speed == 0 ? 1000 : speed;
}
scheduler::Prediction capped(scheduler::Prediction of, Duration limit) {
    if (limit.ms <= 0) return of;
    return {std::min(of.p10, limit), std::min(of.p50, limit), std::min(of.p90, limit)};
}
/// The nearest ranks.
scheduler::Prediction quantiles(std::vector<Duration> lengths) {
    std::ranges::sort(lengths);
    const auto at = [&](std::size_t percent) {
        return lengths[(lengths.size() * percent + 99) / 100 - 1];
    };
    return {at(10), at(50), at(90)};
}

}  // namespace

void add_to(model::Amounts& amounts, std::string_view resource, std::int64_t value) {
    if (value == 0) return;
    auto at = std::ranges::lower_bound(amounts, resource, {}, [](const model::Amount& each) {
        return std::string_view(each.resource);
    });
    if (at == amounts.end() || at->resource != resource)
        at = amounts.insert(at, {std::string(resource), 0});
    at->value += value;
    if (at->value == 0) amounts.erase(at);
}

void add_to(model::Amounts& amounts, const model::Amounts& more, std::int64_t sign) {
    for (const model::Amount& each : more) add_to(amounts, each.resource, sign * each.value);
}

void add_to(model::Amounts& amounts, const Allocation& allocation, std::int64_t sign) {
    std::int64_t cpus = 0, memory = 0;
    for (const Placed& slot : allocation.slots)
        cpus += slot.cpus.value, memory += slot.memory.value;
    add_to(amounts, allocation.devices, sign);
    add_to(amounts, "cpus", sign * cpus);
    add_to(amounts, "memory", sign * memory);
}

std::optional<std::int64_t> named(const model::Amounts& amounts, std::string_view resource) {
    const auto at = std::ranges::lower_bound(amounts, resource, {}, [](const model::Amount& each) {
        return std::string_view(each.resource);
    });
    if (at == amounts.end() || at->resource != resource) return std::nullopt;
    return at->value;
}

std::int64_t amount_of(const model::Amounts& amounts, std::string_view resource) {
    return named(amounts, resource).value_or(0);
}

model::Amounts running_of(const Allocation& allocation) {
    model::Amounts out;
    add_to(out, allocation, 1);
    return out;
}

UsageRate rate_of(const Allocation& allocation) {
    UsageRate rate{allocation.weight, 0, 0};
    for (const Placed& slot : allocation.slots)
        rate.cpus += slot.cpus.value, rate.memory += slot.memory.value >> 20;
    return rate;
}

void weigh(const State& state, Allocation& allocation) {
    const model::SchedulingRules& rules = state.tables.rules;
    allocation.devices.clear();
    allocation.weight = 0;
    const auto add = [&](const model::Device& device, std::int64_t share) {
        add_to(allocation.devices, "gpus", share);
        add_to(allocation.devices, device.kind, share);
        if (device.device_class != device.kind && device.device_class != "gpus")
            add_to(allocation.devices, device.device_class, share);
        const auto weight = std::ranges::find(rules.kind_weights, device.kind,
                                              &std::pair<std::string, std::int64_t>::first);
        allocation.weight +=
            share * (weight == rules.kind_weights.end() ? 1000 : weight->second) / 1000;
    };
    for (const Placed& slot : allocation.slots) {
        const auto& devices = state.tables.nodes.at(slot.node.value).facts->devices;
        // Mostly they are all alike: looked up one by one, added once a kind.
        const model::Device* alike = nullptr;
        std::int64_t share = 0;
        auto at = devices.begin();
        for (const std::string& id : slot.devices) {  // Both are in order; mostly it is the next.
            if (at == devices.end() || at->id != id)
                at = std::ranges::lower_bound(devices, id, {}, &model::Device::id);
            const bool same = alike != nullptr && alike->kind == at->kind &&
                              alike->device_class == at->device_class;
            if (alike != nullptr && !same) add(*alike, share), share = 0;
            alike = &*at;
            share += slot.share == 0 ? 1000 : slot.share;
            ++at;
        }
        if (alike != nullptr) add(*alike, share);
    }
}

const RunTimes* run_times_of(const State& state, UserId user, std::string_view name) {
    const auto& by_name = state.indexes->run_times_by_name;
    const auto of_user = by_name.find(user);
    if (of_user == by_name.end()) return nullptr;
    const auto at = of_user->second.find(name);
    return at == of_user->second.end() ? nullptr : state.tables.run_times.find(at->second);
}

scheduler::Prediction prediction_of(const View& view, const Job& job) {
    return prediction_of(view.shapes.at(job.shape.value), view.predicted.find(job.id.value));
}

scheduler::Prediction prediction_of(const scheduler::Shape& shape,
                                    const scheduler::Prediction* history) {
    const Duration likely = shape.expected_time, limit = shape.time;
    if (likely.ms > 0) return capped({{likely.ms / 2}, likely, {likely.ms + likely.ms / 2}}, limit);
    if (history != nullptr) return capped(*history, limit);
    // People ask for more than they need.
    return {{limit.ms / 10}, {limit.ms / 2}, limit};
}

Time expected_end(const State& state, const Job& job, const Allocation& allocation, Time deadline,
                  const scheduler::Prediction& predicted) {
    const scheduler::Shape& shape = state.tables.shapes.at(job.shape.value);
    Duration length = predicted.p90;
    if (length.ms > 0 && length != shape.time)
        length = scaled(length, speed_of(state.tables.rules, allocation), false);
    if (shape.time.ms > 0 && (length.ms <= 0 || shape.time < length)) length = shape.time;
    Time end = length.ms > 0 ? allocation.at + length : kNever;
    if (deadline.ms != 0 && deadline < end) end = deadline;
    return end;
}

/// With the rate that was until now: before anything of it starts or ends.
void Stepper::advance_usage(QueueId queue, UserId user) {
    const Usage* known = tables_.usage.find(usage_key(queue, user));
    if (known != nullptr && at_ <= known->as_of) return;
    Usage next{queue, user, 0, 0, 0, at_};
    if (known != nullptr) {
        const Duration age = at_ - known->as_of, half_life = tables_.rules.half_life;
        UsageRate rate;
        if (const auto at = index_.usage_rate.find({queue, user}); at != index_.usage_rate.end())
            rate = at->second;
        const auto grown = [&](std::int64_t value, std::int64_t by) {
            return sum(decayed(value, age, half_life), accrued(by, age, half_life));
        };
        next.devices = grown(known->devices, rate.devices);
        next.cpus = grown(known->cpus, rate.cpus);
        next.memory = grown(known->memory, rate.memory);
    }
    record(UsagePut{next});
}

/// What history says of a job that is about to wait.
void Stepper::predict(const Job& waiting) {
    if (index_.run_times_by_name.empty()) return;
    if (tables_.shapes.at(waiting.shape.value).expected_time.ms > 0) return;
    const std::string& name = *tables_.specs.at(waiting.spec.value).name;
    const RunTimes* times = run_times_of(state_, {waiting.user}, name);
    if (times != nullptr) record(PredictedPut{waiting.id, quantiles(times->last)});
}

/// A job of that user and name succeeded after `length`.
void Stepper::remember(const Job& ended, const Allocation& allocation, Duration length) {
    if (length.ms <= 0) return;
    length = scaled(length, speed_of(tables_.rules, allocation), true);
    const std::string& name = *tables_.specs.at(ended.spec.value).name;
    RunTimes next;
    if (const RunTimes* known = run_times_of(state_, {ended.user}, name)) {
        next = *known;
    } else {
        if (length < kRunTimeLeast) return;
        if (tables_.run_times.size() >= kRunTimesMax)
            record(RunTimesDropped{index_.run_times_by_age.begin()->second});
        Meta meta = tables_.meta;
        next.id = meta.next_run_times++;
        put_meta(meta);
        next.user = {ended.user};
        next.name = name;
    }
    next.at = at_;
    next.last.push_back(length);
    if (next.last.size() > kRunTimesKept) next.last.erase(next.last.begin());
    record(RunTimesPut{std::move(next)});
}

}  // namespace muster::core
