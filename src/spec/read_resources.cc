// Readers of what a job asks of each node, and of roles.
#include <algorithm>

#include "spec/normaliser.h"

namespace muster::spec {
namespace {

constexpr std::size_t kAlternativesMax = 16;
constexpr std::size_t kRolesMax = 64;
constexpr std::string_view kFractions = "0.001..0.999";

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
    const bool part = written.find_first_not_of("0123456789./") == std::string_view::npos &&
                      written.find_first_of("./") != std::string_view::npos;
    n.fail(v,
           shorten(whole) + ": the number of devices per node must be in " + limit +
               (part ? "; part of one device is a number in " + std::string(kFractions) : ""),
           {.limit = limit});
    return std::nullopt;
}

/// Thousandths of "0.5", "0.125". Nothing: it is not of this form, or none or all of a device.
std::optional<std::int64_t> parse_fraction(std::string_view text) {
    if (text.substr(0, 2) != "0." || text.size() < 3 || text.size() > 5) return std::nullopt;
    std::string digits(text.substr(2));
    digits.resize(3, '0');
    const auto parsed = parse_integer(digits, 1, 999);
    return parsed ? std::optional(*parsed) : std::nullopt;
}

/// "8", "h100", "h100:8", "80GB:1", "h100:80GB:8", "0.5", "h100:0.5".
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
            if (const auto fraction = parse_fraction(last)) {
                ask.fraction = *fraction;
            } else {
                const auto count = device_count(n, v, last, text);
                if (!count) return std::nullopt;
                ask.count = *count;
            }
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
    if (ask.kind == "any") ask.kind.clear();
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

/// Part of a device is told in one way, and of one device.
void check_part(Normaliser& n, const Value& map, const model::DeviceAsk& ask) {
    std::vector<std::string> ways;
    if (ask.fraction != 0) ways.emplace_back("fraction");
    if (ask.share_memory.value != 0) ways.emplace_back("share");
    if (!ask.profile.empty()) ways.emplace_back("profile");
    if (ways.size() > 1)
        n.fail(map, errors::kJobFieldsConflict,
               join(ways, " and ") + ": each is part of a device; give one of them");
    if (!ways.empty() && ask.count > 1)
        n.fail(map, errors::kJobFieldsConflict,
               "count " + std::to_string(ask.count) + " with " + ways[0] +
                   ": part of a device is of one device; take count away");
}

void read_one_gpus(Normaliser& n, const Value& v) {
    if (v.kind == Value::Kind::Map) {
        model::DeviceAsk ask;
        n.ask = &ask;
        n.read_parts(v, find_field(job_fields(), "gpus")->parts);
        n.ask = nullptr;
        check_part(n, v, ask);
        return add_ask(n, v, ask);
    }
    const auto written = n.scalar(v);
    if (!written) return;
    for (const std::string_view part : split(*written, ','))
        if (const auto ask = device_ask(n, v, trim(part))) add_ask(n, v, *ask);
}

}  // namespace

void read_nodes(Normaliser& n, const Value& v) {
    const std::size_t dots = v.kind == Value::Kind::Scalar ? v.text.find("..") : std::string::npos;
    if (dots == std::string::npos) {
        if (const auto nodes = n.integer(v, 1, model::kNodesMax))
            n.role->nodes = n.role->nodes_max = *nodes;
        return;
    }
    const auto least = parse_integer(v.text.substr(0, dots), 1, model::kNodesMax);
    const auto most = parse_integer(v.text.substr(dots + 2), 1, model::kNodesMax);
    if (!least || !most || *least >= *most) {
        const std::string limit = "1.." + std::to_string(model::kNodesMax);
        return n.fail(v,
                      shorten(v.text) + ": must be MIN..MAX, rising and within " + limit +
                          " (4..16); a job that is not elastic has one number",
                      {.limit = limit});
    }
    n.role->nodes = *least;
    n.role->nodes_max = *most;
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
    const auto written = n.scalar(v);
    if (!written) return;
    n.ask->kind = device_word(n, v, *written, "kind of device");
    if (n.ask->kind == "any") n.ask->kind.clear();
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
    const auto written = n.scalar(v);
    if (!written) return;
    n.ask->vendor = device_word(n, v, *written, "vendor");
    if (n.ask->vendor == "any") n.ask->vendor.clear();
}
void read_gpu_fraction(Normaliser& n, const Value& v) {
    const auto written = n.scalar(v);
    if (!written) return;
    if (const auto fraction = parse_fraction(*written))
        n.ask->fraction = *fraction;
    else
        n.fail(v, shorten(*written) + ": must be in " + std::string(kFractions),
               {.limit = std::string(kFractions)});
}
void read_gpu_share(Normaliser& n, const Value& v) {
    if (const auto size = n.bytes(v, kBytesMax)) n.ask->share_memory = *size;
}
void read_gpu_profile(Normaliser& n, const Value& v) {
    if (const auto written = n.scalar(v))
        n.ask->profile = device_word(n, v, *written, "profile of a partition");
}
void read_kinds(Normaliser& n, const Value& v) {
    const auto written = n.scalar(v);
    if (!written) return;
    if (*written == "one" || *written == "mixed")
        n.spec.mixed_kinds = *written == "mixed";
    else
        n.fail(v, shorten(*written) + ": must be one or mixed", {.limit = "one, mixed"});
}
void read_share_unenforced(Normaliser& n, const Value& v) {
    if (const auto value = n.flag(v)) n.spec.share_unenforced = *value;
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
