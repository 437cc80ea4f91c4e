#include "model/queue.h"

#include <array>

#include "base/bytes.h"

namespace muster::model {
namespace {

constexpr std::uint64_t kVersion = 2;  // 1: an id and a name, all settings as usual.
constexpr std::uint64_t kRulesVersion = 1;

constexpr std::array<std::string_view, 5> kPolicies = {"priority", "fifo", "fair", "shortest",
                                                       "las"};

using Numbers = std::vector<std::pair<std::string, std::int64_t>>;

void put(Writer& out, const Amounts& amounts) {
    out.number(amounts.size());
    for (const Amount& amount : amounts) out.text(amount.resource), out.signed_number(amount.value);
}
void put(Writer& out, const std::vector<std::string>& names) {
    out.number(names.size());
    for (const std::string& name : names) out.text(name);
}
void put(Writer& out, const Numbers& numbers) {
    out.number(numbers.size());
    for (const auto& [name, number] : numbers) out.text(name), out.signed_number(number);
}
void get(Reader& in, Amounts& amounts) {
    for (std::size_t n = in.count(); n > 0 && in.ok(); --n) {
        Amount& amount = amounts.emplace_back();
        amount.resource = in.text();
        amount.value = in.signed_number();
    }
}
void get(Reader& in, std::vector<std::string>& names) {
    for (std::size_t n = in.count(); n > 0 && in.ok(); --n) names.emplace_back(in.text());
}
void get(Reader& in, Numbers& numbers) {
    for (std::size_t n = in.count(); n > 0 && in.ok(); --n) {
        std::string name(in.text());
        numbers.emplace_back(std::move(name), in.signed_number());
    }
}

void put(Writer& out, const QueueSettings& settings) {
    for (const Amounts* amounts : {&settings.guarantee, &settings.limit, &settings.borrow_limit,
                                   &settings.lend_limit, &settings.user_limit, &settings.job_limit})
        put(out, *amounts);
    out.number(static_cast<std::uint64_t>(settings.policy));
    for (const std::int64_t n :
         {settings.weight, settings.max_jobs, settings.max_pending, settings.user_max_jobs,
          settings.user_max_pending, settings.min_runtime.ms, settings.default_time.ms,
          settings.default_priority, settings.max_time.ms, settings.aging.ms, settings.aging_max})
        out.signed_number(n);
    put(out, settings.users);
    put(out, settings.groups);
    out.flag(settings.preemptible);
}
/// False: a policy that is none.
bool get(Reader& in, QueueSettings& settings) {
    for (Amounts* amounts : {&settings.guarantee, &settings.limit, &settings.borrow_limit,
                             &settings.lend_limit, &settings.user_limit, &settings.job_limit})
        get(in, *amounts);
    const std::uint64_t policy = in.number();
    if (policy >= kPolicies.size()) return false;
    settings.policy = static_cast<QueuePolicy>(policy);
    for (std::int64_t* n :
         {&settings.weight, &settings.max_jobs, &settings.max_pending, &settings.user_max_jobs,
          &settings.user_max_pending, &settings.min_runtime.ms, &settings.default_time.ms,
          &settings.default_priority, &settings.max_time.ms, &settings.aging.ms,
          &settings.aging_max})
        *n = in.signed_number();
    get(in, settings.users);
    get(in, settings.groups);
    settings.preemptible = in.flag();
    return true;
}

}  // namespace

std::string_view to_text(QueuePolicy policy) {
    return kPolicies[static_cast<std::size_t>(policy)];
}
std::optional<QueuePolicy> parse_queue_policy(std::string_view text) {
    for (std::size_t i = 0; i < kPolicies.size(); ++i)
        if (kPolicies[i] == text) return static_cast<QueuePolicy>(i);
    return std::nullopt;
}

std::string encode(const Queue& queue) {
    Writer out;
    out.number(kVersion);
    out.number(queue.id.value);
    out.text(queue.name);
    out.number(queue.parent.value);
    put(out, queue.settings);
    return std::move(out).bytes();
}

std::optional<Queue> decode_queue(std::string_view bytes) {
    Reader in(bytes);
    const std::uint64_t version = in.number();
    if (version < 1 || version > kVersion) return std::nullopt;
    Queue queue;
    queue.id.value = in.number();
    queue.name = in.text();
    if (version >= 2) {
        queue.parent.value = in.number();
        if (!get(in, queue.settings)) return std::nullopt;
    }
    if (!in.ok() || !in.at_end()) return std::nullopt;
    return queue;
}

std::string encode(const SchedulingRules& rules) {
    Writer out;
    out.number(kRulesVersion);
    for (const std::int64_t n : {rules.half_life.ms, rules.bookings_max, rules.reclaim_per_minute,
                                 rules.preemptions_max, rules.resize_min_interval.ms})
        out.signed_number(n);
    put(out, rules.kind_weights);
    put(out, rules.kind_speeds);
    out.flag(rules.conservative);
    out.flag(rules.defragment);
    return std::move(out).bytes();
}

std::optional<SchedulingRules> decode_scheduling_rules(std::string_view bytes) {
    Reader in(bytes);
    if (in.number() != kRulesVersion) return std::nullopt;
    SchedulingRules rules;
    for (std::int64_t* n : {&rules.half_life.ms, &rules.bookings_max, &rules.reclaim_per_minute,
                            &rules.preemptions_max, &rules.resize_min_interval.ms})
        *n = in.signed_number();
    get(in, rules.kind_weights);
    get(in, rules.kind_speeds);
    rules.conservative = in.flag();
    rules.defragment = in.flag();
    if (!in.ok() || !in.at_end()) return std::nullopt;
    return rules;
}

}  // namespace muster::model
