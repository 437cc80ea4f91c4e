// The one table from a Code to an HTTP status and to a gRPC status, and back for clients.
#pragma once

#include <string>

#include "base/result.h"

namespace muster::net {

int http_status(Code code);
/// The nearest Code of an HTTP status of 400 and above.
Code code_of_http(int status);
/// The standard reason phrase; "" for a status we never send.
const char* http_reason(int status);

/// Numbers of google.rpc.Code, so that no gRPC header is needed here.
int grpc_status(Code code);
Code code_of_grpc(int status);

/// RFC 9457: {"type","title","status","detail"} with our cause, fix and code where there are any.
std::string problem_json(const Error& error);
/// The same with a status that no Code stands for (405, 408, 422, 431, ...).
std::string problem_json(const Error& error, int status);

}  // namespace muster::net
