#include "spec/queue_file.h"

#include <algorithm>
#include <map>

#include "spec/place.h"
#include "spec/queue_reader.h"
#include "spec/yaml_out.h"

namespace muster::spec {
namespace {

using model::Amounts;
using model::Queue;
using model::QueueSettings;
using model::SchedulingRules;

std::string parent_of(const std::string& name) {
    const std::size_t slash = name.rfind('/');
    return slash == std::string::npos ? std::string() : name.substr(0, slash);
}

std::int64_t amount_of(const Amounts& amounts, std::string_view resource) {
    for (const model::Amount& amount : amounts)
        if (amount.resource == resource) return amount.value;
    return 0;
}
bool names(const Amounts& amounts, std::string_view resource) {
    return std::any_of(amounts.begin(), amounts.end(),
                       [&](const model::Amount& amount) { return amount.resource == resource; });
}
std::string amount_text(std::string_view resource, std::int64_t value) {
    return resource == "memory" ? exact_bytes({value}) : format_cpus({value});
}

class QueueRenderer {
public:
    std::string render(const QueueFile& file) && {
        for (const Queue& queue : file.queues) below_[parent_of(queue.name)].push_back(&queue);
        out_.map(false);
        if (!file.queues.empty()) {
            out_.key("queues");
            write_level("");
        }
        if (file.rules) write_rules(*file.rules);
        out_.end();
        return std::move(out_).take();
    }

private:
    void word(std::string_view key, const std::string& value) {
        out_.key(key);
        out_.plain(value, false);
    }
    void number(std::string_view key, std::int64_t value) { word(key, std::to_string(value)); }
    void amounts(const Amounts& all) {
        for (const model::Amount& amount : all)
            word(amount.resource, amount_text(amount.resource, amount.value));
    }
    void amounts(std::string_view key, const Amounts& all) {
        if (all.empty()) return;
        begin(key);
        amounts(all);
        out_.end();
    }
    void begin(std::string_view key) {
        out_.key(key);
        out_.map(true);
    }
    void words(std::string_view key, const std::vector<std::string>& all) {
        if (all.empty()) return;
        out_.key(key);
        out_.list();
        for (const std::string& each : all) out_.text(each);
        out_.end();
    }

    void write_level(const std::string& above) {
        out_.map(false);
        for (const Queue* queue : below_[above]) {
            out_.key(std::string_view(queue->name).substr(above.empty() ? 0 : above.size() + 1));
            const bool leaf = below_.find(queue->name) == below_.end();
            out_.map(leaf && queue->settings == QueueSettings{});  // "{}".
            write_settings(queue->settings);
            if (!leaf) {
                out_.key("queues");
                write_level(queue->name);
            }
            out_.end();
        }
        out_.end();
    }
    void write_settings(const QueueSettings& s) {
        const QueueSettings usual;
        amounts("guarantee", s.guarantee);
        amounts("limit", s.limit);
        amounts("borrow_limit", s.borrow_limit);
        amounts("lend_limit", s.lend_limit);
        if (s.weight != usual.weight) word("weight", format_cpus({s.weight * 10}));
        if (s.policy != usual.policy)
            word("policy", kPolicyNames[static_cast<std::size_t>(s.policy)]);
        if (s.max_jobs >= 0) number("max_jobs", s.max_jobs);
        if (s.max_pending >= 0) number("max_pending", s.max_pending);
        if (!s.user_limit.empty() || s.user_max_jobs >= 0 || s.user_max_pending >= 0) {
            begin("user_limit");
            amounts(s.user_limit);
            if (s.user_max_jobs >= 0) number("jobs", s.user_max_jobs);
            if (s.user_max_pending >= 0) number("pending", s.user_max_pending);
            out_.end();
        }
        if (!s.job_limit.empty() || s.max_time.ms > 0) {
            begin("job_limit");
            amounts(s.job_limit);
            if (s.max_time.ms > 0) word("time", format_duration(s.max_time));
            out_.end();
        }
        words("users", s.users);
        words("groups", s.groups);
        if (!s.preemptible) word("preemptible", "false");
        if (s.min_runtime != usual.min_runtime) word("min_runtime", format_duration(s.min_runtime));
        if (s.default_time.ms > 0 || s.default_priority != usual.default_priority) {
            begin("default");
            if (s.default_time.ms > 0) word("time", format_duration(s.default_time));
            if (s.default_priority != usual.default_priority)
                number("priority", s.default_priority);
            out_.end();
        }
        if (s.aging.ms > 0 || s.aging_max != usual.aging_max) {
            begin("aging");
            if (s.aging.ms > 0) word("every", format_duration(s.aging));
            if (s.aging_max != usual.aging_max) number("max", s.aging_max);
            out_.end();
        }
    }
    void kinds(std::string_view key, const std::vector<std::pair<std::string, std::int64_t>>& all) {
        if (all.empty()) return;
        begin(key);
        for (const auto& [kind, value] : all) word(kind, format_cpus({value}));
        out_.end();
    }
    void write_rules(const SchedulingRules& rules) {
        const SchedulingRules usual;
        out_.key("rules");
        out_.map(rules == usual);  // "{}".
        if (rules.half_life != usual.half_life) word("half_life", format_duration(rules.half_life));
        kinds("weights", rules.kind_weights);
        kinds("speeds", rules.kind_speeds);
        if (rules.conservative) word("backfill", "conservative");
        if (rules.bookings_max != usual.bookings_max) number("bookings", rules.bookings_max);
        if (rules.reclaim_per_minute != usual.reclaim_per_minute)
            number("reclaim_per_minute", rules.reclaim_per_minute);
        if (rules.preemptions_max != usual.preemptions_max)
            number("preemptions_max", rules.preemptions_max);
        if (!rules.defragment) word("defragment", "false");
        if (rules.resize_min_interval != usual.resize_min_interval)
            word("resize_min_interval", format_duration(rules.resize_min_interval));
        out_.end();
    }

    YamlOut out_;
    std::map<std::string, std::vector<const Queue*>> below_;
};

/// "limit.gpus=64" as the tree of {limit: {gpus: 64}}.
Tree read_assignment(const std::string& text, std::uint16_t source, bool& dotted) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
        return SyntaxError{0, "must be FIELD=VALUE, as in weight=2 or limit.gpus=64"};
    const std::string key = text.substr(0, equals), value = text.substr(equals + 1);
    Tree tree = !value.empty() && (value[0] == '{' || value[0] == '[')
                    ? read_yaml(value, source)
                    : Tree(scalar_value(value, source));
    if (std::holds_alternative<SyntaxError>(tree)) return tree;
    Value inner = std::get<Value>(std::move(tree));
    const std::size_t dot = key.find('.');
    dotted = dot != std::string::npos;
    const auto wrap = [&](const std::string& name, Value held) {
        Value map;
        map.kind = Value::Kind::Map;
        map.source = source;
        map.entries.push_back({.key = name, .source = source, .at = 0, .value = std::move(held)});
        return map;
    };
    if (dotted) inner = wrap(key.substr(dot + 1), std::move(inner));
    return wrap(key.substr(0, dot), std::move(inner));
}

template <class Read>
Problems assign(QueueReader& reader, std::span<const Source> sources, Read read) {
    Problems problems;
    for (std::size_t i = 0; i < sources.size(); ++i) {
        if (auto bad = check_text(sources[i], kQueueFileMax, "a value")) {
            problems.push_back(std::move(*bad));
            continue;
        }
        Tree tree = read_assignment(std::string(sources[i].text), static_cast<std::uint16_t>(i),
                                    reader.adds);
        if (const auto* error = std::get_if<SyntaxError>(&tree)) {
            problems.push_back(
                problem_in(sources[i], error->at, errors::kJobSyntax, error->message));
        } else {
            read(std::get<Value>(tree));
        }
    }
    Problems found = std::move(reader).problems();
    problems.insert(problems.end(), std::make_move_iterator(found.begin()),
                    std::make_move_iterator(found.end()));
    return problems;
}

std::vector<Source> assignment_sources(std::span<const std::string> assignments) {
    std::vector<Source> sources;
    for (const std::string& text : assignments) {
        const std::size_t end = std::min(text.find('.'), text.find('='));
        sources.push_back({text.substr(0, end), true, text});
    }
    return sources;
}

}  // namespace

std::vector<Contradiction> find_contradictions(std::span<const Queue> queues) {
    std::map<std::string_view, std::size_t> by_name;
    for (std::size_t i = 0; i < queues.size(); ++i) by_name.emplace(queues[i].name, i);
    std::vector<Contradiction> found;
    std::map<std::size_t, std::map<std::string_view, std::int64_t>> sums;  // Of the children's.
    for (std::size_t i = 0; i < queues.size(); ++i) {
        const QueueSettings& own = queues[i].settings;
        for (const model::Amount& each : own.guarantee)
            if (names(own.limit, each.resource) && each.value > amount_of(own.limit, each.resource))
                found.push_back(
                    {i, "guarantee of " + amount_text(each.resource, each.value) + " " +
                            each.resource + " is above its limit, " +
                            amount_text(each.resource, amount_of(own.limit, each.resource))});
        const std::string above = parent_of(queues[i].name);
        if (above.empty()) continue;
        const auto parent = by_name.find(above);
        if (parent == by_name.end()) {
            found.push_back({i, "there is no queue " + above + " above it"});
            continue;
        }
        for (const model::Amount& each : own.guarantee) {
            std::int64_t& sum = sums[parent->second][each.resource];
            if (__builtin_add_overflow(sum, each.value, &sum)) sum = INT64_MAX;
        }
    }
    for (const auto& [parent, resources] : sums)
        for (const auto& [resource, sum] : resources) {
            const std::int64_t own = amount_of(queues[parent].settings.guarantee, resource);
            if (sum <= own) continue;
            const std::string all = amount_text(resource, sum) + " " + std::string(resource);
            found.push_back({parent, "the queues below it are guaranteed " + all + ", it has " +
                                         amount_text(resource, own) +
                                         "; give it a guarantee of at least " + all});
        }
    return found;
}

std::vector<std::string> check_queues(std::span<const Queue> queues) {
    std::vector<std::string> lines;
    for (const Contradiction& each : find_contradictions(queues))
        lines.push_back(queues[each.queue].name + ": " + each.message);
    return lines;
}

std::variant<QueueFile, Problems> parse_queue_file(std::string_view text, const std::string& file) {
    const std::vector<Source> sources = {{file, false, text}};
    if (auto bad = check_text(sources[0], kQueueFileMax, "a queue file"))
        return Problems{std::move(*bad)};
    const Tree tree = read_yaml(text, 0);
    QueueReader reader(sources);
    if (const auto* error = std::get_if<SyntaxError>(&tree)) {
        reader.fail(scalar_value("", 0, error->at), errors::kJobSyntax, error->message);
        return std::move(reader).problems();
    }
    const Value& root = std::get<Value>(tree);
    QueueFile out;
    if (root.kind != Value::Kind::Map)
        reader.fail(root,
                    "a queue file is a map with queues, rules or both, as in \"queues: "
                    "{research: {weight: 2}}\"");
    else
        for (const Entry& entry : reader.entries(root, "{queues: {}}")) {
            const Reader::Within within(reader, entry.key);
            if (entry.key == "queues") {
                reader.read_queues(entry.value);
            } else if (entry.key == "rules") {
                reader.read_rules(entry.value);
                out.rules.emplace();
            } else {
                static const std::string kKnown[] = {"queues", "rules"};
                const std::string near = nearest(entry.key, kKnown);
                reader.fail(scalar_value("", entry.source, entry.at), errors::kJobUnknownField,
                            "unknown key; " + (near.empty() ? "known here: queues, rules"
                                                            : "did you mean " + near + "?"));
            }
        }
    reader.check_tree();
    out.queues = std::move(reader.queues);
    if (out.rules) out.rules = std::move(reader.rules);
    Problems problems = std::move(reader).problems();
    if (!problems.empty()) return problems;
    return out;
}

Problems set_queue(Queue& queue, std::span<const std::string> assignments) {
    const std::vector<Source> sources = assignment_sources(assignments);
    QueueReader reader(sources);
    Queue changed = queue;
    reader.settings = &changed.settings;
    reader.alone = true;
    Problems problems =
        assign(reader, sources, [&](const Value& map) { reader.read_settings(map); });
    if (const std::string error = contradiction(changed.settings);
        problems.empty() && !error.empty())
        problems.push_back({.number = errors::kJobFieldsConflict, .message = error});
    if (problems.empty()) queue = std::move(changed);
    return problems;
}

Problems set_rules(SchedulingRules& rules, std::span<const std::string> assignments) {
    const std::vector<Source> sources = assignment_sources(assignments);
    QueueReader reader(sources);
    reader.rules = rules;
    Problems problems = assign(reader, sources, [&](const Value& map) { reader.read_rules(map); });
    if (problems.empty()) rules = std::move(reader.rules);
    return problems;
}

std::string to_yaml(const QueueFile& file) {
    return QueueRenderer().render(file);
}

}  // namespace muster::spec
