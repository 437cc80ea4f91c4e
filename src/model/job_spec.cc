#include "model/job_spec.h"

#include <algorithm>

#include "base/bytes.h"

namespace muster::model {
namespace {

// The form: kVersion, then (tag, content) of every field that is not at its default, tags rising.
// A tag, once given, keeps its meaning for ever; what comes later gets a new one.
constexpr std::uint64_t kVersion = 1;

constexpr std::uint64_t kName = 1;
constexpr std::uint64_t kQueue = 2;
constexpr std::uint64_t kPriority = 3;
constexpr std::uint64_t kLabels = 4;
constexpr std::uint64_t kRoles = 5;
constexpr std::uint64_t kTime = 6;
constexpr std::uint64_t kExpectedTime = 7;
constexpr std::uint64_t kBegin = 8;
constexpr std::uint64_t kDeadline = 9;
constexpr std::uint64_t kImage = 10;
constexpr std::uint64_t kWorkdir = 11;
constexpr std::uint64_t kEnv = 12;
constexpr std::uint64_t kSetup = 13;
constexpr std::uint64_t kMounts = 14;
constexpr std::uint64_t kSecrets = 15;
constexpr std::uint64_t kLaunch = 16;
constexpr std::uint64_t kRestartMax = 17;
constexpr std::uint64_t kRestartOn = 18;
constexpr std::uint64_t kRestartBackoff = 19;
constexpr std::uint64_t kLogRules = 20;
constexpr std::uint64_t kCheckpointDir = 21;
constexpr std::uint64_t kCheckpointSignal = 22;
constexpr std::uint64_t kCheckpointGrace = 23;
constexpr std::uint64_t kCheckpointInterval = 24;
constexpr std::uint64_t kDepends = 25;
constexpr std::uint64_t kArray = 26;
constexpr std::uint64_t kSweep = 27;
constexpr std::uint64_t kFlags = 28;
constexpr std::uint64_t kConstraint = 29;
constexpr std::uint64_t kTopology = 30;
// Within a role; the first closes it, for roles stand in a list.
constexpr std::uint64_t kRoleEnd = 0;
constexpr std::uint64_t kRoleName = 1;
constexpr std::uint64_t kRoleNodes = 2;
constexpr std::uint64_t kRoleNodesMax = 3;
constexpr std::uint64_t kRoleDevices = 4;
constexpr std::uint64_t kRoleCpus = 5;
constexpr std::uint64_t kRoleMemory = 6;
constexpr std::uint64_t kRoleDisk = 7;
constexpr std::uint64_t kRoleShm = 8;
constexpr std::uint64_t kRoleRun = 9;
constexpr std::uint64_t kRoleEnv = 10;
constexpr std::uint64_t kRoleParts = 11;  // Beside kRoleDevices: what is less than a device.
constexpr std::uint64_t kExclusive = 1, kHold = 2, kPty = 4, kMixedKinds = 8, kNotPreemptible = 16,
                        kShareUnenforced = 32, kFlagsAll = 63;

// put() writes one field's content, get() reads it. The lists call those of their items, so all
// of these are declared first.
template <class T>
void put(Writer& out, const std::vector<T>& list);
void put(Writer& out, const SweepAxis& axis);
void put(Writer& out, const ConstraintTerm& term);
void put(Writer& out, const Role& role);
template <class T>
void get(Reader& in, std::vector<T>& list);
void get(Reader& in, SweepAxis& axis);

void put(Writer& out, const std::string& text) {
    out.text(text);
}
void put(Writer& out, std::int64_t number) {
    out.signed_number(number);
}
void put(Writer& out, int number) {
    out.signed_number(number);
}
void put(Writer& out, Duration duration) {
    out.signed_number(duration.ms);
}
void put(Writer& out, Time time) {
    out.signed_number(time.ms);
}
template <class Tag>
void put(Writer& out, Quantity<Tag> quantity) {
    out.signed_number(quantity.value);
}
void put(Writer& out, const std::pair<std::string, std::string>& label) {
    out.text(label.first);
    out.text(label.second);
}
void put(Writer& out, const EnvVar& var) {
    out.text(var.name);
    out.text(var.value);
}
void put(Writer& out, const Secret& secret) {
    out.text(secret.name);
    out.text(secret.file);
}
void put(Writer& out, const Mount& mount) {
    out.text(mount.source);
    out.text(mount.target);
    out.flag(mount.read_only);
}
void put(Writer& out, const DeviceAsk& ask) {
    out.text(ask.kind);
    out.signed_number(ask.count);
    out.signed_number(ask.memory_min.value);
    out.text(ask.vendor);
}
void put(Writer& out, const TopologyAsk& ask) {
    out.text(ask.required);
    out.text(ask.preferred);
    out.signed_number(ask.slice);
    out.text(ask.slice_required);
    out.signed_number(ask.spares);
}
void put(Writer& out, const LogRule& rule) {
    out.text(rule.match);
    out.number(static_cast<std::uint64_t>(rule.action));
}
void put(Writer& out, const Dependency& dependency) {
    out.number(static_cast<std::uint64_t>(dependency.when));
    out.number(dependency.job.value);
}
template <class T>
void put(Writer& out, const std::vector<T>& list) {
    out.number(list.size());
    for (const T& item : list) put(out, item);
}
void put(Writer& out, const SweepAxis& axis) {
    out.text(axis.name);
    put(out, axis.values);
}
void put(Writer& out, const ConstraintTerm& term) {
    out.text(term.key);
    out.number(static_cast<std::uint64_t>(term.op));
    put(out, term.values);
}

template <class T>
void put_changed(Writer& out, std::uint64_t tag, const T& value, const T& usual) {
    if (value == usual) return;
    out.number(tag);
    put(out, value);
}

bool is_part(const DeviceAsk& ask) {
    return ask.fraction != 0 || ask.share_memory.value != 0 || !ask.profile.empty();
}
/// As many entries as there are devices asked for; nothing if all of them are whole.
void put_parts(Writer& out, const std::vector<DeviceAsk>& asks) {
    if (std::ranges::none_of(asks, is_part)) return;
    out.number(kRoleParts);
    for (const DeviceAsk& ask : asks) {
        out.signed_number(ask.fraction);
        out.signed_number(ask.share_memory.value);
        out.text(ask.profile);
    }
}

void put(Writer& out, const Role& role) {
    const Role usual;
    put_changed(out, kRoleName, role.name, usual.name);
    put_changed(out, kRoleNodes, role.nodes, usual.nodes);
    put_changed(out, kRoleNodesMax, role.nodes_max, role.nodes);
    put_changed(out, kRoleDevices, role.devices, usual.devices);
    put_changed(out, kRoleCpus, role.cpus, usual.cpus);
    put_changed(out, kRoleMemory, role.memory, usual.memory);
    put_changed(out, kRoleDisk, role.disk, usual.disk);
    put_changed(out, kRoleShm, role.shm, usual.shm);
    put_changed(out, kRoleRun, role.run, usual.run);
    put_changed(out, kRoleEnv, role.env, usual.env);
    put_parts(out, role.devices);
    out.number(kRoleEnd);
}

void get(Reader& in, std::string& text) {
    text = std::string(in.text());
}
void get(Reader& in, std::int64_t& number) {
    number = in.signed_number();
}
void get(Reader& in, int& number) {
    number = static_cast<int>(in.signed_number());
}
void get(Reader& in, Duration& duration) {
    duration.ms = in.signed_number();
}
void get(Reader& in, Time& time) {
    time.ms = in.signed_number();
}
template <class Tag>
void get(Reader& in, Quantity<Tag>& quantity) {
    quantity.value = in.signed_number();
}
/// False: not a value of that enumeration.
template <class E>
bool get_enum(Reader& in, E& value, E last) {
    const std::uint64_t number = in.number();
    if (number > static_cast<std::uint64_t>(last)) return false;
    value = static_cast<E>(number);
    return true;
}
void get(Reader& in, std::pair<std::string, std::string>& label) {
    get(in, label.first);
    get(in, label.second);
}
void get(Reader& in, EnvVar& var) {
    get(in, var.name);
    get(in, var.value);
}
void get(Reader& in, Secret& secret) {
    get(in, secret.name);
    get(in, secret.file);
}
void get(Reader& in, Mount& mount) {
    get(in, mount.source);
    get(in, mount.target);
    mount.read_only = in.flag();
}
void get(Reader& in, DeviceAsk& ask) {
    get(in, ask.kind);
    get(in, ask.count);
    get(in, ask.memory_min);
    get(in, ask.vendor);
}
template <class T>
void get(Reader& in, std::vector<T>& list) {
    const std::size_t count = in.count();
    list.clear();
    for (std::size_t i = 0; i < count && in.ok(); ++i) get(in, list.emplace_back());
}
void get(Reader& in, SweepAxis& axis) {
    get(in, axis.name);
    get(in, axis.values);
}

/// Items with an enumeration in them: false if one is not of it.
bool get_item(Reader& in, LogRule& rule) {
    get(in, rule.match);
    return get_enum(in, rule.action, LogRule::Action::Requeue);
}
bool get_item(Reader& in, Dependency& dependency) {
    const bool known = get_enum(in, dependency.when, Dependency::When::AfterNotOk);
    dependency.job.value = in.number();
    return known;
}
bool get_item(Reader& in, ConstraintTerm& term) {
    get(in, term.key);
    const bool known = get_enum(in, term.op, ConstraintTerm::Op::NotExists);
    get(in, term.values);
    return known;
}
bool get_item(Reader& in, Role& role) {
    bool widened = false;
    for (std::uint64_t last = 0;;) {
        const std::uint64_t tag = in.number();
        if (!in.ok() || (tag <= last && tag != kRoleEnd)) return false;
        last = tag;
        switch (tag) {
            case kRoleEnd:
                if (!widened) role.nodes_max = role.nodes;
                return true;
            case kRoleName: get(in, role.name); break;
            case kRoleNodes: get(in, role.nodes); break;
            case kRoleNodesMax: get(in, role.nodes_max), widened = true; break;
            case kRoleDevices: get(in, role.devices); break;
            case kRoleCpus: get(in, role.cpus); break;
            case kRoleMemory: get(in, role.memory); break;
            case kRoleDisk: get(in, role.disk); break;
            case kRoleShm: get(in, role.shm); break;
            case kRoleRun: get(in, role.run); break;
            case kRoleEnv: get(in, role.env); break;
            case kRoleParts:
                for (DeviceAsk& ask : role.devices) {
                    get(in, ask.fraction);
                    get(in, ask.share_memory);
                    get(in, ask.profile);
                }
                break;
            default: return false;
        }
    }
}
template <class T>
bool get_items(Reader& in, std::vector<T>& list) {
    const std::size_t count = in.count();
    list.clear();
    for (std::size_t i = 0; i < count; ++i)
        if (!get_item(in, list.emplace_back()) || !in.ok()) return false;
    return true;
}

std::uint64_t flags_of(const JobSpec& spec) {
    return (spec.exclusive ? kExclusive : 0) | (spec.hold ? kHold : 0) | (spec.pty ? kPty : 0) |
           (spec.mixed_kinds ? kMixedKinds : 0) | (spec.preemptible ? 0 : kNotPreemptible) |
           (spec.share_unenforced ? kShareUnenforced : 0);
}

bool get_field(Reader& in, std::uint64_t tag, JobSpec& spec) {
    switch (tag) {
        case kName: get(in, spec.name); return true;
        case kQueue: get(in, spec.queue); return true;
        case kPriority: get(in, spec.priority); return true;
        case kLabels: get(in, spec.labels); return true;
        case kRoles: return get_items(in, spec.roles);
        case kTime: get(in, spec.time); return true;
        case kExpectedTime: get(in, spec.expected_time); return true;
        case kBegin: get(in, spec.begin); return true;
        case kDeadline: get(in, spec.deadline); return true;
        case kImage: get(in, spec.image); return true;
        case kWorkdir: get(in, spec.workdir); return true;
        case kEnv: get(in, spec.env); return true;
        case kSetup: get(in, spec.setup); return true;
        case kMounts: get(in, spec.mounts); return true;
        case kSecrets: get(in, spec.secrets); return true;
        case kLaunch: return get_enum(in, spec.launch, Launch::Mpi);
        case kRestartMax: get(in, spec.restart.max); return true;
        case kRestartOn:
            spec.restart.on_any = in.flag();
            spec.restart.on_oom = in.flag();
            get(in, spec.restart.exit_codes);
            return true;
        case kRestartBackoff: get(in, spec.restart.backoff); return true;
        case kLogRules: return get_items(in, spec.log_rules);
        case kCheckpointDir: get(in, spec.checkpoint.dir); return true;
        case kCheckpointSignal: get(in, spec.checkpoint.signal); return true;
        case kCheckpointGrace: get(in, spec.checkpoint.grace); return true;
        case kCheckpointInterval: get(in, spec.checkpoint.interval); return true;
        case kDepends: return get_items(in, spec.depends);
        case kArray:
            get(in, spec.array.count);
            get(in, spec.array.first);
            get(in, spec.array.step);
            get(in, spec.array.parallel);
            return true;
        case kSweep: get(in, spec.array.sweep); return true;
        case kFlags: {
            const std::uint64_t flags = in.number();
            spec.exclusive = (flags & kExclusive) != 0;
            spec.hold = (flags & kHold) != 0;
            spec.pty = (flags & kPty) != 0;
            spec.mixed_kinds = (flags & kMixedKinds) != 0;
            spec.preemptible = (flags & kNotPreemptible) == 0;
            spec.share_unenforced = (flags & kShareUnenforced) != 0;
            return flags <= kFlagsAll;
        }
        case kConstraint: return get_items(in, spec.constraint);
        case kTopology:
            get(in, spec.topology.required);
            get(in, spec.topology.preferred);
            get(in, spec.topology.slice);
            get(in, spec.topology.slice_required);
            get(in, spec.topology.spares);
            return true;
        default: return false;
    }
}

void put_restart(Writer& out, const RestartRule& rule) {
    const RestartRule usual;
    put_changed(out, kRestartMax, rule.max, usual.max);
    if (rule.on_any != usual.on_any || rule.on_oom != usual.on_oom || !rule.exit_codes.empty()) {
        out.number(kRestartOn);
        out.flag(rule.on_any);
        out.flag(rule.on_oom);
        put(out, rule.exit_codes);
    }
    put_changed(out, kRestartBackoff, rule.backoff, usual.backoff);
}

void put_array(Writer& out, const Array& array) {
    const Array usual;
    if (array.count != usual.count || array.first != usual.first || array.step != usual.step ||
        array.parallel != usual.parallel) {
        out.number(kArray);
        for (const std::int64_t number : {array.count, array.first, array.step, array.parallel})
            out.signed_number(number);
    }
    put_changed(out, kSweep, array.sweep, usual.sweep);
}

}  // namespace

std::string encode(const JobSpec& spec) {
    const JobSpec usual;
    Writer out;
    out.number(kVersion);
    put_changed(out, kName, spec.name, usual.name);
    put_changed(out, kQueue, spec.queue, usual.queue);
    put_changed(out, kPriority, spec.priority, usual.priority);
    put_changed(out, kLabels, spec.labels, usual.labels);
    put_changed(out, kRoles, spec.roles, usual.roles);
    put_changed(out, kTime, spec.time, usual.time);
    put_changed(out, kExpectedTime, spec.expected_time, usual.expected_time);
    put_changed(out, kBegin, spec.begin, usual.begin);
    put_changed(out, kDeadline, spec.deadline, usual.deadline);
    put_changed(out, kImage, spec.image, usual.image);
    put_changed(out, kWorkdir, spec.workdir, usual.workdir);
    put_changed(out, kEnv, spec.env, usual.env);
    put_changed(out, kSetup, spec.setup, usual.setup);
    put_changed(out, kMounts, spec.mounts, usual.mounts);
    put_changed(out, kSecrets, spec.secrets, usual.secrets);
    if (spec.launch != usual.launch) {
        out.number(kLaunch);
        out.number(static_cast<std::uint64_t>(spec.launch));
    }
    put_restart(out, spec.restart);
    put_changed(out, kLogRules, spec.log_rules, usual.log_rules);
    put_changed(out, kCheckpointDir, spec.checkpoint.dir, usual.checkpoint.dir);
    put_changed(out, kCheckpointSignal, spec.checkpoint.signal, usual.checkpoint.signal);
    put_changed(out, kCheckpointGrace, spec.checkpoint.grace, usual.checkpoint.grace);
    put_changed(out, kCheckpointInterval, spec.checkpoint.interval, usual.checkpoint.interval);
    put_changed(out, kDepends, spec.depends, usual.depends);
    put_array(out, spec.array);
    if (flags_of(spec) != 0) {
        out.number(kFlags);
        out.number(flags_of(spec));
    }
    put_changed(out, kConstraint, spec.constraint, usual.constraint);
    put_changed(out, kTopology, spec.topology, usual.topology);
    return std::move(out).bytes();
}

std::optional<JobSpec> decode_job_spec(std::string_view bytes) {
    Reader in(bytes);
    if (in.number() != kVersion) return std::nullopt;
    JobSpec spec;
    for (std::uint64_t last = 0; in.ok() && !in.at_end();) {
        const std::uint64_t tag = in.number();
        if (tag <= last || !get_field(in, tag, spec)) return std::nullopt;
        last = tag;
    }
    if (!in.ok()) return std::nullopt;
    return spec;
}

std::vector<EnvVar> sweep_values(const Array& array, std::int64_t element) {
    std::vector<EnvVar> out(array.sweep.size());
    for (std::size_t i = array.sweep.size(); i-- > 0;) {
        const SweepAxis& axis = array.sweep[i];
        out[i].name = axis.name;
        const auto size = static_cast<std::int64_t>(axis.values.size());
        if (size == 0 || element < 0) continue;
        out[i].value = axis.values[static_cast<std::size_t>(element % size)];
        element /= size;
    }
    return out;
}

}  // namespace muster::model
