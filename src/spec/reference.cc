// The JSON schema and the reference page, made from the field table.
#include <string>

#include "base/json_writer.h"
#include "base/text.h"
#include "spec/fields.h"

namespace muster::spec {
namespace {

/// The schema of one type, as JSON without the help. It is looser than the parser where JSON's
/// types are: editors complete with it, the parser decides.
std::string_view schema_of(Type type) {
    switch (type) {
        case Type::Text:
        case Type::Name: return R"("type":["string","number","boolean"])";
        case Type::Command: return R"("type":"string","minLength":1)";
        case Type::Integer: return R"("type":["integer","string"])";
        case Type::Nodes: return R"("type":["integer","string"],"examples":[4,"4..16"])";
        case Type::Switch:
        case Type::Truth: return R"("type":"boolean")";
        case Type::Fraction: return R"("type":["number","string"])";
        case Type::Kinds: return R"("enum":["one","mixed"])";
        case Type::Topology: return R"("anyOf":[{"type":"string"},{"$ref":"#/$defs/topology"}])";
        case Type::Slice: return R"("$ref":"#/$defs/slice")";
        case Type::Duration:
            return R"("type":["string","integer"],"examples":["90m","2d","1h30m","none"])";
        case Type::Bytes:
            return R"("type":["string","integer"],"examples":["64GB","512MB","1.5TB"])";
        case Type::Cpus: return R"("type":["number","string"],"exclusiveMinimum":0)";
        case Type::Moment:
            return R"("type":"string","examples":["2026-12-01T08:00:00Z","2026-12-01","now+2h"])";
        case Type::Path: return R"("type":"string","minLength":1)";
        case Type::Gpus:
            return R"("anyOf":[{"$ref":"#/$defs/gpus"},{"type":"array","minItems":1,"maxItems":16,)"
                   R"("items":{"$ref":"#/$defs/gpus"}}])";
        case Type::Texts:
            return R"("type":"object","additionalProperties":{"type":["string","number","boolean"]})";
        case Type::Variables:
            return R"("type":"object","propertyNames":{"pattern":"^[A-Za-z_][A-Za-z0-9_]*$"},)"
                   R"("additionalProperties":{"type":["string","number","boolean"]})";
        case Type::Mounts:
            return R"("anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}])";
        case Type::Launch: return R"("enum":["torchrun","per-gpu","per-device","per-node","mpi"])";
        case Type::Restart:
            return R"("anyOf":[{"type":"integer","minimum":0,"maximum":1000000},)"
                   R"({"type":"string"},{"$ref":"#/$defs/restart"}])";
        case Type::Causes:
            return R"("anyOf":[{"type":"string"},{"type":"array","minItems":1,)"
                   R"("items":{"type":"string","pattern":"^(any|oom|exit:[0-9]+)$"}}])";
        case Type::LogRules:
            return R"("anyOf":[{"$ref":"#/$defs/log_rules"},{"type":"array","maxItems":64,)"
                   R"("items":{"$ref":"#/$defs/log_rules"}}])";
        case Type::LogAction: return R"("enum":["fail","exclude-node","requeue"])";
        case Type::Checkpoint:
            return R"("anyOf":[{"type":"string"},{"$ref":"#/$defs/checkpoint"}])";
        case Type::Signal:
            return R"("type":"string","pattern":"^(SIG)?(USR1|USR2|TERM|INT|HUP|QUIT|CONT|WINCH)$")";
        case Type::Depends:
            return R"("anyOf":[{"type":["string","integer"]},{"type":"array","maxItems":1000,)"
                   R"("items":{"type":["string","integer"]}}])";
        case Type::Array:
            return R"("type":["string","integer"],"examples":["0..99","0..99:5","0..99%8",100])";
        case Type::Sweep:
            return R"("type":"object","minProperties":1,"maxProperties":32,)"
                   R"("propertyNames":{"pattern":"^[A-Za-z_][A-Za-z0-9_]*$"},)"
                   R"("additionalProperties":{"anyOf":[{"type":["string","number","boolean"]},)"
                   R"({"type":"array","minItems":1,)"
                   R"("items":{"type":["string","number","boolean"]}}]})";
        case Type::Constraint:
            return R"("anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}])";
        case Type::Roles:
            return R"("type":"object","minProperties":1,"maxProperties":64,)"
                   R"("propertyNames":{"pattern":"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"},)"
                   R"("additionalProperties":{"$ref":"#/$defs/role"})";
    }
    return "";
}

std::string_view type_name(Type type) {
    switch (type) {
        case Type::Text:
        case Type::Name: return "text";
        case Type::Command: return "shell command";
        case Type::Integer: return "whole number";
        case Type::Nodes: return "whole number, or a range";
        case Type::Switch:
        case Type::Truth: return "true or false";
        case Type::Fraction: return "number below 1";
        case Type::Kinds: return "one word";
        case Type::Topology: return "word, or a map";
        case Type::Slice: return "map";
        case Type::Duration: return "duration";
        case Type::Bytes: return "size";
        case Type::Cpus: return "number of CPUs";
        case Type::Moment: return "time";
        case Type::Path: return "path";
        case Type::Gpus: return "devices, a list of alternatives, or a map";
        case Type::Texts:
        case Type::Variables: return "map of texts";
        case Type::Mounts: return "list of texts";
        case Type::Launch:
        case Type::LogAction:
        case Type::Signal: return "one word";
        case Type::Restart: return "whole number, or a map";
        case Type::Causes: return "word or list of words";
        case Type::LogRules: return "list of maps";
        case Type::Checkpoint: return "path, or a map";
        case Type::Depends: return "text or list of texts";
        case Type::Array: return "range or whole number";
        case Type::Sweep: return "map of lists and ranges";
        case Type::Constraint: return "text or list of texts";
        case Type::Roles: return "map of roles";
    }
    return "";
}

/// One line a property: the file is read by people, too.
std::string property(const Field& field, std::string_view indent) {
    std::string out = std::string(indent) + json_quote(field.name) + ": {";
    out += R"("description":)" + json_quote(field.help);
    return out + "," + std::string(schema_of(field.type)) + "}";
}

std::string properties(std::span<const Field> fields, bool role_only) {
    std::string out;
    for (const Field& field : fields) {
        if (role_only && !field.in_role) continue;
        if (!out.empty()) out += ",\n";
        out += property(field, "        ");
    }
    return out;
}

std::string object(std::string_view name, std::span<const Field> fields, bool role_only) {
    std::string required;
    for (const Field& field : fields)
        if (!role_only && field.fallback.empty())
            required += (required.empty() ? "" : ",") + json_quote(field.name);
    return "    " + json_quote(name) + ": {\n      \"type\": \"object\",\n" +
           "      \"additionalProperties\": false,\n" +
           (required.empty() ? "" : "      \"required\": [" + required + "],\n") +
           "      \"properties\": {\n" + properties(fields, role_only) + "\n      }\n    }";
}

/// The map forms that other schemas refer to. A GPU ask may be a text or a number, too.
std::string definitions() {
    std::string out = object("role", job_fields(), true);
    for (const Field& field : job_fields()) {
        if (field.parts.empty()) continue;
        if (field.type != Type::Gpus) {
            out += ",\n" + object(field.name, field.parts, false);
            for (const Field& part : field.parts)
                if (!part.parts.empty()) out += ",\n" + object(part.name, part.parts, false);
            continue;
        }
        out += ",\n" + object("gpus_map", field.parts, false);
        out +=
            ",\n    \"gpus\": {\"anyOf\":[{\"type\":[\"string\",\"integer\"]},"
            "{\"$ref\":\"#/$defs/gpus_map\"}]}";
    }
    return out;
}

std::string code(std::string_view text) {
    return "`" + std::string(text) + "`";
}

/// A '|' would end the cell of a table.
std::string cell(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '|') out += '\\';
        out += c;
    }
    return out;
}

std::string fallback_of(const Field& field) {
    return field.fallback.empty() ? "must be given" : std::string(field.fallback);
}

/// Of the table of a map's keys.
std::string row_of(const Field& part, const std::string& within) {
    return "| " + code(within + std::string(part.name)) + " | " + cell(type_name(part.type)) +
           " | " + cell(fallback_of(part)) + " | " + cell(part.limits) + " | " + cell(part.help) +
           " |\n";
}

std::string section(const Field& field) {
    std::string out = "### " + std::string(field.name) + "\n\n" + std::string(field.help) + "\n\n";
    out += "| | |\n|---|---|\n";
    out += "| value | " + cell(type_name(field.type)) + " |\n";
    out += "| default | " + cell(fallback_of(field)) + " |\n";
    if (!field.limits.empty()) out += "| limits | " + cell(field.limits) + " |\n";
    std::vector<std::string> flags;
    for (const std::string_view flag : split(field.flags, ','))
        flags.push_back(code(std::string(flag) +
                             (field.metavar.empty() ? "" : " " + std::string(field.metavar))));
    out += "| flag | " + cell(join(flags, ", ")) + (field.repeatable ? ", more than once" : "") +
           " |\n";
    if (field.in_role) out += "| in a role | yes |\n";
    out +=
        "\n```yaml\n" + std::string(field.name) + ": " + std::string(field.example) + "\n```\n\n";
    if (!field.notes.empty()) out += std::string(field.notes) + "\n\n";
    if (field.parts.empty()) return out;
    out += "As a map:\n\n| key | value | default | limits | |\n|---|---|---|---|---|\n";
    for (const Field& part : field.parts) {
        out += row_of(part, "");
        for (const Field& inner : part.parts) out += row_of(inner, std::string(part.name) + ".");
    }
    return out + "\n";
}

/// One line a field.
std::string overview() {
    std::string out = "| field | what | default |\n|---|---|---|\n";
    for (const Field& field : job_fields())
        out += "| [" + std::string(field.name) + "](#" + std::string(field.name) + ") | " +
               cell(field.help) + " | " + cell(fallback_of(field)) + " |\n";
    return out + "\n## Fields\n\n";
}

constexpr std::string_view kIntroduction = R"(# Job reference

<!-- Made from the field table in src/spec/fields.cc; UPDATE=1 spec_test rewrites it. -->

A job is a YAML file (or JSON: the same fields), or flags of `muster run`, or both. Every field is
optional but `run`.

```yaml
gpus: 1
run: python train.py --lr 3e-4
```

    muster run job.yaml
    muster run --gpus 1 -- python train.py --lr 3e-4
    muster run job.yaml --nodes 4 --env NCCL_DEBUG=INFO

What the job is follows from its fields: `nodes` makes it a gang, `array` or `sweep` many tasks,
`roles` a gang of unlike parts. `muster run --dry-run` prints the normal form without submitting.
Editors that know [job.schema.json](job.schema.json) complete the fields; say so in the first line:

```yaml
# yaml-language-server: $schema=job.schema.json
```

(In JSON: `"$schema": "job.schema.json"`.)

## Rules

- **Nothing is ignored.** An unknown field, a repeated one, or one without a value is an error, with
  its line and column. All errors are told at once.
- **Flags over files.** A flag replaces a single value of the file; for maps (`--env`, `--label`,
  `--secret`, `--sweep`, `--role`) it overrides that key; to lists (`--mount`, `--depends`,
  `--constraint`, `--log-rule`) it adds. A value that begins with `{` or `[` is read as YAML, where
  the field may be a map or a list: `--restart '{max: 3, on: [oom]}'`. The words after `--` replace
  `run`.
- **Text stays text.** `1e-4`, `on`, `0..4` and `012` mean what the field says, not what YAML 1.1
  says. A switch is `true` or `false`.
- **Durations**: `90m`, `2d`, `1h30m`, `500ms`, `1:30:00`, `1-12:00:00`; a bare number is seconds.
  Units: ms, s, m, h, d, w.
- **Sizes**: `64GB` and `64GiB` both are 64·2^30 bytes; K, M, G, T, P.
- **Times**: `2026-12-01T08:00:00Z` or with `+01:00`, a date (midnight, UTC), or `now+2h`.
- **Ranges** `a..b` include both ends; `a..b:s` goes in steps of `s`.
- **Per node.** `gpus`, `cpus`, `memory`, `disk` and `shm` are for each node.
- **Paths** are paths of the nodes, absolute and without `..`. `muster run` makes relative ones
  absolute: those of a file from the directory of that file, those of flags from the current one.
  `~` and variables are not expanded.
- **YAML**: anchors, aliases and merge keys (`<<`) may be used within limits; tags and several
  documents in one file may not. A file has at most 1 MiB, nested at most 64 deep.

## Fields at a glance

)";

constexpr std::string_view kLater = R"(## Not in this version

These are known words for which there is nothing behind them yet, so they are errors: )";

}  // namespace

std::string job_schema() {
    std::string out = "{\n  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n";
    out += "  \"title\": \"Muster job\",\n";
    out += "  \"type\": \"object\",\n  \"additionalProperties\": false,\n";
    out += "  \"anyOf\": [{\"required\":[\"run\"]},{\"required\":[\"roles\"]}],\n";
    out += "  \"properties\": {\n        \"$schema\": {\"type\":\"string\"},\n" +
           properties(job_fields(), false) + "\n  },\n";
    out += "  \"$defs\": {\n" + definitions() + "\n  }\n}\n";
    return out;
}

std::string job_reference() {
    std::string out = std::string(kIntroduction) + overview();
    for (const Field& field : job_fields()) out += section(field);
    out += kLater;
    std::vector<std::string> later;
    for (const OtherName& other : other_names())
        if (other.instead.empty()) later.push_back(code(other.name));
    return out + join(later, ", ") + ".\n";
}

}  // namespace muster::spec
