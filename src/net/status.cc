#include "net/status.h"

#include "base/json_writer.h"

namespace muster::net {
namespace {

struct Row {
    Code code;
    int http;
    int grpc;  // google.rpc.Code.
};

constexpr Row kRows[] = {
    {Code::Invalid, 400, 3},      {Code::Unauthenticated, 401, 16}, {Code::Denied, 403, 7},
    {Code::NotFound, 404, 5},     {Code::Conflict, 409, 10},        {Code::Precondition, 412, 9},
    {Code::Gone, 410, 11},        {Code::TooLarge, 413, 8},         {Code::Exhausted, 429, 8},
    {Code::Unavailable, 503, 14}, {Code::NoSpace, 507, 8},          {Code::Corrupt, 500, 15},
    {Code::Internal, 500, 13},
};

}  // namespace

int http_status(Code code) {
    for (const Row& row : kRows) {
        if (row.code == code) return row.http;
    }
    return 500;
}

Code code_of_http(int status) {
    if (status == 500) return Code::Internal;
    for (const Row& row : kRows) {
        if (row.http == status) return row.code;
    }
    switch (status) {
        case 422:
        case 428:
        case 405:
        case 415: return Code::Invalid;
        case 431: return Code::TooLarge;
        case 408:
        case 502:
        case 504: return Code::Unavailable;
        default: return status >= 500 ? Code::Internal : Code::Invalid;
    }
}

const char* http_reason(int status) {
    switch (status) {
        case 100: return "Continue";
        case 101: return "Switching Protocols";
        case 200: return "OK";
        case 201: return "Created";
        case 202: return "Accepted";
        case 204: return "No Content";
        case 206: return "Partial Content";
        case 301: return "Moved Permanently";
        case 302: return "Found";
        case 303: return "See Other";
        case 304: return "Not Modified";
        case 307: return "Temporary Redirect";
        case 308: return "Permanent Redirect";
        case 400: return "Bad Request";
        case 401: return "Unauthorized";
        case 403: return "Forbidden";
        case 404: return "Not Found";
        case 405: return "Method Not Allowed";
        case 406: return "Not Acceptable";
        case 408: return "Request Timeout";
        case 409: return "Conflict";
        case 410: return "Gone";
        case 411: return "Length Required";
        case 412: return "Precondition Failed";
        case 413: return "Content Too Large";
        case 414: return "URI Too Long";
        case 415: return "Unsupported Media Type";
        case 416: return "Range Not Satisfiable";
        case 422: return "Unprocessable Content";
        case 426: return "Upgrade Required";
        case 428: return "Precondition Required";
        case 429: return "Too Many Requests";
        case 431: return "Request Header Fields Too Large";
        case 500: return "Internal Server Error";
        case 501: return "Not Implemented";
        case 502: return "Bad Gateway";
        case 503: return "Service Unavailable";
        case 504: return "Gateway Timeout";
        case 505: return "HTTP Version Not Supported";
        case 507: return "Insufficient Storage";
        default: return "";
    }
}

int grpc_status(Code code) {
    for (const Row& row : kRows) {
        if (row.code == code) return row.grpc;
    }
    return 13;
}

Code code_of_grpc(int status) {
    for (const Row& row : kRows) {
        if (row.grpc == status && row.code != Code::NoSpace && row.code != Code::TooLarge) {
            return row.code;
        }
    }
    switch (status) {
        case 1:                            // CANCELLED
        case 4: return Code::Unavailable;  // DEADLINE_EXCEEDED
        case 6: return Code::Conflict;     // ALREADY_EXISTS
        default: return Code::Internal;
    }
}

std::string problem_json(const Error& error) {
    return problem_json(error, http_status(error.code));
}

std::string problem_json(const Error& error, int status) {
    JsonWriter json;
    json.begin_object().field("type", "about:blank").field("title", http_reason(status));
    json.field("status", status).field("detail", error.message);
    if (!error.cause.empty()) json.field("cause", error.cause);
    if (!error.fix.empty()) json.field("fix", error.fix);
    if (error.number != 0) json.field("code", "E" + std::to_string(error.number));
    json.end_object();
    return std::move(json).text();
}

}  // namespace muster::net
