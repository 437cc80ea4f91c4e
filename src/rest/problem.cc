#include "rest/problem.h"

#include "base/error_codes.h"
#include "base/json_writer.h"
#include "net/status.h"

namespace muster::rest {
namespace {

int status_of(const Problem& problem) {
    if (problem.status != 0) return problem.status;
    switch (problem.error.number) {
        case errors::kMediaType: return 415;
        case errors::kMethod: return 405;
        case errors::kUpgradeNeeded: return 426;
        case errors::kPreconditionNeeded: return 428;
        case errors::kKeyReused:
        case errors::kJobInvalid:
        case errors::kQueueUnknown:
        case errors::kDependencyUnknown: return 422;
        default: return net::http_status(problem.error.code);
    }
}

/// Seconds, for statuses that pass by themselves; nullptr for others.
const char* retry_after(int status) {
    switch (status) {
        case 429:
        case 503: return "1";
        case 507: return "30";
        default: return nullptr;
    }
}

void write_field(JsonWriter& json, const FieldProblem& field) {
    json.begin_object().field("pointer", field.pointer).field("detail", field.detail);
    if (field.line != 0) json.field("line", field.line).field("column", field.column);
    if (!field.value.empty()) json.field("value", field.value);
    if (!field.limit.empty()) json.field("limit", field.limit);
    if (!field.suggestion.empty()) json.field("suggestion", field.suggestion);
    if (!field.source.empty()) json.field("source", field.source);
    json.end_object();
}

bool has_header(const std::vector<net::Header>& headers, std::string_view name) {
    for (const net::Header& header : headers) {
        if (header.name == name) return true;
    }
    return false;
}

}  // namespace

Problem invalid_text(const spec::Problems& problems, int number) {
    Problem out{.error = spec::to_error(problems, number), .status = 422};
    if (out.error.fix.empty()) out.error.fix = find_error_code(number)->fix;
    out.error.cause.clear();  // The fields tell it.
    for (const spec::Problem& problem : problems) {
        const std::string_view flag = problem.flag;
        const std::string member =
            flag.starts_with("--") ? "/" + std::string(flag.substr(2)) : std::string();
        out.fields.push_back({.pointer = problem.pointer.empty() ? member : problem.pointer,
                              .detail = problem.message,
                              .line = problem.line,
                              .column = problem.column,
                              .value = problem.value,
                              .limit = problem.limit,
                              .suggestion = problem.suggestion,
                              .source = problem.source});
    }
    return out;
}

Problem invalid_job(const spec::Problems& problems) {
    Problem out = invalid_text(problems, errors::kJobInvalid);
    out.error = spec::to_error(problems);
    if (out.error.number == 0) out.error.number = errors::kJobInvalid;
    if (out.error.fix.empty()) out.error.fix = find_error_code(errors::kJobInvalid)->fix;
    return out;
}

Problem bad_parameter(std::string_view name, std::string_view value, std::string_view limit) {
    std::string message(name);
    message.append(": \"").append(value.substr(0, 100)).append("\" is not valid");
    return {.error = numbered(errors::kBadParameter, std::move(message), {},
                              "give " + std::string(limit))};
}

net::HttpResponse to_response(const Problem& problem, std::string_view request_id,
                              std::string_view instance) {
    const int status = status_of(problem);
    const int number = number_of(problem.error);
    const ErrorCode* entry = find_error_code(number);
    JsonWriter json;
    json.begin_object();
    json.field("type", "urn:muster:error:" + error_name(number));
    json.field("title", entry != nullptr ? entry->title : net::http_reason(status));
    json.field("status", status).field("detail", problem.error.message);
    json.field("instance", instance).field("code", error_name(number));
    if (!problem.error.cause.empty()) json.field("cause", problem.error.cause);
    if (!problem.error.fix.empty()) {
        json.field("fix", problem.error.fix);
    } else if (entry != nullptr) {
        json.field("fix", entry->fix);
    }
    json.field("request_id", request_id);
    if (!problem.nearest.empty()) {
        json.key("nearest").begin_array();
        for (const std::string& name : problem.nearest) json.value(name);
        json.end_array();
    }
    if (!problem.fields.empty()) {
        json.key("errors").begin_array();
        for (const FieldProblem& field : problem.fields) write_field(json, field);
        json.end_array();
    }
    json.end_object();
    net::HttpResponse response{.status = status,
                               .content_type = "application/problem+json",
                               .headers = problem.headers,
                               .body = std::move(json).text()};
    const char* retry = retry_after(status);
    if (retry != nullptr && !has_header(response.headers, "Retry-After")) {
        response.headers.push_back({"Retry-After", retry});
    }
    if (status == 401) response.headers.push_back({"WWW-Authenticate", "Bearer"});
    return response;
}

}  // namespace muster::rest
