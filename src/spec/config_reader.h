// Reads the files of the daemons (controller.yaml, agent.yaml): every problem at once, each
// "file:line:col: field: what is wrong", and their JSON schemas from the same tables of fields.
//
// For the two config.cc alone, which include yaml-cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "spec/config_field.h"

namespace YAML {
class Node;
struct Mark;
}  // namespace YAML

namespace muster::spec {

class ConfigReader {
public:
    ConfigReader(std::vector<std::string>& problems, std::string file)
        : problems_(problems), file_(std::move(file)) {}

    void complain(const YAML::Mark& mark, const std::string& what);
    void complain(const YAML::Node& node, const std::string& what);

    std::string text(const YAML::Node& node, const std::string& field);
    std::vector<std::string> texts(const YAML::Node& node, const std::string& field);
    bool flag(const YAML::Node& node, const std::string& field);
    /// `out` stays as it is if it is not one of low..high.
    void integer(const YAML::Node& node, const std::string& field, std::int64_t low,
                 std::int64_t high, std::int64_t& out);
    void duration(const YAML::Node& node, const std::string& field, Duration least, Duration& out);
    /// Of parse_bytes, parse_cpus and the like.
    template <class T, class Parse>
    void quantity(const YAML::Node& node, const std::string& field, T& out, Parse parse) {
        const auto parsed = parse(text(node, field));
        if (parsed)
            out = *parsed;
        else
            complain(node, field + ": " + parsed.error().message);
    }
    /// Calls take(key, node) for each entry of a map; complains of keys that are given twice or
    /// are not in `known` (empty: all are).
    using Take = std::function<void(const std::string& key, const YAML::Node& node)>;
    void entries(const YAML::Node& map, const std::vector<std::string>& known,
                 const std::string& prefix, const Take& take);
    /// The whole document, of these fields; an empty one has none. False: it is not YAML.
    bool document(std::string_view yaml, const ConfigFields& fields, const Take& take);

private:
    std::vector<std::string>& problems_;
    std::string file_;
};

std::vector<std::string> names_of(const ConfigFields& fields);

}  // namespace muster::spec
