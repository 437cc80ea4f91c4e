#include "controller/joining.h"

#include <future>

#include "base/error_codes.h"
#include "net/pki.h"

namespace muster::controller {
namespace {

constexpr Duration kLife{std::int64_t{397} * 24 * 3600 * 1000};
constexpr Duration kBackdate{3600 * 1000};

bool good_name(const std::string& name) {
    if (name.empty() || name.size() > 50 || name.front() == '-' || name.front() == '.')
        return false;
    return name.find_first_not_of(
               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") ==
           std::string::npos;
}

/// The join token that the secret is of; 0: none that is good now.
Result<std::uint64_t> token_of(const core::View& view, const net::JoinAsk& ask, Time now) {
    const std::string hash = net::sha256_hex(ask.token_secret);
    Result<std::uint64_t> found = Error{
        Code::Denied, "the join token is not known here", "it was revoked, or is another cluster's",
        "make a new one on the controller: muster token create --join", errors::kJoinRefused};
    view.tokens.for_each([&](std::uint64_t id, const core::Token& token) {
        if (token.kind != core::TokenKind::Join || !net::equal_constant_time(token.hash, hash))
            return;
        if (token.expires <= now || token.uses_left == 0) {
            found = Error{
                Code::Denied,
                token.uses_left == 0 ? "the join token is used up" : "the join token has expired",
                "", "make a new one on the controller: muster token create --join",
                errors::kJoinRefused};
        } else if (!token.user.empty() && token.user != ask.node_name) {
            found = Error{Code::Denied,
                          "the join token is for node " + token.user + ", not " + ask.node_name, "",
                          "set name in agent.yaml, or make another token", errors::kJoinRefused};
        } else {
            found = id;
        }
    });
    return found;
}

/// A name that is bound to a certificate is given anew only to a token made for that very name.
Status may_take(const core::View& view, std::uint64_t token, const std::string& name) {
    Status answer = Ok{};
    view.nodes.for_each([&](std::uint64_t, const core::Node& node) {
        if (node.forgotten || node.certificate.empty() || node.facts->name != name) return;
        if (view.tokens.at(token).user == name) return;
        answer = Error{Code::Denied,
                       "node name " + name + " is taken: it is bound to another certificate", "",
                       "muster token create --join --node " + name +
                           " (a token for that name), or muster node forget " + name,
                       errors::kNameTaken};
    });
    return answer;
}

Result<net::JoinAnswer> sign(const Authority& authority, const net::JoinAsk& ask, Time now) {
    const auto wanted = net::agent_certificate_ask(ask.node_name, now - kBackdate, kLife);
    MUSTER_LET(certificate, net::sign_request(authority.ca, ask.request_pem, wanted));
    return net::JoinAnswer{certificate, authority.ca.certificate_pem};
}

}  // namespace

void answer_join(Loop& loop, const Authority& authority, net::JoinAsk ask, net::JoinReply reply,
                 Time now) {
    if (!good_name(ask.node_name)) {
        return reply(Error{Code::Invalid,
                           "node name '" + ask.node_name + "' is not 1-50 of a-z A-Z 0-9 - . _", "",
                           "set name in agent.yaml", errors::kJoinRefused});
    }
    if (ask.renewal) return reply(sign(authority, ask, now));
    const auto token = token_of(*loop.view(), ask, now);
    if (!token) return reply(token.error());
    if (const Status free = may_take(*loop.view(), *token, ask.node_name); !free)
        return reply(free.error());
    core::NodeJoined joined{*token, ask.node_name, ask.node_name};
    loop.post(std::move(joined), [&authority, ask = std::move(ask), reply = std::move(reply),
                                  now](Result<Answered> done) {
        if (!done) return reply(std::move(done).error());
        reply(sign(authority, ask, now));
    });
}

Status admit(Loop& loop, core::NodeJoined joined) {
    auto promise = std::make_shared<std::promise<Status>>();
    auto done = promise->get_future();
    loop.post(std::move(joined), [promise](Result<Answered> answer) {
        if (answer)
            promise->set_value(Ok{});
        else
            promise->set_value(std::move(answer).error());
    });
    return done.get();
}

}  // namespace muster::controller
