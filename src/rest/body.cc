#include "rest/body.h"

#include <set>

#include <rapidjson/document.h>
#include <rapidjson/error/en.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "base/error_codes.h"
#include "base/text.h"

namespace muster::rest {
namespace {

using Document = rapidjson::Document;
using Value = rapidjson::Value;

constexpr unsigned kParse = rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag;

std::string_view text_of(const Value& value) {
    return {value.GetString(), value.GetStringLength()};
}

void place_of(std::string_view text, std::size_t offset, FieldProblem& problem) {
    problem.line = problem.column = 1;
    for (std::size_t i = 0; i < offset && i < text.size(); ++i) {
        if (text[i] == '\n')
            ++problem.line, problem.column = 1;
        else
            ++problem.column;
    }
}

void mask_env(Value& owner, Document::AllocatorType& allocator) {
    if (!owner.IsObject()) return;
    const auto env = owner.FindMember("env");
    if (env == owner.MemberEnd() || !env->value.IsObject()) return;
    for (auto& member : env->value.GetObject()) member.value.SetString("***", allocator);
}

}  // namespace

struct Body::State {
    Document document;
    std::set<std::string> asked;
    std::vector<FieldProblem> problems;
    std::optional<Problem> refusal;  // Of the body as a whole.

    const Value* find(std::string_view name) {
        asked.emplace(name);
        if (refusal || !document.IsObject()) return nullptr;
        const Value key(name.data(), static_cast<rapidjson::SizeType>(name.size()));
        const auto at = document.FindMember(key);
        return at == document.MemberEnd() || at->value.IsNull() ? nullptr : &at->value;
    }
    void wrong(std::string_view name, std::string detail) {
        problems.push_back({.pointer = "/" + std::string(name), .detail = std::move(detail)});
    }
};

Body::Body(const net::HttpRequest& request, BodyNeed need) : state_(std::make_unique<State>()) {
    State& state = *state_;
    state.document.SetObject();
    if (trim(request.body).empty()) {
        if (need == BodyNeed::Required) {
            state.refusal = Problem{numbered(errors::kBodySyntax, "the request has no body")};
        }
        return;
    }
    const std::string_view type = trim(split(request.header("content-type"), ';').front());
    if (!type.empty() && lower(type) != "application/json") {
        state.refusal = Problem{numbered(
            errors::kMediaType,
            "content type \"" + std::string(type.substr(0, 100)) + "\" is not accepted here", {},
            "send application/json")};
        return;
    }
    state.document.Parse<kParse>(request.body.data(), request.body.size());
    if (state.document.HasParseError()) {
        FieldProblem problem{.detail = rapidjson::GetParseError_En(state.document.GetParseError())};
        place_of(request.body, state.document.GetErrorOffset(), problem);
        state.refusal = Problem{
            numbered(errors::kBodySyntax, "the body is not valid JSON: " + problem.detail +
                                              " (line " + std::to_string(problem.line) +
                                              ", column " + std::to_string(problem.column) + ")")};
        state.refusal->fields.push_back(std::move(problem));
        state.document.SetObject();
    } else if (!state.document.IsObject()) {
        state.refusal = Problem{numbered(errors::kBodySyntax, "the body is not a JSON object")};
        state.document.SetObject();
    }
}
Body::~Body() = default;

std::optional<std::string> Body::text(std::string_view name, std::size_t bytes_max) {
    const Value* value = state_->find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->IsString()) {
        state_->wrong(name, std::string(name) + ": expected a string");
        return std::nullopt;
    }
    const std::string_view text = text_of(*value);
    if (text.size() > bytes_max) {
        state_->wrong(name, std::string(name) + ": " + std::to_string(text.size()) +
                                " bytes are over the limit of " + std::to_string(bytes_max));
        return std::nullopt;
    }
    for (const char c : text) {
        if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') {
            state_->wrong(name, std::string(name) + ": control characters are not allowed");
            return std::nullopt;
        }
    }
    return std::string(text);
}

std::optional<std::int64_t> Body::integer(std::string_view name, std::int64_t low,
                                          std::int64_t high) {
    const Value* value = state_->find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->IsInt64() || value->GetInt64() < low || value->GetInt64() > high) {
        state_->wrong(name, std::string(name) + ": expected a whole number from " +
                                std::to_string(low) + " to " + std::to_string(high));
        return std::nullopt;
    }
    return value->GetInt64();
}

std::optional<bool> Body::flag(std::string_view name) {
    const Value* value = state_->find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->IsBool()) {
        state_->wrong(name, std::string(name) + ": expected true or false");
        return std::nullopt;
    }
    return value->GetBool();
}

std::optional<std::vector<std::string>> Body::texts(std::string_view name, std::size_t count_max) {
    const Value* value = state_->find(name);
    if (value == nullptr) return std::nullopt;
    std::vector<std::string> out;
    bool good = value->IsArray() && value->Size() <= count_max;
    for (std::size_t i = 0; good && i < value->Size(); ++i) {
        const Value& item = (*value)[static_cast<rapidjson::SizeType>(i)];
        good = item.IsString() && text_of(item).find('\0') == std::string_view::npos;
        if (good) out.emplace_back(text_of(item));
    }
    if (!good) {
        state_->wrong(name, std::string(name) + ": expected a list of at most " +
                                std::to_string(count_max) + " strings");
        return std::nullopt;
    }
    return out;
}

void Body::refuse(std::string_view name, std::string detail) {
    state_->wrong(name, std::move(detail));
}

std::optional<Problem> Body::finish() {
    State& state = *state_;
    if (state.refusal) return std::move(state.refusal);
    const std::vector<std::string> known(state.asked.begin(), state.asked.end());
    for (const auto& member : state.document.GetObject()) {
        const std::string name(text_of(member.name));
        if (state.asked.contains(name)) continue;
        const std::string near = nearest(name, known);
        FieldProblem problem{.pointer = "/" + name, .detail = name + ": unknown member"};
        if (!near.empty()) {
            problem.detail += "; did you mean " + near + "?";
            problem.suggestion = near;
        }
        state.problems.push_back(std::move(problem));
    }
    if (state.problems.empty()) return std::nullopt;
    std::string message = state.problems.front().detail;
    if (state.problems.size() > 1) {
        message += " (and " + std::to_string(state.problems.size() - 1) + " more)";
    }
    return Problem{.error = numbered(errors::kBodyMember, std::move(message)),
                   .fields = std::move(state.problems)};
}

std::size_t skip_between(std::string_view text, std::size_t at) {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' ||
                                text[at] == '\r' || text[at] == ',' || text[at] == ':')) {
        ++at;
    }
    return at;
}

std::size_t end_of_value(std::string_view text, std::size_t at) {
    int depth = 0;
    bool quoted = false;
    for (; at < text.size(); ++at) {
        const char c = text[at];
        if (quoted) {
            if (c == '\\')
                ++at;
            else if (c == '"')
                quoted = false;
            if (!quoted && depth == 0) return at + 1;
        } else if (c == '"') {
            quoted = true;
        } else if (c == '{' || c == '[') {
            ++depth;
        } else if (c == '}' || c == ']') {
            if (depth == 0) return at;
            if (--depth == 0) return at + 1;
        } else if (depth == 0 && (c == ',' || c == ' ' || c == '\n' || c == '\t' || c == '\r')) {
            return at;
        }
    }
    return text.size();
}

std::string_view member_of(std::string_view object, std::string_view name) {
    std::string_view found;
    for_each_member(object, [&](std::string_view member, std::string_view value) {
        if (found.empty() && member == name) found = value;
    });
    return found;
}

std::string mask_json(const std::string& job) {
    Document document;
    document.Parse<kParse>(job.data(), job.size());
    if (document.HasParseError() || !document.IsObject()) return "{}";
    const auto spec = document.FindMember("spec");
    if (spec != document.MemberEnd() && spec->value.IsObject()) {
        auto& allocator = document.GetAllocator();
        mask_env(spec->value, allocator);
        const auto secrets = spec->value.FindMember("secrets");
        if (secrets != spec->value.MemberEnd() && secrets->value.IsObject()) {
            for (auto& member : secrets->value.GetObject()) {
                member.value.SetString("***", allocator);
            }
        }
        const auto roles = spec->value.FindMember("roles");
        if (roles != spec->value.MemberEnd() && roles->value.IsObject()) {
            for (auto& role : roles->value.GetObject()) mask_env(role.value, allocator);
        }
    }
    rapidjson::StringBuffer buffer;
    rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
    document.Accept(writer);
    return {buffer.GetString(), buffer.GetSize()};
}

}  // namespace muster::rest
