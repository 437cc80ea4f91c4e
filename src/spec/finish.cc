// What can be said only of the job as a whole: defaults that follow from other fields, and fields
// that contradict each other.
#include <algorithm>

#include "spec/normaliser.h"

namespace muster::spec {
namespace {

bool runs_a_script(std::string_view program) {
    static constexpr std::string_view kNames[] = {
        "bash",  "sh",   "zsh",  "torchrun", "accelerate", "deepspeed", "node", "Rscript",
        "julia", "perl", "ruby", "mpirun",   "srun",       "env",       "exec"};
    return program.substr(0, 6) == "python" ||
           std::find(std::begin(kNames), std::end(kNames), program) != std::end(kNames);
}

std::vector<std::string_view> words_of(std::string_view line) {
    std::vector<std::string_view> words;
    for (const std::string_view word : split(line, ' '))
        if (!trim(word).empty()) words.push_back(trim(word));
    return words;
}

std::string_view base_name(std::string_view word) {
    while (!word.empty() && (word.back() == '\'' || word.back() == '"' || word.back() == ';'))
        word.remove_suffix(1);
    const std::size_t slash = word.rfind('/');
    if (slash != std::string_view::npos) word.remove_prefix(slash + 1);
    while (!word.empty() && (word.front() == '\'' || word.front() == '"')) word.remove_prefix(1);
    return word;
}

/// "train" of "train.py"; only letters, digits and . _ - stay, so that it is a name.
std::string clean(std::string_view word) {
    const std::size_t dot = word.rfind('.');
    if (dot != std::string_view::npos && dot > 0) word = word.substr(0, dot);
    std::string out;
    for (const char c : word.substr(0, 64)) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
        if (plain && (!out.empty() || c != '-')) out += c;
    }
    return out;
}

bool several_nodes(const model::JobSpec& spec) {
    return spec.nodes() > 1 || spec.roles[0].nodes_max > 1;
}

bool is_assignment(std::string_view word) {
    const std::size_t equals = word.find('=');
    return equals != std::string_view::npos && is_variable_name(word.substr(0, equals));
}

}  // namespace

std::string name_of_command(std::string_view run) {
    for (const std::string_view line : split(run, '\n')) {
        const std::string_view text = trim(line);
        if (text.empty() || text.front() == '#') continue;
        std::string_view program;
        for (const std::string_view word : words_of(text)) {
            if (program.empty() && (is_assignment(word) || word == "exec")) continue;
            if (program.empty()) {
                program = base_name(word);
                if (!runs_a_script(program)) break;
            } else if (word.front() != '-' && base_name(word).find('.') != std::string_view::npos) {
                program = base_name(word);
                break;
            }
        }
        const std::string name = clean(program);
        return name.empty() ? "job" : name;
    }
    return "job";
}

void Normaliser::finish() {
    finish_roles();
    check_elastic();
    finish_launch();
    check_topology();
    check_times();
    check_names();
    check_array();
    check_image();
    if (spec.name.empty()) spec.name = name_of_command(spec.roles[0].run);
    if (spec.workdir.empty() && spec.image.empty()) spec.workdir = options.default_workdir;
}

void Normaliser::finish_roles() {
    if (given("roles") == nullptr && given("run") == nullptr)
        fail_whole(errors::kJobFieldMissing,
                   "run is missing: the command to run, as in \"run: python train.py\"");
    if (spec.roles.empty()) spec.roles.push_back(job_role);
    std::int64_t nodes = 0;
    for (const model::Role& each : spec.roles)
        nodes += each.nodes_max;  // 64 roles of 2^20 at most.
    if (nodes > model::kNodesMax)
        if (const Value* roles = given("roles")) {
            const Within within(*this, "roles");
            fail(*roles, std::to_string(nodes) + " nodes in all, over the limit of " +
                             std::to_string(model::kNodesMax));
        }
}

/// The planner grows and shrinks one group of nodes: the first.
void Normaliser::check_elastic() {
    for (std::size_t i = 1; i < spec.roles.size(); ++i) {
        const model::Role& each = spec.roles[i];
        if (each.nodes_max == each.nodes) continue;
        const Within roles(*this, "roles");
        const Within role_name(*this, each.name);
        const Within nodes(*this, "nodes");
        fail(*written_nodes(each.name), errors::kJobFieldsConflict,
             std::to_string(each.nodes) + ".." + std::to_string(each.nodes_max) +
                 ": only the first role, " + spec.roles[0].name +
                 ", may be elastic; give one number");
    }
}

/// The role's own nodes, or the job's that it inherits.
const Value* Normaliser::written_nodes(std::string_view role_name) const {
    for (const Entry& each : given("roles")->entries) {
        if (each.key != role_name) continue;
        for (const Entry& entry : each.value.entries)
            if (entry.key == "nodes") return &entry.value;
    }
    return given("nodes");
}

void Normaliser::check_topology() {
    const Value* topology = given("topology");
    if (topology == nullptr) return;
    const model::TopologyAsk& wanted = spec.topology;
    const std::int64_t least = spec.nodes();
    const std::int64_t most = least + spec.roles[0].nodes_max - spec.roles[0].nodes;
    const Within within(*this, "topology");
    if (wanted.required == "node" && most > 1)
        fail(*topology, errors::kJobFieldsConflict,
             "required node: " + std::to_string(most) + " nodes cannot be inside one");
    if (wanted.slice_required == "node" && wanted.slice > 1)
        fail(
            *topology, errors::kJobFieldsConflict,
            "slice.required node: " + std::to_string(wanted.slice) + " nodes cannot be inside one");
    for (const std::int64_t nodes : {least, most})
        if (wanted.slice > 0 && nodes % wanted.slice != 0) {
            fail(*topology, errors::kJobFieldsConflict,
                 "slice.size " + std::to_string(wanted.slice) + " does not divide the job's " +
                     std::to_string(nodes) + " nodes");
            break;
        }
    if (wanted.spares > least)
        fail(*topology, errors::kJobFieldsConflict,
             "spares " + std::to_string(wanted.spares) + ": more than the job's " +
                 std::to_string(least) + (least == 1 ? " node" : " nodes"));
}

void Normaliser::finish_launch() {
    const Value* launch = given("launch");
    if (launch == nullptr) {
        if (several_nodes(spec)) spec.launch = model::Launch::Torchrun;
        return;
    }
    const bool devices = std::any_of(spec.roles.begin(), spec.roles.end(),
                                     [](const model::Role& each) { return !each.devices.empty(); });
    const Within within(*this, "launch");
    if (spec.launch == model::Launch::PerGpu && !devices)
        fail(*launch, errors::kJobFieldsConflict,
             launch->text + ": needs gpus: there is no device to run on");
}

void Normaliser::check_times() {
    if (const Value* expected = given("expected_time");
        expected != nullptr && spec.time.ms > 0 && spec.expected_time > spec.time) {
        const Within within(*this, "expected_time");
        fail(*expected, errors::kJobFieldsConflict,
             format_duration(spec.expected_time) + ": longer than time, the limit, of " +
                 format_duration(spec.time));
    }
    const Value* deadline = given("deadline");
    if (deadline == nullptr || spec.deadline.ms == 0) return;
    const Within within(*this, "deadline");
    if (spec.deadline <= options.now)
        fail(*deadline,
             format_time(spec.deadline) + ": has passed; it is " + format_time(options.now));
    else if (spec.deadline <= spec.begin)
        fail(*deadline,
             format_time(spec.deadline) + ": not after begin, " + format_time(spec.begin));
}

/// A variable has one origin.
void Normaliser::check_name(std::string_view name, std::string_view field, std::string_view other) {
    const Value* map = given(field);
    if (map == nullptr) return;
    for (const Entry& entry : map->entries) {
        if (entry.key != name) continue;
        const Within outer(*this, field);
        const Within inner(*this, name);
        fail(scalar_value(entry.key, entry.source, entry.at), errors::kJobFieldsConflict,
             "also a variable of " + std::string(other) + "; it can come from one of them only");
    }
}

void Normaliser::check_names() {
    const auto in_env = [&](std::string_view name) {
        const auto same = [&](const model::EnvVar& var) { return var.name == name; };
        return std::any_of(spec.env.begin(), spec.env.end(), same) ||
               std::any_of(spec.roles.begin(), spec.roles.end(), [&](const model::Role& each) {
                   return std::any_of(each.env.begin(), each.env.end(), same);
               });
    };
    for (const model::Secret& secret : spec.secrets)
        if (in_env(secret.name)) check_name(secret.name, "secrets", "env");
    for (const model::SweepAxis& axis : spec.array.sweep) {
        if (in_env(axis.name)) check_name(axis.name, "sweep", "env");
        const auto same = [&](const model::Secret& secret) { return secret.name == axis.name; };
        if (std::any_of(spec.secrets.begin(), spec.secrets.end(), same))
            check_name(axis.name, "sweep", "secrets");
    }
}

void Normaliser::check_array() {
    const Value* array = given("array");
    const Value* sweep = given("sweep");
    if (array != nullptr && sweep != nullptr) {
        const Within within(*this, "sweep");
        fail(*sweep, errors::kJobFieldsConflict,
             "array and sweep cannot both be given; a sweep numbers its tasks itself");
    }
    if (!spec.pty || (array == nullptr && sweep == nullptr)) return;
    const Within within(*this, "pty");
    if (const Value* pty = given("pty"))
        fail(*pty, errors::kJobFieldsConflict,
             "a terminal is for one job; take array or sweep away");
}

/// Without an image a task sees the host's own file system, which nothing can be put into.
void Normaliser::check_image() {
    if (given("image") != nullptr) return;
    if (const Value* mounts = given("mounts"); mounts != nullptr && !spec.mounts.empty()) {
        const Within within(*this, "mounts");
        fail(*mounts, errors::kJobFieldsConflict,
             "needs image: without one a task sees the node's directories as they are");
    }
    const bool asked = std::any_of(spec.roles.begin(), spec.roles.end(),
                                   [](const model::Role& each) { return each.shm.value > 0; });
    if (!asked) return;
    const Value* shm = given("shm");
    const Within within(*this, shm != nullptr ? "shm" : "roles");
    fail(shm != nullptr ? *shm : *given("roles"), errors::kJobFieldsConflict,
         shm != nullptr ? "needs image: without one a task uses the node's /dev/shm"
                        : "shm needs image: without one a task uses the node's /dev/shm");
}

}  // namespace muster::spec
