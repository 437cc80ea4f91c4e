#include "spec/queue_reader.h"

#include <algorithm>

namespace muster::spec {
namespace {

constexpr std::int64_t kDevicesMax = std::int64_t{1} << 30;
constexpr std::int64_t kClusterBytesMax = std::int64_t{1} << 60;
constexpr std::int64_t kCountMax = 1'000'000'000;
constexpr std::size_t kWordsMax = 10'000;
constexpr std::size_t kResourcesMax = 64;

struct Row {
    QueueField field;
    void (*read)(QueueReader&, const Value&);
};

void put(model::Amounts& all, model::Amount amount) {
    const auto at = std::lower_bound(
        all.begin(), all.end(), amount.resource,
        [](const model::Amount& a, const std::string& name) { return a.resource < name; });
    if (at != all.end() && at->resource == amount.resource)
        *at = std::move(amount);
    else
        all.insert(at, std::move(amount));
}

void read_user_limit(QueueReader& in, const Value& v) {
    if (!in.adds) {
        in.settings->user_limit.clear();
        in.settings->user_max_jobs = in.settings->user_max_pending = -1;
    }
    for (const Entry& entry : in.entries(v, "{gpus: 8, jobs: 20}")) {
        const Reader::Within within(in, entry.key);
        if (entry.key == "jobs")
            in.count(entry.value, in.settings->user_max_jobs, kCountMax);
        else if (entry.key == "pending")
            in.count(entry.value, in.settings->user_max_pending, kCountMax);
        else
            in.read_amount(entry, in.settings->user_limit);
    }
}

void read_job_limit(QueueReader& in, const Value& v) {
    if (!in.adds) in.settings->job_limit.clear(), in.settings->max_time = {};
    for (const Entry& entry : in.entries(v, "{gpus: 64, time: 2d}")) {
        const Reader::Within within(in, entry.key);
        if (entry.key != "time") {
            in.read_amount(entry, in.settings->job_limit);
            continue;
        }
        if (entry.value.kind == Value::Kind::Scalar && entry.value.text == "none")
            in.settings->max_time = {};
        else if (const auto time = in.duration(entry.value, seconds(1), kDurationMax))
            in.settings->max_time = *time;
    }
}

void read_default(QueueReader& in, const Value& v) {
    if (!in.adds) in.settings->default_time = {}, in.settings->default_priority = 50;
    for (const Entry& entry : in.entries(v, "{time: 1h, priority: 40}")) {
        if (entry.key != "time" && entry.key != "priority") {
            in.unknown_part(entry, {"time", "priority"});
            continue;
        }
        const Reader::Within within(in, entry.key);
        if (entry.key == "time") {
            if (const auto time = in.duration(entry.value, seconds(1), kDurationMax))
                in.settings->default_time = *time;
        } else if (const auto priority = in.integer(entry.value, 0, 100)) {
            in.settings->default_priority = *priority;
        }
    }
}

void read_aging(QueueReader& in, const Value& v) {
    if (v.kind == Value::Kind::Scalar && v.text == "none") {
        in.settings->aging = {};
        return;
    }
    for (const Entry& entry : in.entries(v, "{every: 1h, max: 20}")) {
        if (entry.key != "every" && entry.key != "max") {
            in.unknown_part(entry, {"every", "max"});
            continue;
        }
        const Reader::Within within(in, entry.key);
        if (entry.key == "every") {
            if (const auto every = in.duration(entry.value, seconds(1), kDurationMax))
                in.settings->aging = *every;
        } else if (const auto most = in.integer(entry.value, 0, 100)) {
            in.settings->aging_max = *most;
        }
    }
}

const Row kQueueRows[] = {
    {{"guarantee", "{gpus: 64, h100: 32}", "nothing",
      "Its own: lent to others while idle, always given back."},
     [](QueueReader& in, const Value& v) { in.read_amounts(v, in.settings->guarantee); }},
    {{"limit", "{gpus: 128}", "no bound", "Never above it, borrowed or not."},
     [](QueueReader& in, const Value& v) { in.read_amounts(v, in.settings->limit); }},
    {{"borrow_limit", "{gpus: 16}", "no bound", "At most so much above the guarantee."},
     [](QueueReader& in, const Value& v) { in.read_amounts(v, in.settings->borrow_limit); }},
    {{"lend_limit", "{gpus: 8}", "no bound",
      "At most so much of an idle guarantee is lent; the rest stays free."},
     [](QueueReader& in, const Value& v) { in.read_amounts(v, in.settings->lend_limit); }},
    {{"weight", "2", "1", "Of what is shared beyond guarantees, against its siblings."},
     [](QueueReader& in, const Value& v) {
         constexpr std::int64_t kLow = 10, kHigh = 10'000'000;  // 0.01 to 10,000.
         const auto weight = in.thousandths(v, kLow, kHigh);
         if (!weight) return;
         if (*weight % 10 != 0)
             return in.fail(v, shorten(v.text) + ": at most two decimals (0.25)");
         in.settings->weight = *weight / 10;
     }},
    {{"policy", "fair", "priority",
      "Order of its jobs: fifo, priority, fair, shortest (predicted first) or las (least served "
      "first)."},
     [](QueueReader& in, const Value& v) {
         if (const auto policy = in.choice(v, kPolicyNames))
             in.settings->policy = static_cast<model::QueuePolicy>(*policy);
     }},
    {{"max_jobs", "100", "no bound", "Jobs that run at once."},
     [](QueueReader& in, const Value& v) { in.count(v, in.settings->max_jobs, kCountMax); }},
    {{"max_pending", "5000", "no bound", "Jobs that wait; more are refused at submit."},
     [](QueueReader& in, const Value& v) { in.count(v, in.settings->max_pending, kCountMax); }},
    {{"user_limit", "{gpus: 8, jobs: 20, pending: 500}", "no bound",
      "Of one user: resources and number of running jobs, and of jobs that wait."},
     read_user_limit},
    {{"job_limit", "{gpus: 64, time: 2d}", "no bound", "Of one job; more is refused at submit."},
     read_job_limit},
    {{"users", "[ana, wei]", "everyone", "Who may use it, beside the members of groups."},
     [](QueueReader& in, const Value& v) { in.read_words(v, in.settings->users); }},
    {{"groups", "[nlp]", "everyone", "Groups of the operating system whose members may use it."},
     [](QueueReader& in, const Value& v) { in.read_words(v, in.settings->groups); }},
    {{"preemptible", "false", "true", "Whether its jobs may be stopped for others."},
     [](QueueReader& in, const Value& v) {
         if (const auto value = in.flag(v)) in.settings->preemptible = *value;
     }},
    {{"min_runtime", "10m", "5m", "A job is not preempted before it ran so long."},
     [](QueueReader& in, const Value& v) {
         if (const auto time = in.duration(v, {}, kDurationMax)) in.settings->min_runtime = *time;
     }},
    {{"default", "{time: 1h, priority: 40}", "no time, priority 50", "Of jobs that do not say."},
     read_default},
    {{"aging", "{every: 1h, max: 20}", "none",
      "One priority point more for each `every` of waiting, at most `max`."},
     read_aging},
};

const Row kRuleRows[] = {
    {{"half_life", "7d", "7d", "Past use counts half after it."},
     [](QueueReader& in, const Value& v) {
         if (const auto time = in.duration(v, {60'000}, kDurationMax)) in.rules.half_life = *time;
     }},
    {{"weights", "{h100: 1, a100: 0.5}", "1 each",
      "What a device of a kind costs in shares, against others."},
     [](QueueReader& in, const Value& v) { in.read_kinds(v, in.rules.kind_weights); }},
    {{"speeds", "{h100: 1, a100: 0.45}", "1 each",
      "How fast a kind works, against the one that expected_time speaks of."},
     [](QueueReader& in, const Value& v) { in.read_kinds(v, in.rules.kind_speeds); }},
    {{"backfill", "conservative", "easy",
      "easy: the first blocked jobs of each kind of device get a window; conservative: all do."},
     [](QueueReader& in, const Value& v) {
         static const std::vector<std::string> kNames = {"easy", "conservative"};
         if (const auto name = in.choice(v, kNames)) in.rules.conservative = *name == 1;
     }},
    {{"bookings", "8", "8", "Blocked jobs of each kind of device that get a window (easy)."},
     [](QueueReader& in, const Value& v) {
         if (const auto n = in.integer(v, 1, 256)) in.rules.bookings_max = *n;
     }},
    {{"reclaim_per_minute", "512", "512",
      "Devices that owners may take back in a minute, in the whole cluster."},
     [](QueueReader& in, const Value& v) {
         if (const auto n = in.integer(v, 1, kDevicesMax)) in.rules.reclaim_per_minute = *n;
     }},
    {{"preemptions_max", "5", "5", "A job that was preempted so often is a victim no more."},
     [](QueueReader& in, const Value& v) {
         if (const auto n = in.integer(v, 0, 1'000'000)) in.rules.preemptions_max = *n;
     }},
    {{"defragment", "false", "true",
      "Whether jobs with checkpoints may be moved to make room for a large one."},
     [](QueueReader& in, const Value& v) {
         if (const auto value = in.flag(v)) in.rules.defragment = *value;
     }},
    {{"resize_min_interval", "30m", "30m", "Between two changes of an elastic job's size."},
     [](QueueReader& in, const Value& v) {
         if (const auto time = in.duration(v, {}, kDurationMax))
             in.rules.resize_min_interval = *time;
     }},
};

std::vector<QueueField> fields_of(std::span<const Row> rows) {
    std::vector<QueueField> fields;
    for (const Row& row : rows) fields.push_back(row.field);
    return fields;
}
std::vector<std::string> names_of(std::span<const Row> rows) {
    std::vector<std::string> names;
    for (const Row& row : rows) names.emplace_back(row.field.name);
    return names;
}

bool is_queue_name(std::string_view name) {
    constexpr std::size_t kNameMax = 63;
    return !name.empty() && name.size() <= kNameMax && name.front() != '-' &&
           std::all_of(name.begin(), name.end(), [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '.' || c == '_' || c == '-';
           });
}

}  // namespace

const std::vector<std::string> kPolicyNames = {"priority", "fifo", "fair", "shortest", "las"};

std::vector<QueueField> queue_fields() {
    return fields_of(kQueueRows);
}
std::vector<QueueField> rule_fields() {
    return fields_of(kRuleRows);
}

std::optional<std::int64_t> QueueReader::thousandths(const Value& value, std::int64_t low,
                                                     std::int64_t high) {
    const auto written = scalar(value);
    if (!written) return std::nullopt;
    const std::size_t dot = std::min(written->find('.'), written->size());
    const std::string_view whole = written->substr(0, dot);
    const bool digits = !whole.empty() && whole.find_first_not_of("0123456789") == whole.npos;
    const auto units = parse_integer(whole, 0, high / 1000);
    std::string rest(written->substr(std::min(dot + 1, written->size())));
    const bool decimals = dot == written->size() || (!rest.empty() && rest.size() <= 3);
    rest.resize(3, '0');
    const auto parts = parse_integer(rest, 0, 999);
    const bool plain = rest.find_first_not_of("0123456789") == rest.npos;
    if (digits && units && decimals && parts && plain) {
        const std::int64_t all = *units * 1000 + *parts;
        if (low <= all && all <= high) return all;
    }
    const std::string limit = format_cpus({low}) + ".." + format_cpus({high});
    fail(value,
         shorten(*written) + ": must be a number in " + limit + " with at most three decimals",
         {.limit = limit});
    return std::nullopt;
}

void QueueReader::count(const Value& value, std::int64_t& out, std::int64_t high) {
    if (value.kind == Value::Kind::Scalar && value.text == "none")
        out = -1;
    else if (const auto number = integer(value, 0, high))
        out = *number;
}

std::string QueueReader::resource_name(const Entry& entry) {
    std::string name = lower(entry.key);
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789._+-";
    if (!name.empty() && name.size() <= 64 && name.find_first_not_of(kLetters) == name.npos &&
        name.front() != '-')
        return name;
    fail(scalar_value(entry.key, entry.source, entry.at),
         "not a resource; write gpus, cpus, memory, or a kind or class of device (h100, npu)");
    return {};
}

void QueueReader::read_amount(const Entry& entry, model::Amounts& out) {
    const std::string name = resource_name(entry);
    if (name.empty()) return;
    const auto same = [&](const model::Amount& amount) { return amount.resource == name; };
    if (entry.value.kind == Value::Kind::Scalar && entry.value.text == "none") {
        out.erase(std::remove_if(out.begin(), out.end(), same), out.end());
        return;
    }
    if (out.size() >= kResourcesMax && std::none_of(out.begin(), out.end(), same))
        return fail(entry.value,
                    "more than the limit of " + std::to_string(kResourcesMax) + " resources");
    if (name == "memory") {
        if (const auto size = bytes(entry.value, kClusterBytesMax)) put(out, {name, size->value});
    } else if (const auto number = thousandths(entry.value, 0, kDevicesMax * 1000)) {
        put(out, {name, *number});
    }
}

void QueueReader::read_amounts(const Value& value, model::Amounts& out) {
    if (!adds) out.clear();
    for (const Entry& entry : entries(value, "{gpus: 64, h100: 32}")) {
        const Within within(*this, entry.key);
        read_amount(entry, out);
    }
}

void QueueReader::read_kinds(const Value& value,
                             std::vector<std::pair<std::string, std::int64_t>>& out) {
    if (!adds) out.clear();
    for (const Entry& entry : entries(value, "{h100: 1, a100: 0.5}")) {
        const Within within(*this, entry.key);
        const std::string name = resource_name(entry);
        if (name.empty()) continue;
        const auto number = thousandths(entry.value, 1, 1'000'000);
        if (!number) continue;
        std::erase_if(out, [&](const auto& known) { return known.first == name; });
        out.emplace_back(name, *number);
    }
    std::sort(out.begin(), out.end());
}

void QueueReader::read_words(const Value& value, std::vector<std::string>& out) {
    out.clear();
    const auto list = items(value);
    if (list.size() > kWordsMax)
        return fail(value, std::to_string(list.size()) + " names, over the limit of " +
                               std::to_string(kWordsMax));
    for (const Value& item : list)
        if (const auto word = text(item, 256)) {
            for (const std::string_view part : split(*word, ','))
                if (!trim(part).empty()) out.emplace_back(trim(part));
        }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
}

std::optional<std::size_t> QueueReader::choice(const Value& value,
                                               std::span<const std::string> names) {
    const auto written = scalar(value);
    if (!written) return std::nullopt;
    const auto found = std::find(names.begin(), names.end(), *written);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
    const std::string near = nearest(*written, names);
    fail(value,
         shorten(*written) + ": must be one of " + join(names, ", ") +
             (near.empty() ? "" : "; did you mean " + near + "?"),
         {.limit = join(names, ", "), .suggestion = near});
    return std::nullopt;
}

void QueueReader::read_settings(const Value& map) {
    for (const Entry& entry : entries(map, "{weight: 2}")) {
        if (entry.key == "queues" && !alone) continue;
        const auto row =
            std::find_if(std::begin(kQueueRows), std::end(kQueueRows),
                         [&](const Row& each) { return each.field.name == entry.key; });
        if (row == std::end(kQueueRows)) {
            std::vector<std::string> known = names_of(kQueueRows);
            if (!alone) known.emplace_back("queues");
            fail_unknown(entry, known);
            continue;
        }
        const Within within(*this, row->field.name);
        row->read(*this, entry.value);
    }
}

std::string contradiction(const model::QueueSettings& settings) {
    if (settings.default_time.ms == 0 || settings.max_time.ms == 0 ||
        settings.default_time <= settings.max_time)
        return {};
    return "default.time " + format_duration(settings.default_time) +
           " is longer than job_limit.time " + format_duration(settings.max_time);
}

void QueueReader::read_rules(const Value& value) {
    for (const Entry& entry : entries(value, "{half_life: 7d}")) {
        const auto row =
            std::find_if(std::begin(kRuleRows), std::end(kRuleRows),
                         [&](const Row& each) { return each.field.name == entry.key; });
        if (row == std::end(kRuleRows)) {
            fail_unknown(entry, names_of(kRuleRows));
            continue;
        }
        const Within within(*this, row->field.name);
        row->read(*this, entry.value);
    }
}

void QueueReader::read_queues(const Value& value) {
    if (value.kind != Value::Kind::List) return read_level(value, "", 1);
    for (const Value& item : value.items) {
        const auto name = scalar(item);
        if (!name) continue;
        add_queue({.key = std::string(*name), .source = item.source, .at = item.at, .value = {}},
                  "", 1);
    }
}

void QueueReader::read_level(const Value& map, const std::string& above, std::size_t depth) {
    if (depth > kQueueDepthMax)
        return fail(map, "deeper than the limit of " + std::to_string(kQueueDepthMax) +
                             " queues inside each other");
    for (const Entry& entry : entries(map, "{research: {weight: 2}, batch: {}}")) {
        const Within within(*this, entry.key);
        add_queue(entry, above, depth);
    }
}

void QueueReader::add_queue(const Entry& entry, const std::string& above, std::size_t depth) {
    const Value place = scalar_value(entry.key, entry.source, entry.at);
    if (!is_queue_name(entry.key))
        return fail(place, shorten(entry.key) +
                               ": not a queue's name; at most 63 letters, digits, . _ and - (a "
                               "queue inside another stands under its `queues`)");
    const std::string name = above.empty() ? entry.key : above + "/" + entry.key;
    constexpr std::size_t kWholeNameMax = 128;
    if (name.size() > kWholeNameMax)
        return fail(place, name + ": longer than the limit of " + std::to_string(kWholeNameMax) +
                               " bytes with the queues above it");
    if (queues.size() >= kQueuesMax)
        return fail(place, "more than the limit of " + std::to_string(kQueuesMax) + " queues");
    model::Queue queue;
    queue.name = name;
    settings = &queue.settings;
    if (entry.value.kind != Value::Kind::Null) read_settings(entry.value);
    settings = nullptr;
    if (const std::string error = contradiction(queue.settings); !error.empty())
        fail(entry.value, errors::kJobFieldsConflict, error);
    queues.push_back(std::move(queue));
    places_.push_back({entry.source, entry.at});
    for (const Entry& part : entry.value.entries) {
        if (part.key != "queues") continue;
        const Within within(*this, "queues");
        read_level(part.value, name, depth + 1);
    }
}

void QueueReader::check_tree() {
    for (const Contradiction& each : find_contradictions(queues)) {
        const Place& place = places_[each.queue];
        fail(scalar_value("", place.source, place.at), errors::kJobFieldsConflict,
             queues[each.queue].name + ": " + each.message);
    }
    std::sort(queues.begin(), queues.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
}

}  // namespace muster::spec
