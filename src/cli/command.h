// The one table of commands. The parser, --help, docs/cli.md, the man page and the completions all
// read it, so that none can know a verb or a flag the others do not.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace muster::cli {

class App;
struct Invocation;

struct Flag {
    std::string names;    // "-o,--output"; the last long one is its name.
    std::string metavar;  // "" for a switch.
    std::string help;
    bool repeatable = false;
    std::string values =
        {};  // What completion offers: "table|wide", or "@jobs", "@nodes", "@files".
    std::string name() const;  // "output"
};

struct Argument {
    std::string name;  // "JOB"
    bool optional = false;
    bool repeated = false;
    std::string values = {};  // As Flag::values.
};

enum class Group { Jobs, Cluster, Admin, Client };

struct Example {
    std::string line;
    std::string what;
};

struct Command {
    std::string name;  // "run", "node drain"
    std::vector<std::string> aliases = {};
    Group group = Group::Jobs;
    std::string summary;       // One line, no full stop.
    std::string details = {};  // Paragraphs for --help and the docs.
    std::vector<Argument> arguments = {};
    std::string rest = {};  // Name of what may stand after "--": "COMMAND"; "": nothing may.
    bool rest_needed = false;
    std::vector<Flag> flags = {};
    std::vector<Example> examples = {};
    bool hidden = false;
    bool raw = false;       // All words go to `run` unparsed.
    bool tolerant = false;  // Runs even when the configuration is not valid.
    int (*run)(App&, const Invocation&) = nullptr;
};

/// In the order of the help page.
const std::vector<Command>& commands();
/// Flags every command takes.
const std::vector<Flag>& global_flags();
/// By name or alias, of one or two words; nullptr if there is none.
const Command* find_command(std::string_view name);

/// What the user typed, checked against a Command.
struct Invocation {
    const Command* command = nullptr;
    std::vector<std::string> arguments;
    std::vector<std::string> rest;  // After "--".
    bool has_rest = false;
    std::vector<std::pair<std::string, std::string>> flags;  // Name and value, in order.

    bool has(std::string_view name) const;
    /// The last one given; nullopt when absent.
    std::optional<std::string> value(std::string_view name) const;
    std::string value_or(std::string_view name, std::string_view fallback) const;
    std::vector<std::string> values(std::string_view name) const;
    std::string argument(std::size_t index) const {
        return index < arguments.size() ? arguments[index] : std::string();
    }
};

struct Parsed {
    Invocation invocation;
    bool help = false;
};
/// `words` without the program's name. Code::Invalid with a spelling suggestion otherwise.
Result<Parsed> parse_command_line(std::span<const std::string> words);

/// "muster run [FLAGS] [FILE] [-- COMMAND…]"
std::string usage_line(const Command& command);
std::string help_text(const Command& command, std::size_t width);
std::string overview_text(std::size_t width);
/// docs/cli.md and the man page, as they have to be.
std::string reference_markdown();
std::string man_page();

}  // namespace muster::cli
