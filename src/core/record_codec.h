// The bytes of single records, for records.cc and for the digest.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/state.h"

namespace muster::core {

std::string encode_job(const Job& job);
std::optional<Job> decode_job(std::string_view bytes);
std::string encode_meta(const Meta& meta);
std::optional<Meta> decode_meta(std::string_view bytes);
std::string encode_node(const Node& node);
std::optional<Node> decode_node(std::string_view bytes);
std::string encode_spec(const Spec& spec);
std::optional<Spec> decode_spec(std::string_view bytes);
std::string encode_token(const Token& token);
std::optional<Token> decode_token(std::string_view bytes);
std::string encode_idempotency(const Idempotency& entry);
std::optional<Idempotency> decode_idempotency(std::string_view bytes);
std::string encode_user(const User& user);
std::optional<User> decode_user(std::string_view bytes);
std::string encode_queue(const Queue& queue);
std::optional<Queue> decode_queue(std::string_view bytes);
std::string encode_reservation(const model::Reservation& reservation);
std::string encode_usage(const Usage& usage);
std::optional<Usage> decode_usage(std::string_view bytes);
std::string encode_run_times(const RunTimes& times);
std::optional<RunTimes> decode_run_times(std::string_view bytes);

}  // namespace muster::core
