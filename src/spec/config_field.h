// One field of a daemon's file: what --check knows, what the schema and the reference say.
#pragma once

#include <string>
#include <vector>

namespace muster::spec {

struct ConfigField {
    const char* name;
    const char* type;  // "text", "path", "size", "duration", "number", "true or false", "list",
                       // "map", or the name of a table of further fields.
    const char* help;
    bool live;  // A reload (SIGHUP) takes it over.
};
using ConfigFields = std::vector<ConfigField>;

/// JSON Schema (2020-12) of a file of these fields. `items`: what a field of type "devices" lists.
std::string config_schema(const std::string& title, const ConfigFields& fields,
                          const ConfigFields& items = {});

}  // namespace muster::spec
