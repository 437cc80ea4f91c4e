// Build tool: api/openapi.yaml to the C++ source of the same document as JSON.
#include <cstdio>
#include <fstream>
#include <string>

#include <yaml-cpp/yaml.h>

#include "base/json_writer.h"
#include "base/units.h"

namespace {

using muster::JsonWriter;

void write(JsonWriter& json, const YAML::Node& node) {
    if (node.IsMap()) {
        json.begin_object();
        for (const auto& entry : node) {
            json.key(entry.first.Scalar());
            write(json, entry.second);
        }
        json.end_object();
    } else if (node.IsSequence()) {
        json.begin_array();
        for (const auto& entry : node) write(json, entry);
        json.end_array();
    } else if (node.IsNull()) {
        json.null();
    } else {
        // The tag "!" marks what was quoted; "?" what was plain and may be a
        // number.
        const std::string& text = node.Scalar();
        const bool plain = node.Tag() == "?";
        const auto number = muster::parse_integer(text, INT64_MIN, INT64_MAX);
        if (plain && (text == "true" || text == "false"))
            json.value(text == "true");
        else if (plain && number)
            json.value(*number);
        else
            json.value(text);
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return std::fprintf(stderr, "usage: embed_openapi IN.yaml OUT.cc\n"), 2;
    try {
        JsonWriter json;
        write(json, YAML::LoadFile(argv[1]));
        std::ofstream out(argv[2]);
        out << "#include \"rest/handler.h\"\n\nnamespace muster::rest {\n\n"
               "std::string_view openapi_json() {\n    static constexpr char "
               "kText[] =\n";
        // In pieces: compilers bound the length of one literal, not of their sum.
        const std::string& text = json.text();
        for (std::size_t at = 0; at < text.size(); at += 4000) {
            out << "        R\"~~(" << text.substr(at, 4000) << ")~~\"\n";
        }
        out << "        ;\n    return {kText, sizeof kText - 1};\n}\n\n}  // "
               "namespace muster::rest\n";
        return out.good() ? 0 : 1;
    } catch (const YAML::Exception& error) {
        std::fprintf(stderr, "%s: %s\n", argv[1], error.what());
        return 1;
    }
}
