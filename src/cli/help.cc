// --help, docs/cli.md and the man page, out of the table of commands.
#include <algorithm>

#include "base/text.h"
#include "cli/command.h"
#include "cli/width.h"

namespace muster::cli {
namespace {

struct GroupName {
    Group group;
    std::string_view title;
};
constexpr GroupName kGroups[] = {{Group::Jobs, "Jobs"},
                                 {Group::Cluster, "Cluster"},
                                 {Group::Admin, "Administration"},
                                 {Group::Client, "This client"}};

std::string paragraphs(std::string_view text, std::size_t width) {
    std::string out;
    for (const std::string_view line : split(text, '\n')) {
        // Lines that begin with a space are kept as they are.
        out += line.starts_with(' ') ? std::string(line) : wrap(line, width, 0);
        out += '\n';
    }
    return out;
}

std::string flag_head(const Flag& flag) {
    std::string out;
    for (const std::string_view name : split(flag.names, ',')) {
        out += (out.empty() ? "" : ", ");
        out += trim(name);
    }
    if (!out.starts_with("--") && out.starts_with('-'))
        return out + (flag.metavar.empty() ? "" : " " + flag.metavar);
    return out + (flag.metavar.empty() ? "" : " " + flag.metavar);
}

std::string flag_help(const Flag& flag) {
    return flag.help + (flag.repeatable ? " (may be repeated)" : "");
}

std::string flag_list(const std::vector<Flag>& flags, std::size_t width) {
    constexpr std::size_t kIndent = 30;
    std::string out;
    for (const Flag& flag : flags) {
        std::string head = "  " + flag_head(flag);
        const std::size_t used = display_width(head);
        if (used + 2 > kIndent) {
            head += '\n';
            head.append(kIndent, ' ');
        } else {
            head.append(kIndent - used, ' ');
        }
        out += head + wrap(flag_help(flag), width, kIndent) + "\n";
    }
    return out;
}

std::string roff(std::string_view plain) {
    std::string text(plain);
    for (std::size_t at; (at = text.find("…")) != std::string::npos;) text.replace(at, 3, "...");
    std::string out;
    for (const char c : text) {
        if (c == '\\')
            out += "\\e";
        else if (c == '-')
            out += "\\-";
        else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n'))
            out += "\\&", out += c;
        else
            out += c;
    }
    return out;
}

std::string markdown_cell(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '|' || c == '<') out += '\\';
        out += c;
    }
    return out;
}

std::string markdown_flags(const std::vector<Flag>& flags) {
    std::string out = "| flag | what it does |\n|---|---|\n";
    for (const Flag& flag : flags) {
        std::string head = flag_head(flag);
        std::string escaped;
        for (const char c : head) escaped += c == '|' ? "\\|" : std::string(1, c);
        out += "| `" + escaped + "` | " + markdown_cell(flag_help(flag)) + " |\n";
    }
    return out;
}

std::string markdown_of(const Command& command) {
    std::string out = "### muster " + command.name + "\n\n" + command.summary + ".\n\n";
    out += "    " + usage_line(command) + "\n\n";
    if (!command.aliases.empty()) out += "Also: `" + join(command.aliases, "`, `") + "`.\n\n";
    if (!command.details.empty()) {
        bool code = false;
        for (const std::string_view line : split(command.details, '\n')) {
            const bool now = line.starts_with(' ');
            if (now && !code) out += "\n";
            code = now;
            out += (now ? "    " + std::string(line.substr(line.find_first_not_of(' ')))
                        : std::string(line)) +
                   "\n";
        }
        out += "\n";
    }
    if (!command.flags.empty()) out += markdown_flags(command.flags) + "\n";
    if (!command.examples.empty()) {
        out += "```\n";
        for (const Example& example : command.examples)
            out +=
                "$ " + example.line + (example.what.empty() ? "" : "   # " + example.what) + "\n";
        out += "```\n\n";
    }
    return out;
}

constexpr std::string_view kExitCodes[][2] = {
    {"0", "all well"},
    {"1", "an error without a better number"},
    {"2", "the command line is wrong"},
    {"3", "not found"},
    {"4", "not signed in, or not allowed"},
    {"5", "conflicts with the present state, or a precondition failed"},
    {"6", "rejected by validation or a limit"},
    {"7", "the controller cannot be reached, or timed out"},
    {"8", "the job can never be placed here"},
    {"125", "with `--wait`, `wait` and `exec`: muster itself failed, not the job"},
    {"126", "`exec`: the command cannot be run"},
    {"127", "`exec`: there is no such command"},
};

}  // namespace

std::string usage_line(const Command& command) {
    std::string out = "muster " + command.name;
    if (!command.flags.empty()) out += " [FLAGS]";
    for (const Argument& argument : command.arguments) {
        const std::string name = argument.name + (argument.repeated ? "…" : "");
        out += argument.optional ? " [" + name + "]" : " " + name;
    }
    if (!command.rest.empty())
        out += command.rest_needed ? " -- " + command.rest + "…" : " [-- " + command.rest + "…]";
    return out;
}

std::string help_text(const Command& command, std::size_t width) {
    std::string out = command.summary + "\n\nUsage: " + usage_line(command) + "\n";
    if (!command.aliases.empty()) out += "Also:  " + join(command.aliases, ", ") + "\n";
    if (!command.details.empty()) out += "\n" + paragraphs(command.details, width);
    if (!command.examples.empty()) {
        out += "\nExamples:\n";
        for (const Example& example : command.examples) {
            out += "  " + example.line;
            if (!example.what.empty()) {
                const std::size_t used = display_width(example.line) + 2;
                out.append(used < 44 ? 44 - used : 2, ' ');
                out += "# " + example.what;
            }
            out += "\n";
        }
    }
    if (!command.flags.empty()) out += "\nFlags:\n" + flag_list(command.flags, width);
    out += "\nGlobal flags:\n" + flag_list(global_flags(), width);
    return out;
}

std::string overview_text(std::size_t width) {
    std::string out =
        "muster: the brain of a GPU cluster\n\n"
        "Usage: muster COMMAND [FLAGS] [ARGUMENTS]\n\n"
        "  muster up                           a controller and an agent on this machine\n"
        "  muster run -- python3 train.py      run a command as a job\n"
        "  muster run job.yaml --follow        run a job file and watch it\n"
        "  muster ps; muster why JOB           what is there, and why it waits\n";
    for (const GroupName& group : kGroups) {
        out += "\n" + std::string(group.title) + ":\n";
        for (const Command& command : commands()) {
            if (command.hidden || command.group != group.group) continue;
            std::string head = "  " + command.name;
            head.append(head.size() < 18 ? 18 - head.size() : 2, ' ');
            out += head + wrap(command.summary, width, 18) + "\n";
        }
    }
    out += "\nGlobal flags:\n" + flag_list(global_flags(), width);
    out += "\n`muster COMMAND --help` says more; `muster explain CODE` explains an error.\n";
    return out;
}

std::string reference_markdown() {
    std::string out =
        "# The muster command\n\nGenerated from the table in src/cli/command_table.cc; `muster "
        "COMMAND --help` prints the same.\n\n"
        "## Global flags\n\n" +
        markdown_flags(global_flags()) + "\n";
    out += "## Exit codes\n\n| code | meaning |\n|---|---|\n";
    for (const auto& [code, meaning] : kExitCodes)
        out += "| " + std::string(code) + " | " + std::string(meaning) + " |\n";
    out +=
        "\n`run --wait`, `run --follow`, `run --pty`, `wait`, `attach` and `exec` end with the "
        "job's or command's own exit code, and with 128 + N after signal N.\n\n";
    for (const GroupName& group : kGroups) {
        out += "## " + std::string(group.title) + "\n\n";
        for (const Command& command : commands())
            if (!command.hidden && command.group == group.group) out += markdown_of(command);
    }
    while (out.ends_with("\n\n")) out.pop_back();
    return out;
}

std::string man_page() {
    std::string out =
        ".TH MUSTER 1 \"\" \"muster\" \"User commands\"\n.SH NAME\nmuster \\- run jobs on an AI "
        "cluster\n.SH SYNOPSIS\n.B muster\n.I COMMAND\n[FLAGS] [ARGUMENTS]\n.SH GLOBAL FLAGS\n";
    const auto flags = [&](const std::vector<Flag>& list) {
        for (const Flag& flag : list)
            out += ".TP\n.B " + roff(flag_head(flag)) + "\n" + roff(flag_help(flag)) + "\n";
    };
    flags(global_flags());
    for (const GroupName& group : kGroups) {
        std::string title(group.title);
        std::transform(title.begin(), title.end(), title.begin(),
                       [](char c) { return static_cast<char>(std::toupper(c)); });
        out += ".SH " + title + "\n";
        for (const Command& command : commands()) {
            if (command.hidden || command.group != group.group) continue;
            out += ".SS " + roff(usage_line(command)) + "\n" + roff(command.summary) + ".\n";
            for (const std::string_view line : split(command.details, '\n'))
                if (!line.empty())
                    out += (line.starts_with(' ') ? ".br\n" : ".PP\n") + roff(trim(line)) + "\n";
            flags(command.flags);
            for (const Example& example : command.examples)
                out +=
                    ".PP\n.RS\n" + roff(example.line) + "\n.br\n" + roff(example.what) + "\n.RE\n";
        }
    }
    out += ".SH EXIT STATUS\n";
    for (const auto& [code, meaning] : kExitCodes)
        out += ".TP\n.B " + std::string(code) + "\n" + roff(meaning) + "\n";
    return out;
}

}  // namespace muster::cli
