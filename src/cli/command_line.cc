// Words to an Invocation, by the table alone.
#include <algorithm>

#include "base/error_codes.h"
#include "base/text.h"
#include "cli/command.h"

namespace muster::cli {
namespace {

constexpr int kUsage = 0;  // Usage errors have no number: `--help` says more than a code could.

Error usage(std::string message, std::string cause, std::string fix) {
    return {Code::Invalid, std::move(message), std::move(cause), std::move(fix), kUsage};
}

const Flag* flag_named(const Command& command, std::string_view word) {
    for (const std::vector<Flag>* flags : {&command.flags, &global_flags()}) {
        for (const Flag& flag : *flags) {
            for (const std::string_view name : split(flag.names, ','))
                if (trim(name) == word) return &flag;
        }
    }
    return nullptr;
}

std::string nearest_flag(const Command& command, std::string_view word) {
    std::vector<std::string> names;
    for (const std::vector<Flag>* flags : {&command.flags, &global_flags()})
        for (const Flag& flag : *flags)
            for (const std::string_view name : split(flag.names, ','))
                if (trim(name).starts_with("--")) names.emplace_back(trim(name));
    return nearest(word, names);
}

Error unknown_flag(const Command& command, std::string_view word) {
    const std::string near = nearest_flag(command, word);
    const std::string help = "`muster " + command.name + " --help` lists its flags";
    return usage(
        std::string(word) + ": unknown flag of `muster " + command.name + "`" +
            (near.empty() ? "" : "; did you mean " + near + "?"),
        "",
        near.empty() ? help : "write " + near + ", or see `muster " + command.name + " --help`");
}

/// Splits the verb's words off `words`.
Result<const Command*> verb_of(std::span<const std::string> words, std::size_t& taken) {
    if (words.size() > 1) {
        if (const Command* pair = find_command(words[0] + " " + words[1])) {
            taken = 2;
            return pair;
        }
    }
    taken = 1;
    if (const Command* one = find_command(words[0])) return one;
    std::vector<std::string> names, below;
    for (const Command& command : commands()) {
        if (command.hidden) continue;
        const std::size_t space = command.name.find(' ');
        names.push_back(command.name.substr(0, space));
        if (space != std::string::npos && command.name.substr(0, space) == words[0])
            below.push_back(command.name.substr(space + 1));
        for (const std::string& alias : command.aliases) names.push_back(alias);
    }
    if (!below.empty()) {
        const std::string list = join(below, ", ");
        if (words.size() < 2)
            return usage("muster " + words[0] + ": say what to do", "it knows " + list,
                         "`muster " + words[0] + " " + below[0] + " --help`");
        const std::string near = nearest(words[1], below);
        return usage("muster " + words[0] + " " + words[1] + ": unknown command" +
                         (near.empty() ? "" : "; did you mean " + near + "?"),
                     "it knows " + list,
                     near.empty() ? "`muster --help`" : "`muster " + words[0] + " " + near + "`");
    }
    const std::string near = nearest(words[0], names);
    return usage(
        "muster " + words[0] + ": unknown command" +
            (near.empty() ? "" : "; did you mean " + near + "?"),
        "", near.empty() ? "`muster --help` lists all commands" : "`muster " + near + " --help`");
}

class Words {
public:
    Words(const Command& command, std::span<const std::string> words)
        : command_(command), words_(words) {
        parsed_.invocation.command = &command;
    }

    Result<Parsed> parse() {
        while (at_ < words_.size()) {
            const std::string& word = words_[at_++];
            if (word == "--") {
                parsed_.invocation.has_rest = true;
                parsed_.invocation.rest.assign(words_.begin() + static_cast<std::ptrdiff_t>(at_),
                                               words_.end());
                at_ = words_.size();
            } else if (word.starts_with("--")) {
                MUSTER_TRY(long_flag(word));
            } else if (word.size() > 1 && word.front() == '-' && !is_number(word)) {
                MUSTER_TRY(short_flags(word));
            } else {
                parsed_.invocation.arguments.push_back(word);
            }
        }
        if (!parsed_.help) MUSTER_TRY(check());
        return std::move(parsed_);
    }

private:
    static bool is_number(const std::string& word) {
        return word.find_first_not_of("0123456789", 1) == std::string::npos;
    }
    Status take(const Flag& flag, std::string_view word, std::optional<std::string> value) {
        const std::string name = flag.name();
        if (name == "help") parsed_.help = true;
        if (flag.metavar.empty()) {
            if (value && *value != "true" && *value != "false")
                return usage(std::string(word) + " takes no value, but got '" + *value + "'", "",
                             "leave out '=" + *value + "'");
            if (value == "false") return Ok{};
        } else if (!value) {
            if (at_ >= words_.size() || (words_[at_].starts_with("--") && words_[at_].size() > 2))
                return usage(std::string(word) + " needs a value", "",
                             "write " + std::string(word) + "=" + flag.metavar);
            value = words_[at_++];
        }
        if (!flag.repeatable && !flag.metavar.empty() && parsed_.invocation.has(name) &&
            parsed_.invocation.value(name) != value)
            return usage(std::string(word) + " is given twice, with different values",
                         "'" + *parsed_.invocation.value(name) + "' and '" + *value + "'",
                         "give it once");
        parsed_.invocation.flags.emplace_back(name, value.value_or(""));
        return Ok{};
    }
    Status long_flag(const std::string& word) {
        const std::size_t equals = word.find('=');
        const std::string name = word.substr(0, equals);
        const Flag* flag = flag_named(command_, name);
        if (flag == nullptr) return unknown_flag(command_, name);
        return take(
            *flag, name,
            equals == std::string::npos ? std::nullopt : std::optional(word.substr(equals + 1)));
    }
    /// "-f", "-fq", "-oyaml", "-o=yaml".
    Status short_flags(const std::string& word) {
        for (std::size_t i = 1; i < word.size(); ++i) {
            const std::string name{'-', word[i]};
            const Flag* flag = flag_named(command_, name);
            if (flag == nullptr) return unknown_flag(command_, i == 1 ? word : name);
            if (flag->metavar.empty()) {
                MUSTER_TRY(take(*flag, name, std::nullopt));
                continue;
            }
            std::string value = word.substr(i + 1);
            if (value.starts_with('=')) value.erase(0, 1);
            return take(*flag, name, i + 1 < word.size() ? std::optional(value) : std::nullopt);
        }
        return Ok{};
    }
    Status check() const {
        const Invocation& given = parsed_.invocation;
        const std::string see = "`muster " + command_.name + " --help`";
        std::size_t least = 0, most = 0;
        for (const Argument& argument : command_.arguments) {
            if (!argument.optional) ++least;
            most = argument.repeated ? SIZE_MAX : most + 1;
        }
        if (given.arguments.size() < least)
            return usage("muster " + command_.name + ": " +
                             command_.arguments[given.arguments.size()].name + " is missing",
                         "", "usage: " + usage_line(command_));
        if (given.arguments.size() > most)
            return usage("muster " + command_.name + ": '" + given.arguments[most] +
                             "' is one word too many",
                         command_.rest.empty() ? "" : "a command to run stands after --",
                         "usage: " + usage_line(command_));
        if (given.has_rest && command_.rest.empty())
            return usage("muster " + command_.name + ": nothing can stand after --", "",
                         "usage: " + usage_line(command_));
        if (command_.rest_needed && given.rest.empty())
            return usage("muster " + command_.name + ": the " + command_.rest + " is missing", "",
                         "usage: " + usage_line(command_));
        for (const auto& [name, value] : given.flags) {
            for (const Flag& flag : command_.flags)
                if (flag.name() == name) MUSTER_TRY(check_choice(flag, value));
            for (const Flag& flag : global_flags())
                if (flag.name() == name) MUSTER_TRY(check_choice(flag, value));
        }
        return Ok{};
    }
    static Status check_choice(const Flag& flag, const std::string& value) {
        if (flag.values.empty() || flag.values.front() == '@') return Ok{};
        std::vector<std::string> choices;
        for (const std::string_view choice : split(flag.values, '|')) {
            if (choice == value || (choice.ends_with('=') && value.starts_with(choice)))
                return Ok{};
            choices.emplace_back(choice);
        }
        const std::string near = nearest(value, choices);
        return usage("--" + flag.name() + ": '" + value + "' is not one of its values" +
                         (near.empty() ? "" : "; did you mean " + near + "?"),
                     "it takes " + join(choices, ", "), "");
    }

    const Command& command_;
    std::span<const std::string> words_;
    std::size_t at_ = 0;
    Parsed parsed_;
};

}  // namespace

std::string Flag::name() const {
    std::string found;
    for (const std::string_view each : split(names, ',')) {
        const std::string_view word = trim(each);
        if (word.starts_with("--")) return std::string(word.substr(2));
        if (word.starts_with('-')) found = word.substr(1);
    }
    return found;
}

bool Invocation::has(std::string_view name) const {
    return value(name).has_value();
}

std::optional<std::string> Invocation::value(std::string_view name) const {
    for (auto it = flags.rbegin(); it != flags.rend(); ++it)
        if (it->first == name) return it->second;
    return std::nullopt;
}

std::string Invocation::value_or(std::string_view name, std::string_view fallback) const {
    return value(name).value_or(std::string(fallback));
}

std::vector<std::string> Invocation::values(std::string_view name) const {
    std::vector<std::string> out;
    for (const auto& [key, value] : flags)
        if (key == name) out.push_back(value);
    return out;
}

const Command* find_command(std::string_view name) {
    for (const Command& command : commands()) {
        if (command.name == name) return &command;
        if (std::find(command.aliases.begin(), command.aliases.end(), name) !=
            command.aliases.end())
            return &command;
    }
    return nullptr;
}

Result<Parsed> parse_command_line(std::span<const std::string> words) {
    // Global flags may stand before the verb.
    static const Command kNone{.name = "", .summary = ""};
    std::size_t verb = 0;
    while (verb < words.size() && words[verb].starts_with('-')) {
        const std::string name = words[verb].substr(0, words[verb].find('='));
        const Flag* flag = flag_named(kNone, name);
        if (flag == nullptr) {
            return usage(name + ": unknown flag before the command", "",
                         "`muster --help` lists commands and flags");
        }
        if (flag->name() == "help") return Parsed{.invocation = {}, .help = true};
        verb += !flag->metavar.empty() && name == words[verb] ? 2 : 1;
    }
    if (verb >= words.size()) return Parsed{.invocation = {}, .help = true};
    std::size_t taken = 0;
    MUSTER_LET(command, verb_of(words.subspan(verb), taken));
    std::vector<std::string> left(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(verb));
    left.insert(left.end(), words.begin() + static_cast<std::ptrdiff_t>(verb + taken), words.end());
    if (command->raw) {
        Parsed parsed;
        parsed.invocation.command = command;
        parsed.invocation.arguments.assign(
            words.begin() + static_cast<std::ptrdiff_t>(verb + taken), words.end());
        return parsed;
    }
    return Words(*command, left).parse();
}

}  // namespace muster::cli
