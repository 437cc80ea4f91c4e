#include "cli/config_file.h"

#include <algorithm>
#include <functional>

#include <sys/stat.h>
#include <yaml-cpp/yaml.h>

#include "base/text.h"
#include "cli/files.h"
#include "spec/fields.h"

namespace muster::cli {
namespace {

/// A value as one line that the job parser reads back: flow YAML for lists and maps.
std::string flow_text(const YAML::Node& node) {
    if (node.IsScalar()) return node.Scalar();
    YAML::Emitter out;
    out.SetSeqFormat(YAML::Flow);
    out.SetMapFormat(YAML::Flow);
    out << node;
    return out.c_str();
}

class FileReader {
public:
    FileReader(std::string path, FileKind kind, std::vector<std::string>& problems)
        : path_(std::move(path)), kind_(kind), problems_(problems) {}

    ConfigFile read(const std::string& text) {
        YAML::Node root;
        try {
            root = YAML::Load(text);
            if (!root.IsNull()) file_of(root);
        } catch (const YAML::Exception& error) {
            problems_.push_back(path_ + ":" + std::to_string(error.mark.line + 1) + ":" +
                                std::to_string(error.mark.column + 1) + ": " + error.msg);
        }
        return std::move(file_);
    }

private:
    std::string line_of(const YAML::Node& node) const {
        return path_ + ":" + std::to_string(node.Mark().line + 1);
    }
    void problem(const YAML::Node& node, const std::string& what) {
        problems_.push_back(line_of(node) + ":" + std::to_string(node.Mark().column + 1) + ": " +
                            what);
    }
    void unknown(const YAML::Node& at, std::vector<std::string> known) {
        const std::string near = nearest(at.Scalar(), known);
        problem(at, at.Scalar() + ": unknown key" +
                        (near.empty() ? "; it may have " + join(known, ", ")
                                      : "; did you mean " + near + "?"));
    }
    bool is_map(const YAML::Node& node, const std::string& what) {
        if (node.IsMap()) return true;
        problem(node, what + " must be a map");
        return false;
    }

    void file_of(const YAML::Node& root) {
        if (!is_map(root, "the file")) return;
        std::vector<std::string> known;
        if (kind_ == FileKind::Client) {
            known.emplace_back("contexts");
            for (const SettingKey& key : setting_keys()) known.emplace_back(key.key);
        } else {
            known = {"context", "defaults"};
        }
        for (const auto& entry : root) {
            const std::string key = entry.first.Scalar();
            if (std::find(known.begin(), known.end(), key) == known.end()) {
                unknown(entry.first, known);
            } else if (key == "contexts") {
                contexts_of(entry.second);
            } else if (key == "defaults") {
                defaults_of(entry.second);
            } else {
                scalar(file_.top, entry.first, entry.second);
            }
        }
    }
    void scalar(ConfigValues& values, const YAML::Node& key, const YAML::Node& value) {
        if (!value.IsScalar()) {
            problem(value, key.Scalar() + " must be one word");
            return;
        }
        values[key.Scalar()] = {value.Scalar(), line_of(key)};
    }
    void contexts_of(const YAML::Node& contexts) {
        if (!is_map(contexts, "contexts")) return;
        std::vector<std::string> known;
        for (const SettingKey& key : setting_keys())
            if (key.of_context) known.emplace_back(key.key);
        for (const auto& context : contexts) {
            ConfigValues& values = file_.contexts[context.first.Scalar()];
            if (!is_map(context.second, "context " + context.first.Scalar())) continue;
            for (const auto& entry : context.second) {
                if (std::find(known.begin(), known.end(), entry.first.Scalar()) == known.end()) {
                    unknown(entry.first, known);
                } else {
                    scalar(values, entry.first, entry.second);
                }
            }
        }
    }
    void defaults_of(const YAML::Node& defaults) {
        if (!is_map(defaults, "defaults")) return;
        std::vector<std::string> known;
        for (const spec::Field& field : spec::job_fields())
            if (!field.flags.empty()) known.emplace_back(field.name);
        for (const auto& entry : defaults) {
            const std::string key = entry.first.Scalar();
            if (std::find(known.begin(), known.end(), key) == known.end()) {
                unknown(entry.first, known);
                continue;
            }
            file_.run_defaults.push_back({key, flow_text(entry.second), line_of(entry.first)});
        }
    }

    std::string path_;
    FileKind kind_;
    std::vector<std::string>& problems_;
    ConfigFile file_;
};

/// The index of the line after the block that starts at `from` and is indented more than `indent`.
std::size_t block_end(const std::vector<std::string>& lines, std::size_t from, std::size_t indent) {
    std::size_t end = from;
    for (std::size_t i = from; i < lines.size(); ++i) {
        const std::size_t column = lines[i].find_first_not_of(' ');
        if (column == std::string::npos) continue;
        if (column < indent) break;
        end = i + 1;
    }
    return end;
}

std::size_t line_of_key(const std::vector<std::string>& lines, std::size_t from, std::size_t to,
                        std::size_t indent, const std::string& key) {
    for (std::size_t i = from; i < to; ++i) {
        const std::string head = std::string(indent, ' ') + key + ":";
        if (lines[i].starts_with(head) &&
            (lines[i].size() == head.size() || lines[i][head.size()] == ' '))
            return i;
    }
    return to;
}

std::string yaml_word(std::string_view value) {
    YAML::Emitter out;
    out << std::string(value);
    return out.c_str();
}

}  // namespace

ConfigFile read_config_file(std::string_view path, FileKind kind,
                            std::vector<std::string>& problems) {
    struct stat info {};
    if (path.empty() || ::stat(std::string(path).c_str(), &info) != 0) return {};
    const auto text = read_file(std::string(path));
    if (!text) {
        problems.push_back(text.error().message + ": " + text.error().cause);
        return {};
    }
    return FileReader(std::string(path), kind, problems).read(*text);
}

Status set_user_config(const World& world, std::string_view context, std::string_view key,
                       std::string_view value) {
    const std::string path = user_config_path(world);
    if (path.empty())
        return Error{Code::Invalid, "there is no home directory to keep configuration in", "",
                     "set HOME or XDG_CONFIG_HOME"};
    std::vector<std::string> lines;
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0) {
        MUSTER_LET(text, read_file(path));
        for (const std::string_view line : split(text, '\n')) lines.emplace_back(line);
        while (!lines.empty() && lines.back().empty()) lines.pop_back();
    }
    std::size_t from = 0, to = lines.size(), indent = 0;
    const auto enter = [&](const std::string& name) {
        std::size_t at = line_of_key(lines, from, to, indent, name);
        if (at == to) {
            lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(to),
                         std::string(indent, ' ') + name + ":");
        }
        from = at + 1;
        indent += 2;
        to = block_end(lines, from, indent);
    };
    if (!context.empty()) {
        enter("contexts");
        enter(std::string(context));
    }
    const std::string line = std::string(indent, ' ') + std::string(key) + ": " + yaml_word(value);
    const std::size_t at = line_of_key(lines, from, to, indent, std::string(key));
    if (at < to) {
        lines[at] = line;
    } else {
        lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(to), line);
    }
    std::string text = join(lines, "\n") + "\n";
    std::vector<std::string> problems;
    const ConfigFile check = FileReader(path, FileKind::Client, problems).read(text);
    const auto& values = context.empty()                 ? check.top
                         : check.contexts.count(context) ? check.contexts.find(context)->second
                                                         : check.top;
    const auto it = values.find(key);
    if (!problems.empty() || it == values.end() || it->second.text != value)
        return Error{Code::Invalid, path + " could not be changed in place",
                     problems.empty() ? "its layout is not one key a line" : problems.front(),
                     "edit it by hand: set " + std::string(key) + " to " + std::string(value)};
    return write_file(path, text, 0600);
}

}  // namespace muster::cli
