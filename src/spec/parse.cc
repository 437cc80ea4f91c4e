#include "spec/parse.h"

#include <algorithm>

#include "base/utf8.h"
#include "spec/normaliser.h"
#include "spec/place.h"

namespace muster::spec {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::size_t kFlagsMax = 10'000;

bool ends_with(std::string_view text, std::string_view end) {
    return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

constexpr std::string_view kScript =
    "a shell script; this version of Muster does not read #SBATCH scripts (run it with \"muster "
    "run "
    "-- bash FILE\", or write a job file)";

bool is_script(std::string_view text) {
    return text.substr(0, 2) == "#!" || text.substr(0, 7) == "#SBATCH" ||
           text.find("\n#SBATCH") != std::string_view::npos;
}

std::optional<Problem> check_job_text(const Source& source) {
    if (!source.is_flag && source.text.substr(0, 2) == "#!" && source.text.size() <= kJobFileMax)
        return problem_in(source, 0, errors::kJobUnsupported, std::string(kScript));
    return check_text(source, kJobFileMax, "a job");
}

/// JSON is tried first where the text begins like an object of it.
bool looks_like_json(std::string_view text) {
    constexpr std::string_view kSpace = " \t\r\n";
    const std::size_t brace = text.find_first_not_of(kSpace);
    if (brace == std::string_view::npos || text[brace] != '{') return false;
    const std::size_t next = text.find_first_not_of(kSpace, brace + 1);
    return next != std::string_view::npos && (text[next] == '"' || text[next] == '}');
}

Tree read_tree(std::string_view text, const ParseOptions& options) {
    switch (options.format) {
        case Format::Json: return read_json(text, 0);
        case Format::Yaml: return read_yaml(text, 0);
        case Format::Auto: break;
    }
    if (ends_with(options.file, ".json")) return read_json(text, 0);
    if (!looks_like_json(text)) return read_yaml(text, 0);
    Tree tree = read_json(text, 0);
    if (std::holds_alternative<Value>(tree)) return tree;
    Tree yaml = read_yaml(text, 0);  // {"gpus": 8, run: x} is YAML and not JSON.
    return std::holds_alternative<Value>(yaml) ? yaml : tree;
}

std::string dashed(std::string_view name) {
    std::string out = "--" + std::string(name);
    std::replace(out.begin(), out.end(), '_', '-');
    return out;
}

bool is_map(Type type) {
    return type == Type::Texts || type == Type::Variables || type == Type::Sweep ||
           type == Type::Roles;
}
bool is_list(Type type) {
    return type == Type::Mounts || type == Type::LogRules || type == Type::Depends ||
           type == Type::Constraint;
}
/// A field that may be written as a map or list takes a flag's text that begins like one as YAML.
bool takes_yaml(Type type) {
    return is_map(type) || is_list(type) || type == Type::Restart || type == Type::Checkpoint ||
           type == Type::Gpus || type == Type::Topology;
}

class FlagMerger {
public:
    FlagMerger(Value& root, std::vector<Source>& sources, Problems& problems)
        : root_(root), sources_(sources), problems_(problems) {}

    /// `first` is the source of the first of them.
    void merge(std::span<const FlagText> flags, std::size_t first) {
        for (std::size_t i = 0; i < flags.size(); ++i) {
            const Field* field = find_flag(flags[i].field);
            const auto source = static_cast<std::uint16_t>(first + i);
            if (field == nullptr) {
                problems_.push_back(unknown(source, flags[i]));
                continue;
            }
            if (const auto bad = check_job_text(sources_[source])) {
                problems_.push_back(*bad);
                continue;
            }
            const auto same = [&](const FlagText& other) {
                return find_flag(other.field) == field;
            };
            if (!field->repeatable &&
                std::any_of(flags.begin(), flags.begin() + static_cast<std::ptrdiff_t>(i), same)) {
                problems_.push_back(
                    problem_in(sources_[source], 0, errors::kJobFieldsConflict, "given twice"));
                continue;
            }
            Tree value = read(*field, flags[i].text, source);
            if (const auto* error = std::get_if<SyntaxError>(&value))
                problems_.push_back(
                    problem_in(sources_[source], 0, errors::kJobSyntax, error->message));
            else
                put(*field, std::get<Value>(std::move(value)));
        }
    }

    bool has(std::string_view name) { return find(root_, name) != nullptr; }
    /// One value of the job, in place of what the document says.
    void set(std::string_view name, Value value) {
        Entry* entry = find(root_, name);
        if (entry == nullptr) {
            entry = &root_.entries.emplace_back();
            entry->key = std::string(name);
        }
        entry->source = value.source;
        entry->at = value.at;
        entry->value = std::move(value);
    }

private:
    static Entry* find(Value& map, std::string_view key) {
        for (Entry& entry : map.entries)
            if (entry.key == key) return &entry;
        return nullptr;
    }

    Problem unknown(std::uint16_t source, const FlagText& flag) const {
        std::vector<std::string> names;
        for (const Field& field : job_fields()) names.emplace_back(field.name);
        std::string word = flag.field;
        std::replace(word.begin(), word.end(), '-', '_');
        const std::string near = nearest(word, names);
        Problem problem = problem_in(sources_[source], 0, errors::kJobUnknownField, "unknown flag");
        if (!near.empty()) problem.message += "; did you mean " + dashed(near) + "?";
        problem.suggestion = near;
        return problem;
    }

    static Tree read(const Field& field, const std::string& text, std::uint16_t source) {
        if (takes_yaml(field.type) && !text.empty() && (text[0] == '{' || text[0] == '['))
            return read_yaml(text, source);
        if (!is_map(field.type)) return scalar_value(text, source);
        const std::size_t equals = text.find('=');
        if (equals == std::string::npos)
            return SyntaxError{0, shorten(text) + ": must be " + std::string(field.metavar)};
        Value map;
        map.kind = Value::Kind::Map;
        map.source = source;
        Entry& entry = map.entries.emplace_back();
        entry.key = text.substr(0, equals);
        entry.source = source;
        Tree value = read_entry(field, text.substr(equals + 1), source);
        if (std::holds_alternative<SyntaxError>(value)) return value;
        entry.value = std::get<Value>(std::move(value));
        return map;
    }

    static Tree read_entry(const Field& field, std::string text, std::uint16_t source) {
        const bool yaml = !text.empty() && (text[0] == '{' || text[0] == '[');
        if (field.type == Type::Roles || (field.type == Type::Sweep && yaml))
            return read_yaml(text, source);
        if (field.type != Type::Sweep || text.find(',') == std::string::npos)
            return scalar_value(std::move(text), source);
        Value list;
        list.kind = Value::Kind::List;
        list.source = source;
        for (const std::string_view part : split(text, ','))
            list.items.push_back(scalar_value(std::string(part), source));
        return list;
    }

    void put(const Field& field, Value value) {
        Entry* known = find(root_, field.name);
        if (known == nullptr || known->value.kind == Value::Kind::Null)
            return set(field.name, std::move(value));
        Value& old = known->value;
        if (is_map(field.type) && old.kind == Value::Kind::Map && value.kind == Value::Kind::Map) {
            for (Entry& entry : value.entries) {
                Entry* same = find(old, entry.key);
                // A flag overrides the document, but two flags contradict each other.
                if (same != nullptr && same->source == 0)
                    *same = std::move(entry);
                else
                    old.entries.push_back(std::move(entry));
            }
            return;
        }
        if (!is_list(field.type)) return set(field.name, std::move(value));
        if (old.kind != Value::Kind::List) {
            Value list;
            list.kind = Value::Kind::List;
            list.source = old.source;
            list.at = old.at;
            list.items.push_back(std::move(old));
            old = std::move(list);
        }
        if (value.kind != Value::Kind::List) return old.items.push_back(std::move(value));
        for (Value& item : value.items) old.items.push_back(std::move(item));
    }

    Value& root_;
    std::vector<Source>& sources_;
    Problems& problems_;
};

}  // namespace

std::string shell_quote(std::span<const std::string> words) {
    constexpr std::string_view kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
    std::string out;
    for (const std::string& word : words) {
        if (!out.empty()) out += ' ';
        // A first word with '=' would be an assignment.
        const bool assigns = out.empty() && word.find('=') != std::string::npos;
        if (!word.empty() && !assigns && word.find_first_not_of(kPlain) == std::string::npos) {
            out += word;
            continue;
        }
        out += '\'';
        for (const char c : word) {
            if (c == '\'')
                out += "'\\''";
            else
                out += c;
        }
        out += '\'';
    }
    return out;
}

ParsedJob parse_job(std::string_view text, const ParseOptions& options) {
    return parse_job(text, {}, {}, options);
}

ParsedJob parse_job(std::string_view text, std::span<const FlagText> flags,
                    std::span<const std::string> command, const ParseOptions& options) {
    if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark)
        text.remove_prefix(kByteOrderMark.size());
    std::vector<Source> sources = {{options.file, false, text}};
    if (flags.size() > kFlagsMax)
        return Problems{problem_in(sources[0], 0, errors::kJobTooLarge,
                                   std::to_string(flags.size()) + " flags, over the limit of " +
                                       std::to_string(kFlagsMax))};
    for (const FlagText& flag : flags) sources.push_back({dashed(flag.field), true, flag.text});
    if (auto bad = check_job_text(sources[0])) return Problems{std::move(*bad)};
    Tree tree = read_tree(text, options);
    if (const auto* error = std::get_if<SyntaxError>(&tree))
        return Problems{
            is_script(text)
                ? problem_in(sources[0], 0, errors::kJobUnsupported, std::string(kScript))
                : problem_in(sources[0], error->at, errors::kJobSyntax, error->message)};
    Value root = std::get<Value>(std::move(tree));
    if (root.kind == Value::Kind::Null && (!flags.empty() || !command.empty()))
        root.kind = Value::Kind::Map;

    if (root.kind != Value::Kind::Map && root.kind != Value::Kind::Null && is_script(text))
        return Problems{problem_in(sources[0], 0, errors::kJobUnsupported, std::string(kScript))};

    Problems problems;
    const std::string run = shell_quote(command);
    std::vector<FlagText> defaults;  // Those that nothing else sets.
    if (root.kind == Value::Kind::Map) {
        FlagMerger merger(root, sources, problems);
        merger.merge(flags, 1);
        if (!command.empty()) {
            const auto is_run = [](const FlagText& flag) { return flag.field == "run"; };
            if (std::any_of(flags.begin(), flags.end(), is_run))
                problems.push_back({.number = errors::kJobFieldsConflict,
                                    .flag = "--run",
                                    .message = "a command after -- is given too"});
            sources.push_back({"command", true, run});
            merger.set("run", scalar_value(run, static_cast<std::uint16_t>(sources.size() - 1)));
        }
        const std::size_t first = sources.size();
        for (const FlagText& each : options.defaults) {
            const Field* field = find_flag(each.field);
            if (field != nullptr && merger.has(field->name)) continue;
            defaults.push_back(each);
            sources.push_back({"default " + each.field, true, each.text});
        }
        merger.merge(defaults, first);
    }
    Normaliser normaliser(sources, options);
    normaliser.read(root);
    model::JobSpec spec = std::move(normaliser.spec);
    Problems found = std::move(normaliser).problems();
    problems.insert(problems.begin(), std::make_move_iterator(found.begin()),
                    std::make_move_iterator(found.end()));
    if (!problems.empty()) return problems;
    return spec;
}

}  // namespace muster::spec
