#include "spec/config_reader.h"

#include <algorithm>
#include <set>
#include <string_view>

#include <yaml-cpp/yaml.h>

#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"

namespace muster::spec {

void ConfigReader::complain(const YAML::Mark& mark, const std::string& what) {
    problems_.push_back(file_ + ":" + std::to_string(mark.line + 1) + ":" +
                        std::to_string(mark.column + 1) + ": " + what);
}
void ConfigReader::complain(const YAML::Node& node, const std::string& what) {
    complain(node.Mark(), what);
}

std::string ConfigReader::text(const YAML::Node& node, const std::string& field) {
    if (node.IsScalar()) return node.Scalar();
    if (!node.IsNull()) complain(node, field + ": must be text");
    return {};
}

std::vector<std::string> ConfigReader::texts(const YAML::Node& node, const std::string& field) {
    std::vector<std::string> values;
    if (!node.IsSequence()) {
        complain(node, field + ": must be a list");
        return values;
    }
    for (const auto& each : node) values.push_back(text(each, field));
    return values;
}

bool ConfigReader::flag(const YAML::Node& node, const std::string& field) {
    const std::string word = lower(text(node, field));
    if (word == "true" || word == "yes" || word == "on") return true;
    if (word != "false" && word != "no" && word != "off")
        complain(node, field + ": '" + word + "' is not true or false");
    return false;
}

void ConfigReader::integer(const YAML::Node& node, const std::string& field, std::int64_t low,
                           std::int64_t high, std::int64_t& out) {
    quantity(node, field, out,
             [&](std::string_view value) { return parse_integer(value, low, high); });
}

void ConfigReader::duration(const YAML::Node& node, const std::string& field, Duration least,
                            Duration& out) {
    Duration read = least;
    quantity(node, field, read, parse_duration);
    if (read < least)
        complain(node,
                 field + ": " + node.Scalar() + " is below the least, " + format_duration(least));
    out = std::max(read, least);
}

void ConfigReader::entries(const YAML::Node& map, const std::vector<std::string>& known,
                           const std::string& prefix, const Take& take) {
    if (!map.IsMap())
        return complain(map, (prefix.empty() ? "the file" : prefix) + ": must be a map");
    std::set<std::string> seen;
    for (const auto& entry : map) {
        const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "?";
        if (!known.empty() && std::ranges::find(known, key) == known.end()) {
            const std::string near = nearest(key, known);
            complain(entry.first, prefix + key + ": unknown key" +
                                      (near.empty() ? "" : "; did you mean " + near + "?"));
        } else if (!seen.insert(key).second) {
            complain(entry.first, prefix + key + ": given twice");
        } else {
            take(key, entry.second);
        }
    }
}

bool ConfigReader::document(std::string_view yaml, const ConfigFields& fields, const Take& take) {
    try {
        const YAML::Node root = YAML::Load(std::string(yaml));
        if (!root.IsNull()) entries(root, names_of(fields), "", take);
        return true;
    } catch (const YAML::Exception& error) {
        complain(error.mark, error.msg);
        return false;
    }
}

std::vector<std::string> names_of(const ConfigFields& fields) {
    std::vector<std::string> names;
    for (const ConfigField& field : fields) names.emplace_back(field.name);
    return names;
}

namespace {

void write_schema(JsonWriter& json, const ConfigFields& fields, const ConfigFields& items) {
    json.field("type", "object").field("additionalProperties", false);
    json.key("properties").begin_object();
    for (const ConfigField& field : fields) {
        const std::string_view type = field.type;
        json.key(field.name).begin_object().field("description", field.help);
        if (type == "list") {
            json.field("type", "array").key("items").begin_object();
            json.field("type", "string").end_object();
        } else if (type == "devices") {
            json.field("type", "array").key("items").begin_object();
            write_schema(json, items, {});
            json.end_object();
        } else if (type == "map") {
            json.field("type", "object");
        } else if (type == "tree") {
            json.key("type").begin_array().value("object").value("array").end_array();
        } else if (type == "number") {
            json.field("type", "integer");
        } else if (type == "true or false") {
            json.field("type", "boolean");
        } else {
            json.key("type").begin_array().value("string").value("number").end_array();
        }
        json.end_object();
    }
    json.end_object();
}

}  // namespace

std::string config_schema(const std::string& title, const ConfigFields& fields,
                          const ConfigFields& items) {
    JsonWriter json;
    json.begin_object().field("$schema", "https://json-schema.org/draft/2020-12/schema");
    json.field("title", title);
    write_schema(json, fields, items);
    json.end_object();
    return std::move(json).text();
}

}  // namespace muster::spec
