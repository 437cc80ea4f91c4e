#include "spec/fields.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "base/text.h"
#include "spec/parse.h"
#include "spec/random_spec.h"
#include "spec/render.h"

namespace muster::spec {
namespace {

const std::filesystem::path kSource = MUSTER_SOURCE_DIR;

std::string read(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream out;
    out << in.rdbuf();
    return out.str();
}

void expect_file(const std::filesystem::path& path, const std::string& expected) {
    if (std::getenv("UPDATE") != nullptr) std::ofstream(path, std::ios::binary) << expected;
    EXPECT_TRUE(read(path) == expected)
        << path << " is not what the field table says; run this test with UPDATE=1";
}

TEST(Fields, SchemaAndReferenceAreUpToDate) {
    expect_file(kSource / "docs/job.schema.json", job_schema());
    expect_file(kSource / "docs/job-reference.md", job_reference());
}

TEST(Fields, EachHasAFlagAHelpAndAnExampleThatWorks) {
    std::set<std::string_view> names, flags;
    for (const Field& field : job_fields()) {
        EXPECT_TRUE(names.insert(field.name).second) << field.name;
        EXPECT_NE(field.read, nullptr) << field.name;
        EXPECT_FALSE(field.help.empty()) << field.name;
        EXPECT_LE(field.help.size(), 90u) << field.name << ": a help is one line";
        EXPECT_EQ(field.metavar.empty(), field.type == Type::Switch) << field.name;
        for (const std::string_view flag : split(field.flags, ',')) {
            EXPECT_TRUE(flags.insert(flag).second) << flag;
            EXPECT_EQ(find_flag(flag.substr(2)), &field) << flag;
        }
        std::string text = std::string(field.name) + ": " + std::string(field.example) + "\n";
        if (field.name != "run") text += "run: x\n";
        if (field.name == "launch") text += "gpus: 1\n";
        if (field.name == "mounts" || field.name == "shm") text += "image: i\n";
        if (field.name == "parallel") text += "array: 9\n";
        const auto parsed = parse_job(text, ParseOptions{});
        const auto* problems = std::get_if<Problems>(&parsed);
        EXPECT_EQ(problems, nullptr) << render(*problems);
        for (const Field& part : field.parts) EXPECT_NE(part.read, nullptr) << part.name;
    }
    EXPECT_EQ(find_flag("expected-time"), find_field(job_fields(), "expected_time"));
    EXPECT_EQ(find_flag("nonsense"), nullptr);
}

TEST(Fields, EachExampleAsAFlagIsTheSameAsInAFile) {
    for (const Field& field : job_fields()) {
        std::string example(field.example);
        if (example.front() == '"') example = example.substr(1, example.size() - 2);
        std::string text = field.name == "run" ? "" : "run: x\n";
        if (field.name == "launch") text += "gpus: 1\n";
        if (field.name == "mounts" || field.name == "shm") text += "image: i\n";
        if (field.name == "parallel") text += "array: 9\n";
        const std::vector<FlagText> flags = {{std::string(field.name), example}};
        const auto by_flag = parse_job(text, flags, {}, ParseOptions{});
        const auto by_file = parse_job(
            text + std::string(field.name) + ": " + std::string(field.example), ParseOptions{});
        EXPECT_TRUE(by_flag == by_file) << field.name;
        EXPECT_EQ(by_flag.index(), 0u) << field.name;
    }
}

TEST(Fields, OtherNamesPointToFieldsAndAreNone) {
    for (const OtherName& other : other_names()) {
        EXPECT_EQ(find_field(job_fields(), other.name), nullptr) << other.name;
        if (other.instead.empty() || other.name == "resources") continue;
        EXPECT_NE(find_field(job_fields(), other.instead), nullptr) << other.name;
    }
}

TEST(Fields, ExamplesInTheRepositoryAreValid) {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(kSource / "examples")) {
        if (entry.path().extension() != ".yaml") continue;
        ++count;
        ParseOptions options;
        options.file = entry.path().string();
        options.base_dir = "/home/me";  // Where it is submitted from.
        const auto parsed = parse_job(read(entry.path()), options);
        const auto* problems = std::get_if<Problems>(&parsed);
        EXPECT_EQ(problems, nullptr) << render(*problems);
    }
    EXPECT_GE(count, 5u);
}

// The schema is looser than the parser, never stricter: what is valid here is valid there.
TEST(Fields, ExamplesAndNormalFormsMatchTheSchema) {
    constexpr const char* kPython = "/usr/bin/python3 -c 'import jsonschema, yaml' 2>/dev/null";
    if (std::system(kPython) != 0) GTEST_SKIP() << "python3-jsonschema or python3-yaml is missing";
    const std::string script = R"(
import json, jsonschema, sys, pathlib, yaml
root = pathlib.Path(sys.argv[1])
schema = json.load(open(root / "docs/job.schema.json"))
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
class Loader(yaml.SafeLoader): pass
Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rows if tag.endswith((":int", ":float", ":merge"))]
    for first, rows in yaml.SafeLoader.yaml_implicit_resolvers.items()}
Loader.add_implicit_resolver("tag:yaml.org,2002:bool", __import__("re").compile("^(true|false)$"), "tf")
bad = 0
for line in open(sys.argv[2]):
    for error in validator.iter_errors(json.loads(line)):
        bad += 1
        print(line[:400], list(error.absolute_path), error.message[:400])
for path in sorted((root / "examples").glob("*.yaml")):
    for error in validator.iter_errors(yaml.load(open(path), Loader)):
        bad += 1
        print(path.name, list(error.absolute_path), error.message)
for document in ({}, {"run": "x", "memry": 1}, {"run": "x", "restart": {"on": "oom"}}):
    if validator.is_valid(document):
        bad += 1
        print("accepted:", document)
sys.exit(bad != 0)
)";
    const std::filesystem::path folder = MUSTER_BINARY_DIR;
    std::ofstream(folder / "schema_check.py") << script;
    std::ofstream normal(folder / "schema_check.jsonl");
    for (std::uint64_t seed = 0; seed < 100; ++seed)
        normal << to_json(SpecMaker(seed).spec()) << "\n";
    normal.close();
    const std::string command = "/usr/bin/python3 " + (folder / "schema_check.py").string() + " " +
                                kSource.string() + " " + (folder / "schema_check.jsonl").string();
    EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace muster::spec
