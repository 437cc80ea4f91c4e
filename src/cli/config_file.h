// One configuration file as flat values with the place of each. The only reader of YAML here.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cli/config.h"

namespace muster::cli {

enum class FileKind { Client, Project };

struct ConfigValue {
    std::string text;
    std::string origin;  // "/home/wei/.config/muster/config.yaml:4"
};
using ConfigValues = std::map<std::string, ConfigValue, std::less<>>;

struct ConfigFile {
    ConfigValues top;
    std::map<std::string, ConfigValues, std::less<>> contexts;
    std::vector<RunDefault> run_defaults;
};

/// A file that is not there is empty. Everything wrong with it is appended to `problems`, each with
/// file:line:column.
ConfigFile read_config_file(std::string_view path, FileKind kind,
                            std::vector<std::string>& problems);

}  // namespace muster::cli
