// The one table of a job's fields. The parser, the flags of `muster run`, the JSON schema and the
// reference page are all driven by it, so that none can name a field the others do not know.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace muster::spec {

class Normaliser;
struct Value;
struct Field;

/// What a value looks like: how a flag's text is read, and a definition of the JSON schema.
enum class Type {
    Text,
    Name,
    Command,
    Integer,
    Nodes,
    Switch,  // true or false; its flag takes no value.
    Truth,   // true or false; its flag takes one of them.
    Duration,
    Bytes,
    Cpus,
    Moment,
    Path,
    Gpus,
    Fraction,
    Kinds,
    Topology,
    Slice,
    Texts,      // A map of texts.
    Variables,  // A map of texts whose keys are variables' names.
    Mounts,
    Launch,
    Restart,
    Causes,
    LogRules,
    LogAction,
    Checkpoint,
    Signal,
    Depends,
    Array,
    Sweep,
    Constraint,
    Roles,
};

struct Field {
    std::string_view name;  // "expected_time".
    Type type;
    std::string_view flags = {};  // "--mount,--mounts" (CLI11's spelling); "" for a part of a map.
    std::string_view metavar = {};  // "SRC:DST[:ro]"; "" for a flag without a value.
    bool repeatable = false;        // The flag may be given more than once.
    bool in_role = false;        // Also a field of a role; the job's is then each role's default.
    std::string_view help = {};  // One line, for --help, the schema and the page.
    std::string_view fallback =
        {};                         // The default, as text for people. "" if the field is required.
    std::string_view limits = {};   // "0..100".
    std::string_view example = {};  // A value, in YAML.
    std::string_view notes = {};    // Further paragraphs of the reference page.
    std::span<const Field> parts = {};                  // Of the map form; empty if there is none.
    void (*read)(Normaliser&, const Value&) = nullptr;  // Internal to the room.
};

/// A word of a later version or of another system, with what to say about it.
struct OtherName {
    std::string_view name;
    std::string_view instead;  // A field's name, or "" for "not supported by this version".
};

/// In the order of the reference page and of the normal form.
std::span<const Field> job_fields();
std::span<const OtherName> other_names();
/// By name, with dashes read as underscores; nullptr if there is none.
const Field* find_field(std::span<const Field> fields, std::string_view name);
/// A job's field by its name or by one of its flags, without the dashes in front: "mount".
const Field* find_flag(std::string_view name);

/// docs/job.schema.json and docs/job-reference.md, as they have to be.
std::string job_schema();
std::string job_reference();

}  // namespace muster::spec
