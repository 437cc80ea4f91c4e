#include "cli/config.h"

#include <algorithm>

#include <sys/stat.h>

#include "base/error_codes.h"
#include "base/require.h"
#include "base/text.h"
#include "cli/config_file.h"
#include "cli/files.h"

namespace muster::cli {
namespace {

constexpr std::string_view kSystemFile = "/etc/muster/client.yaml";

/// The nearest .muster.yaml at or above the directory, not above the home or a repository's root.
std::string project_file(const World& world) {
    std::string folder = world.directory;
    const std::string home = world.home();
    while (!folder.empty()) {
        const std::string path = folder + "/.muster.yaml";
        struct stat info {};
        if (::stat(path.c_str(), &info) == 0) {
            // A folder anyone may write into (/tmp) must not steer other people's jobs.
            const bool trusted = info.st_uid == world.uid || info.st_uid == 0;
            return trusted ? path : "";
        }
        if (folder == home || ::stat((folder + "/.git").c_str(), &info) == 0) return "";
        folder.erase(folder.rfind('/'));
    }
    return "";
}

}  // namespace

std::vector<SettingKey> setting_keys() {
    return {
        {"context", "MUSTER_CONTEXT", "", "the context in use"},
        {"server", "MUSTER_SERVER", "", "https://HOST:PORT or unix:PATH", true},
        {"ca", "MUSTER_CA", "", "file with the CA certificate that the server must lead to", true},
        {"ca_sha256", "MUSTER_CA_SHA256", "", "its SHA-256 instead, in hex", true},
        {"token_file", "MUSTER_TOKEN_FILE", "", "file with the token, mode 0600", true},
        {"color", "MUSTER_COLOR", "auto", "auto, always or never"},
        {"output", "MUSTER_OUTPUT", "table", "form of output when -o is not given"},
        {"timeout", "MUSTER_TIMEOUT", "30s", "how long to wait for one answer"},
    };
}

Config Config::defaults() {
    Config config;
    for (const SettingKey& key : setting_keys())
        config.settings_.push_back({std::string(key.key), std::string(key.fallback), "default"});
    return config;
}

Result<Config> Config::load(const World& world, const Invocation& flags) {
    std::vector<std::string> problems;
    const ConfigFile system = read_config_file(kSystemFile, FileKind::Client, problems);
    const ConfigFile user = read_config_file(user_config_path(world), FileKind::Client, problems);
    const ConfigFile project = read_config_file(project_file(world), FileKind::Project, problems);
    if (!problems.empty())
        return numbered(errors::kBadConfig, problems.front(),
                        problems.size() == 1 ? "" : join(problems, "\n"));
    Config config;
    for (const ConfigFile* file : {&system, &user})
        for (const auto& [name, values] : file->contexts)
            if (std::find(config.contexts_.begin(), config.contexts_.end(), name) ==
                config.contexts_.end())
                config.contexts_.push_back(name);
    config.run_defaults_ = project.run_defaults;
    std::string context;
    for (const SettingKey& key : setting_keys()) {
        Setting found{std::string(key.key), std::string(key.fallback), "default"};
        const auto offer = [&](const ConfigValues& values) {
            const auto it = values.find(key.key);
            if (it != values.end()) found.value = it->second.text, found.origin = it->second.origin;
        };
        for (const ConfigFile* file : {&system, &user, &project}) offer(file->top);
        if (key.of_context && !context.empty()) {
            for (const ConfigFile* file : {&system, &user}) {
                const auto it = file->contexts.find(context);
                if (it != file->contexts.end()) offer(it->second);
            }
        }
        if (const std::string_view value = world.variable(key.variable); !value.empty())
            found.value = value, found.origin = key.variable;
        std::string flag(key.key);
        std::replace(flag.begin(), flag.end(), '_', '-');
        if (const auto value = flags.value(flag); value && flag != "output")
            found.value = *value, found.origin = "flag --" + flag;
        if (key.key == "context") {
            context = found.value;
            const bool known = std::find(config.contexts_.begin(), config.contexts_.end(),
                                         context) != config.contexts_.end();
            const bool making = flags.command != nullptr && flags.command->name == "login";
            if (!context.empty() && !known && !making) {
                const std::string near = nearest(context, config.contexts_);
                return numbered(errors::kBadConfig,
                                "context '" + context + "' (" + found.origin + ") is not defined" +
                                    (near.empty() ? "" : "; did you mean " + near + "?"),
                                config.contexts_.empty()
                                    ? "no contexts are defined"
                                    : "defined are " + join(config.contexts_, ", "),
                                "`muster login URL --context " + context + "` makes it");
            }
        }
        config.settings_.push_back(std::move(found));
    }
    return config;
}

const Setting& Config::setting(std::string_view key) const {
    const auto it = std::find_if(settings_.begin(), settings_.end(),
                                 [&](const Setting& setting) { return setting.key == key; });
    MUSTER_REQUIRE(it != settings_.end());
    return *it;
}

const std::string& Config::get(std::string_view key) const {
    return setting(key).value;
}

std::string user_config_path(const World& world) {
    const std::string folder = world.config_dir();
    return folder.empty() ? "" : folder + "/config.yaml";
}

std::string default_token_path(const World& world, std::string_view context) {
    const std::string folder = world.config_dir();
    if (folder.empty()) return "";
    return folder +
           (context.empty() || context == "default" ? "/token" : "/token-" + std::string(context));
}

Result<TokenFound> find_token(const World& world, const Config& config) {
    if (const std::string_view token = world.variable("MUSTER_TOKEN"); !token.empty())
        return TokenFound{std::string(trim(token)), "MUSTER_TOKEN"};
    const Setting& named = config.setting("token_file");
    std::string path = named.value;
    if (path.starts_with("~/")) path = world.home() + path.substr(1);
    if (path.empty()) {
        const std::string& from = config.setting("server").origin;
        if (from.starts_with("flag") || from.starts_with("MUSTER_")) return TokenFound{};
        path = default_token_path(world, config.get("context"));
    }
    struct stat info {};
    if (path.empty() || ::stat(path.c_str(), &info) != 0) {
        if (named.value.empty()) return TokenFound{};
        return numbered(errors::kBadConfig, "token file " + path + " cannot be read",
                        "it is named by " + named.origin, "`muster login` makes one");
    }
    if ((info.st_mode & 077) != 0)
        return numbered(errors::kBadConfig, "token file " + path + " may be read by others",
                        "its mode is " + octal(info.st_mode & 0777u) + ", it must be 0600",
                        "chmod 600 " + path);
    MUSTER_LET(text, read_file(path, 64 * 1024));
    return TokenFound{std::string(trim(text)), path};
}

std::vector<std::string> default_endpoints(const World& world) {
    if (const std::string_view named = world.variable("MUSTER_SOCKET_PATH"); !named.empty())
        return {std::string(named)};
    std::vector<std::string> paths{"/run/muster/api.sock"};
    if (const std::string own = world.data_dir(); !own.empty()) paths.push_back(own + "/api.sock");
    return paths;
}

}  // namespace muster::cli
