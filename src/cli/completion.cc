// muster completion bash|zsh|fish, and the hidden __complete that their scripts call.
#include <algorithm>

#include <sys/stat.h>

#include "base/error_codes.h"
#include "base/hash.h"
#include "base/text.h"
#include "cli/files.h"
#include "cli/verbs.h"
#include "cli/width.h"

namespace muster::cli::verbs {
namespace {

constexpr Duration kBudget{150};
constexpr std::int64_t kCacheMs = 5000;

constexpr std::string_view kBash =
    R"sh(# bash completion of muster: eval "$(muster completion bash)"
_muster() {
    local IFS=$'\n' line cur="${COMP_WORDS[COMP_CWORD]}"
    COMPREPLY=()
    [ "$cur" = "=" ] && cur=""
    while read -r line; do
        if [ "$line" = ":files" ]; then
            COMPREPLY+=($(compgen -f -- "$cur"))
            compopt -o filenames 2>/dev/null
        else
            COMPREPLY+=("${line%%$'\t'*}")
        fi
    done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    case "${COMPREPLY[0]}" in *=) compopt -o nospace 2>/dev/null ;; esac
}
complete -F _muster muster
)sh";

constexpr std::string_view kZsh = R"sh(#compdef muster
# zsh completion of muster: eval "$(muster completion zsh)"
_muster() {
    local - a shown local line while IFS = read - r line;
    do
        if
            [["$line" == ":files"]];
    then _files else shown +=
        ("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")fi done < <
            ("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2 > / dev / null)((${#shown})) &&
        _describe muster shown
}
compdef _muster muster
)sh";

constexpr std::string_view kFish = R"sh(# fish completion of muster: muster completion fish | source
function __muster_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in (muster __complete $words[2..-1] 2>/dev/null)
        if test "$line" = ":files"
            __fish_complete_path (commandline -ct)
        else
            echo $line
        end
    end
end
complete -c muster -f -a "(__muster_complete)"
)sh";

struct Candidate {
    std::string word;
    std::string help;
};
using Candidates = std::vector<Candidate>;

/// What `source` is fetched from, and the fields that make word and help.
struct Dynamic {
    std::string_view source;
    std::string_view target;
    std::string_view items;
    std::string_view word;
    std::string_view help;
};
constexpr Dynamic kDynamic[] = {
    {"@jobs", "/v1/jobs?limit=200&fields=id,name,state", "items", "id", "name"},
    {"@queues", "/v1/queues", "items", "name", ""},
    {"@nodes", "/v1/nodes?limit=500&fields=name,state", "items", "name", "state"},
    {"@kinds", "/v1/gpus?devices=0", "kinds", "kind", "class"},
    {"@users", "/v1/users", "items", "name", ""},
    {"@reservations", "/v1/reservations", "items", "name", ""},
    {"@tokens", "/v1/tokens", "items", "id", "kind"},
};

Candidates parse_cached(std::string_view text) {
    Candidates out;
    for (const std::string_view line : split(text, '\n')) {
        if (line.empty()) continue;
        const std::size_t tab = line.find('\t');
        out.push_back({std::string(line.substr(0, tab)),
                       tab == std::string_view::npos ? "" : std::string(line.substr(tab + 1))});
    }
    return out;
}

Candidates from_controller(App& app, const Dynamic& dynamic) {
    const auto client = app.client();
    if (!client) return {};
    const std::string folder = app.world().cache_dir();
    Fnv where;
    where.add((*client)->where());
    const std::string path = folder + "/complete-" + std::string(dynamic.source.substr(1)) + "-" +
                             std::to_string(where.hash());
    struct stat info {};
    if (!folder.empty() && ::stat(path.c_str(), &info) == 0 &&
        app.now().ms - (info.st_mtim.tv_sec * 1000 + info.st_mtim.tv_nsec / 1'000'000) < kCacheMs) {
        if (const auto text = read_file(path)) return parse_cached(*text);
    }
    (*client)->set_patience({0}, {0});
    (*client)->set_timeout(kBudget);
    const auto answer = (*client)->get(std::string(dynamic.target));
    if (!answer) return {};
    std::string text;
    for (Json item = answer->root()[dynamic.items].first(); item.exists(); item = item.next()) {
        text += printable(item[dynamic.word].text()) + "\t";
        if (!dynamic.help.empty()) text += printable(item[dynamic.help].text());
        text += "\n";
    }
    if (!folder.empty()) {
        // A cache that cannot be written only costs time.
        [[maybe_unused]] const Status kept = write_file(path, text, 0600);
    }
    return parse_cached(text);
}

Candidates values_of(App& app, std::string_view source) {
    if (source.empty()) return {};
    if (source == "@files") return {{":files", ""}};
    if (source == "@codes") {
        Candidates out;
        for (const ErrorCode& entry : error_codes())
            out.push_back({error_name(entry.number), std::string(entry.title)});
        return out;
    }
    if (source == "@contexts") {
        Candidates out;
        for (const std::string& name : app.config().contexts()) out.push_back({name, ""});
        return out;
    }
    if (source == "@settings") {
        Candidates out;
        for (const SettingKey& key : setting_keys())
            out.push_back({std::string(key.key), std::string(key.help)});
        return out;
    }
    if (source.front() == '@') {
        for (const Dynamic& dynamic : kDynamic)
            if (dynamic.source == source) return from_controller(app, dynamic);
        return {};
    }
    Candidates out;
    for (const std::string_view each : split(source, '|')) out.push_back({std::string(each), ""});
    return out;
}

const Flag* flag_of(const Command& command, std::string_view word) {
    for (const std::vector<Flag>* flags : {&command.flags, &global_flags()})
        for (const Flag& flag : *flags)
            for (const std::string_view name : split(flag.names, ','))
                if (trim(name) == word) return &flag;
    return nullptr;
}

Candidates flags_of(const Command& command) {
    Candidates out;
    for (const std::vector<Flag>* flags : {&command.flags, &global_flags()})
        for (const Flag& flag : *flags)
            for (const std::string_view name : split(flag.names, ','))
                out.push_back({std::string(trim(name)), flag.help});
    return out;
}

/// The first or, after `group`, the second word of commands.
Candidates verbs_below(std::string_view group) {
    Candidates out;
    for (const Command& command : commands()) {
        if (command.hidden) continue;
        const std::size_t space = command.name.find(' ');
        const std::string head = command.name.substr(0, space);
        if (group.empty()) {
            const bool known = std::any_of(out.begin(), out.end(),
                                           [&](const Candidate& c) { return c.word == head; });
            if (!known) out.push_back({head, command.summary});
            for (const std::string& alias : command.aliases)
                out.push_back({alias, command.summary});
        } else if (head == group && space != std::string::npos) {
            out.push_back({command.name.substr(space + 1), command.summary});
        }
    }
    return out;
}

/// Only what begins with `typed`; `:files` always.
Candidates matching(Candidates all, std::string_view typed) {
    std::erase_if(all, [&](const Candidate& candidate) {
        return candidate.word != ":files" && !candidate.word.starts_with(typed);
    });
    return all;
}

Candidates candidates_for(App& app, std::vector<std::string> words) {
    std::string typed;
    if (!words.empty()) {
        typed = words.back();
        words.pop_back();
    }
    // bash breaks "--flag=value" at the "=".
    if (typed == "=")
        typed.clear();
    else if (!words.empty() && words.back() == "=")
        words.pop_back();
    if (std::find(words.begin(), words.end(), "--") != words.end()) return {{":files", ""}};
    if (words.empty()) {
        if (typed.starts_with('-')) return matching(flags_of(Command{}), typed);
        return matching(verbs_below(""), typed);
    }
    const Command* command = words.size() > 1 ? find_command(words[0] + " " + words[1]) : nullptr;
    std::size_t taken = 2;
    if (command == nullptr) {
        taken = 1;
        command = find_command(words[0]);
    }
    if (command == nullptr)
        return words.size() == 1 ? matching(verbs_below(words[0]), typed) : Candidates{};
    if (const std::size_t equals = typed.find('=');
        typed.starts_with("--") && equals != std::string::npos) {
        const Flag* flag = flag_of(*command, typed.substr(0, equals));
        if (flag == nullptr) return {};
        Candidates all = matching(values_of(app, flag->values), typed.substr(equals + 1));
        for (Candidate& each : all)
            if (each.word != ":files") each.word = typed.substr(0, equals + 1) + each.word;
        return all;
    }
    const Flag* before = flag_of(*command, words.back());
    if (before != nullptr && !before->metavar.empty())
        return matching(values_of(app, before->values), typed);
    if (typed.starts_with('-')) return matching(flags_of(*command), typed);
    std::size_t position = 0;
    for (std::size_t i = taken; i < words.size(); ++i) {
        const Flag* flag = flag_of(*command, words[i]);
        if (flag != nullptr) {
            if (!flag->metavar.empty()) ++i;
        } else if (!words[i].starts_with('-')) {
            ++position;
        }
    }
    if (command->arguments.empty()) return {};
    const Argument* argument = position < command->arguments.size() ? &command->arguments[position]
                               : command->arguments.back().repeated ? &command->arguments.back()
                                                                    : nullptr;
    return argument == nullptr ? Candidates{} : matching(values_of(app, argument->values), typed);
}

}  // namespace

int completion(App& app, const Invocation& invocation) {
    const std::string shell = invocation.argument(0);
    if (shell == "bash")
        app.out().write(kBash);
    else if (shell == "zsh")
        app.out().write(kZsh);
    else if (shell == "fish")
        app.out().write(kFish);
    else {
        app.fail({Code::Invalid, "there is no completion for '" + shell + "'", "",
                  "it is one of bash, zsh, fish"});
        return exit_codes::kUsage;
    }
    return exit_codes::kOk;
}

int complete(App& app, const Invocation& invocation) {
    for (const Candidate& each : candidates_for(app, invocation.arguments))
        app.out().write(each.word + (each.help.empty() ? "" : "\t" + each.help) + "\n");
    return exit_codes::kOk;
}

}  // namespace muster::cli::verbs
