// Where each setting comes from: /etc/muster/client.yaml < the user's config.yaml and its context
// < the project's .muster.yaml (defaults for `run`) < MUSTER_* variables < flags.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "cli/terminal.h"

namespace muster::cli {

struct Setting {
    std::string key;
    std::string value;
    std::string origin;  // "flag --server", "MUSTER_SERVER", a path, "default".
};

/// A field that every `run` in this project starts from.
struct RunDefault {
    std::string field;
    std::string text;
    std::string origin;  // "/home/wei/proj/.muster.yaml:3"
};

/// A key that configuration knows.
struct SettingKey {
    std::string_view key;
    std::string_view variable;  // "MUSTER_SERVER"; "" = none.
    std::string_view fallback;
    std::string_view help;
    bool of_context = false;  // Belongs to one context.
};

std::vector<SettingKey> setting_keys();

class Config {
public:
    /// All problems of all files in one Error (E9104).
    static Result<Config> load(const World& world, const Invocation& flags);

    /// As if nothing were configured.
    static Config defaults();

    const std::string& get(std::string_view key) const;
    const Setting& setting(std::string_view key) const;
    const std::vector<Setting>& settings() const { return settings_; }
    const std::vector<RunDefault>& run_defaults() const { return run_defaults_; }
    /// Names of the contexts of all files.
    const std::vector<std::string>& contexts() const { return contexts_; }

private:
    std::vector<Setting> settings_;
    std::vector<RunDefault> run_defaults_;
    std::vector<std::string> contexts_;
};

std::string user_config_path(const World& world);
std::string default_token_path(const World& world, std::string_view context);

/// Sets one key of the user's file (of `context`, for keys of a context); makes folder and file
/// (0700, 0600). Comments in it are kept unless the key stands inside a flow map.
Status set_user_config(const World& world, std::string_view context, std::string_view key,
                       std::string_view value);

/// The token to send, and whence: MUSTER_TOKEN, else the token file. "" = none. A token file that
/// belongs to a context goes to no other server, and one that others may read is refused.
struct TokenFound {
    std::string token;
    std::string origin;
};
Result<TokenFound> find_token(const World& world, const Config& config);

/// Unix sockets to try, in this order, when no server is configured: $MUSTER_SOCKET_PATH alone, or
/// /run/muster/api.sock and then the socket of the user's own `muster up`.
std::vector<std::string> default_endpoints(const World& world);

}  // namespace muster::cli
