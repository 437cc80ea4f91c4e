// Readers of what a job asks of each node, and of roles.
#include <algorithm>

#include "spec/normaliser.h"

namespace muster::spec {
namespace {

constexpr std::size_t kAlternativesMax = 16;
constexpr std::size_t kRolesMax = 64;
constexpr std::string_view kNoShares =
    "a share of a device is not supported by this version of Muster; ask for whole devices";

/// "80GB", but neither "8" nor "910b" (a model's name).
bool is_memory(std::string_view text) {
    return !text.empty() && text.front() >= '0' && text.front() <= '9' &&
           text.find_first_of("kmgtpKMGTP") != std::string_view::npos &&
           parse_bytes(text).operator bool();
}

/// A model or a class of devices, in lower case. Empty: it cannot be one, and the user knows why.
std::string device_word(Normaliser& n, const Value& v, std::string_view written,
                        std::string_view what) {
    std::string word = lower(written);
    const bool valid =
        !word.empty() && word.size() <= 64 &&
        word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789._+-") == std::string::npos &&
        word.front() != '-' && word.front() != '.' && word.front() != '+';
    if (valid) return word;
    n.fail(v, shorten(written) + ": not a " + std::string(what) +
                  "; at most 64 letters, digits, . _ + and - (h100, ascend910b, fpga)");
    return {};
}

/// `written` is the count in `whole`, which the message shows.
std::optional<std::int64_t> device_count(Normaliser& n, const Value& v, std::string_view written,
                                         std::string_view whole) {
    const std::string limit = "1.." + std::to_string(model::kGpusPerNodeMax);
    const auto count = parse_integer(written, 1, model::kGpusPerNodeMax);
    if (count) return *count;
    const bool share = written.find_first_not_of("0123456789./") == std::string_view::npos &&
                       written.find_first_of("./") != std::string_view::npos;
    n.fail(v,
           share ? shorten(whole) + ": " + std::string(kNoShares)
                 : shorten(whole) + ": the number of devices per node must be in " + limit,
           {.limit = limit, .number = share ? errors::kJobUnsupported : errors::kJobOutOfRange});
    return std::nullopt;
}

/// "8", "h100", "h100:8", "80GB:1", "h100:80GB:8".
std::optional<model::DeviceAsk> device_ask(Normaliser& n, const Value& v, std::string_view text) {
    model::DeviceAsk ask;
    auto parts = split(text, ':');
    const std::string_view last = trim(parts.back());
    const bool alone = parts.size() == 1;
    const bool counts =
        !last.empty() && (last.front() == '-' || last.front() == '+' || last.front() == '.' ||
                          last.find_first_not_of("0123456789./") == std::string_view::npos);
    if (counts || !alone) {
        if (counts || !is_memory(last)) {
            const auto count = device_count(n, v, last, text);
            if (!count) return std::nullopt;
            ask.count = *count;
            parts.pop_back();
        }
    }
    if (!parts.empty() && is_memory(trim(parts.back()))) {
        ask.memory_min = *parse_bytes(trim(parts.back()));
        parts.pop_back();
    }
    if (parts.size() > 1) {
        n.fail(v,
               shorten(text) + ": must be COUNT, KIND:COUNT or MEMORY:COUNT (8, h100:8, 80GB:1)");
        return std::nullopt;
    }
    if (parts.empty()) return ask;
    ask.kind = device_word(n, v, trim(parts[0]), "kind of device");
    if (ask.kind.empty()) return std::nullopt;
    if (ask.kind == "none") {
        n.fail(v, "none cannot be an alternative to devices");
        return std::nullopt;
    }
    return ask;
}

void add_ask(Normaliser& n, const Value& v, const model::DeviceAsk& ask) {
    std::vector<model::DeviceAsk>& devices = n.role->devices;
    if (std::find(devices.begin(), devices.end(), ask) != devices.end())
        return n.fail(v, "the same alternative twice");
    if (devices.size() >= kAlternativesMax)
        return n.fail(
            v, "more than the limit of " + std::to_string(kAlternativesMax) + " alternatives");
    devices.push_back(ask);
}

void read_one_gpus(Normaliser& n, const Value& v) {
    if (v.kind == Value::Kind::Map) {
        model::DeviceAsk ask;
        n.ask = &ask;
        n.read_parts(v, find_field(job_fields(), "gpus")->parts);
        n.ask = nullptr;
        return add_ask(n, v, ask);
    }
    const auto written = n.scalar(v);
    if (!written) return;
    for (const std::string_view part : split(*written, ','))
        if (const auto ask = device_ask(n, v, trim(part))) add_ask(n, v, *ask);
}

}  // namespace

void read_nodes(Normaliser& n, const Value& v) {
    if (v.kind == Value::Kind::Scalar && v.text.find("..") != std::string::npos)
        return n.fail(v, errors::kJobUnsupported,
                      shorten(v.text) +
                          ": a range of nodes (an elastic job) is not supported by this version "
                          "of Muster; give one number");
    if (const auto nodes = n.integer(v, 1, model::kNodesMax))
        n.role->nodes = n.role->nodes_max = *nodes;
}

void read_gpus(Normaliser& n, const Value& v) {
    n.role->devices.clear();
    if (v.kind == Value::Kind::Scalar && (lower(v.text) == "none" || v.text == "0")) return;
    const auto list = n.items(v);
    if (v.kind == Value::Kind::List && list.empty())
        return n.fail(v, "an empty list; write none for no devices");
    if (v.kind != Value::Kind::List) return read_one_gpus(n, v);
    for (std::size_t i = 0; i < list.size(); ++i) {
        const Normaliser::Within within(n, i);
        read_one_gpus(n, list[i]);
    }
}
void read_gpu_kind(Normaliser& n, const Value& v) {
    if (const auto written = n.scalar(v))
        n.ask->kind = device_word(n, v, *written, "kind of device");
}
void read_gpu_count(Normaliser& n, const Value& v) {
    const auto written = n.scalar(v);
    if (!written) return;
    if (const auto count = device_count(n, v, *written, *written)) n.ask->count = *count;
}
void read_gpu_memory(Normaliser& n, const Value& v) {
    const auto written = n.scalar(v);
    if (!written) return;
    Value least = v;
    if (written->substr(0, 2) == ">=") least.text = std::string(trim(written->substr(2)));
    if (const auto memory = n.bytes(least, kBytesMax)) n.ask->memory_min = *memory;
}
void read_gpu_vendor(Normaliser& n, const Value& v) {
    if (const auto written = n.scalar(v)) n.ask->vendor = device_word(n, v, *written, "vendor");
}
void read_gpu_fraction(Normaliser& n, const Value& v) {
    n.fail(v, std::string(kNoShares));
}

void read_cpus(Normaliser& n, const Value& v) {
    const auto written = n.scalar(v);
    if (!written) return;
    const std::string limit = "0.001.." + format_cpus({kMilliCpuMax});
    const auto cpus = parse_cpus(*written);
    if (!cpus) return n.fail(v, cpus.error().message, {.limit = limit});
    if (cpus->value == 0)
        return n.fail(v, "0: must be more than none; leave it out for the default",
                      {.limit = limit});
    n.role->cpus = *cpus;
}
void read_memory(Normaliser& n, const Value& v) {
    if (const auto size = n.bytes(v, kBytesMax)) n.role->memory = *size;
}
void read_disk(Normaliser& n, const Value& v) {
    if (const auto size = n.bytes(v, kDiskBytesMax)) n.role->disk = *size;
}
void read_shm(Normaliser& n, const Value& v) {
    if (const auto size = n.bytes(v, kBytesMax)) n.role->shm = *size;
}

void read_roles(Normaliser& n, const Value& v) {
    const auto entries = n.entries(v, "{worker: {nodes: 4, gpus: 8}, ps: {nodes: 1}}");
    if (entries.empty()) {
        if (v.kind == Value::Kind::Map) n.fail(v, "empty; name at least one role");
        return;
    }
    if (entries.size() > kRolesMax)
        return n.fail(v, std::to_string(entries.size()) + " roles, over the limit of " +
                             std::to_string(kRolesMax));
    for (const Entry& entry : entries) {
        const Normaliser::Within within(n, entry.key);
        const std::string& name = entry.key;
        const bool valid =
            !name.empty() && name.size() <= 63 && name.front() != '-' && name.back() != '-' &&
            name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
        if (!valid)
            n.fail(scalar_value(name, entry.source, entry.at),
                   "not a role's name; at most 63 lower-case letters, digits and -");
        model::Role role = n.job_role;
        role.name = name;
        n.role = &role;
        if (entry.value.kind == Value::Kind::Map)
            n.read_parts(entry.value, job_fields(), Normaliser::Scope::Role);
        else
            n.fail(entry.value, "a map expected, as in {nodes: 4, run: python train.py}");
        n.role = &n.job_role;
        if (role.run.empty())
            n.fail(entry.value, errors::kJobFieldMissing,
                   "has no run, and the job has none to use instead");
        n.spec.roles.push_back(std::move(role));
    }
}

}  // namespace muster::spec
