#include "spec/normaliser.h"

#include <algorithm>

namespace muster::spec {
namespace {

std::vector<std::string> names_of(std::span<const Field> parts, bool role_only) {
    std::vector<std::string> names;
    for (const Field& field : parts)
        if (!role_only || field.in_role) names.emplace_back(field.name);
    return names;
}

}  // namespace

void Normaliser::fail_unknown(const Entry& entry, std::span<const Field> parts, Scope scope) {
    if (full()) return;
    const bool top = parts.data() == job_fields().data();
    const Within within(*this, entry.key);
    if (scope == Scope::Role && find_field(parts, entry.key) != nullptr)
        return fail_at(entry.source, entry.at,
                       "a field of the job, not of a role; write it beside roles",
                       {.number = errors::kJobUnknownField});
    const std::vector<std::string> names = names_of(parts, scope == Scope::Role);
    std::string near = nearest(entry.key, names);
    for (const OtherName& other : other_names()) {
        if (other.name != entry.key) continue;
        if (other.instead.empty())
            return fail_at(entry.source, entry.at, "not supported by this version of Muster",
                           {.number = errors::kJobUnsupported});
        if (top) near = std::string(other.instead);
    }
    if (!near.empty())
        return fail_at(entry.source, entry.at, "unknown key; did you mean " + near + "?",
                       {.suggestion = near, .number = errors::kJobUnknownField});
    const bool few = names.size() <= 10;
    fail_at(entry.source, entry.at,
            few ? "unknown key; known here: " + join(names, ", ")
                : "unknown key; a job has no such field",
            {.number = errors::kJobUnknownField});
}

std::optional<std::string> Normaliser::path(const Value& value, std::string_view written) {
    constexpr std::size_t kPathMax = 4095;
    const auto refuse = [&](const std::string& why) -> std::optional<std::string> {
        fail(value, shorten(written) + ": " + why, {.value = shorten(written)});
        return std::nullopt;
    };
    if (written.empty()) return refuse("a path is missing");
    if (written.front() == '~') return refuse("~ is not expanded; write the absolute path");
    std::string whole(written);
    if (whole.front() != '/') {
        const bool flag = value.source != 0 && !options.flag_dir.empty();
        const std::string& base = flag ? options.flag_dir : options.base_dir;
        if (base.empty()) return refuse("must be an absolute path");
        whole = base + "/" + whole;
    }
    std::string out;
    for (const std::string_view part : split(whole, '/')) {
        if (part.empty() || part == ".") continue;
        if (part == "..") return refuse("a path must not contain ..");
        out += '/';
        out += part;
    }
    if (out.size() > kPathMax)
        return refuse("longer than the limit of " + std::to_string(kPathMax) + " bytes");
    for (const char c : out)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
            return refuse("a path must not contain control characters");
    return out.empty() ? "/" : out;
}

void Normaliser::read_parts(const Value& map, std::span<const Field> parts, Scope scope) {
    fail_repeated(map.entries);
    for (const Entry& entry : map.entries) {
        const auto row = std::find_if(parts.begin(), parts.end(), [&](const Field& field) {
            return field.name == entry.key && (scope == Scope::All || field.in_role);
        });
        // Where an editor finds the schema: the one key that says nothing of the job.
        if (entry.key == "$schema" && &map == root_) continue;
        if (row == parts.end()) {
            fail_unknown(entry, parts, scope);
            continue;
        }
        if (row->type == Type::Roles) continue;  // Read last: the other fields are its defaults.
        const Within within(*this, row->name);
        row->read(*this, entry.value);
    }
}

const Value* Normaliser::given(std::string_view field) const {
    for (const Entry& entry : root_->entries)
        if (entry.key == field) return &entry.value;
    return nullptr;
}

void Normaliser::read(const Value& root) {
    root_ = &root;
    if (root.kind != Value::Kind::Map && root.kind != Value::Kind::Null) {
        fail(root, "a job is a map of fields, as in \"run: python train.py\"");
        return;
    }
    read_parts(root, job_fields());
    if (const Value* roles = given("roles")) {
        const Within within(*this, "roles");
        read_roles(*this, *roles);
    }
    finish();
}

}  // namespace muster::spec
