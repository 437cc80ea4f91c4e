// /v1/tokens and /v1/whoami. A secret is shown once, when it is made; only its
// SHA-256 is kept.
#include "base/units.h"
#include "net/pki.h"
#include "rest/api.h"
#include "rest/body.h"
#include "rest/job_json.h"
#include "rest/time_text.h"

namespace muster::rest {
namespace {

constexpr Duration kApiLife = seconds(90 * 24 * 3600);
constexpr Duration kJoinLife = seconds(24 * 3600);
constexpr std::size_t kNameMax = 64;

std::string_view kind_text(core::TokenKind kind) {
    return kind == core::TokenKind::Api ? "api" : "join";
}

/// user of an api token, node of a join token; the other is null.
void write_whom(JsonWriter& json, const core::Token& token) {
    const bool api = token.kind == core::TokenKind::Api;
    json.key("user");
    write_text(json, api ? std::string_view(token.user) : std::string_view());
    json.key("node");
    write_text(json, api ? std::string_view() : std::string_view(token.user));
}

struct TokenAsk {
    core::Token token;
    std::string secret_line;  // What is shown once.
};

/// Reads the body; what may be asked for by whom is core's to judge as well.
std::variant<TokenAsk, Problem> parse_ask(const Call& call, const Backend::Health& health) {
    Body body(call.request, BodyNeed::Optional);
    const std::string kind = body.text("kind", 16).value_or("api");
    const auto user = body.text("user", kNameMax);
    const auto node = body.text("node", kNameMax);
    const bool admin = body.flag("admin").value_or(false);
    const auto expires_in = body.text("expires_in", 32);
    const auto uses = body.integer("uses", 1, 1'000'000);
    const bool join = kind == "join";
    TokenAsk ask;
    core::Token& token = ask.token;
    if (!join && kind != "api") body.refuse("kind", "kind: expected api or join");
    if (join && user) body.refuse("user", "user: a join token is for a node, not for a user");
    if (join && admin) body.refuse("admin", "admin: a join token has no role");
    if (!join && node) body.refuse("node", "node: an api token is for a user, not for a node");
    if (!join && uses) body.refuse("uses", "uses: only join tokens are counted");
    token.kind = join ? core::TokenKind::Join : core::TokenKind::Api;
    token.user = join ? node.value_or("") : user.value_or(call.who.caller.user);
    if (!join && token.user.empty()) body.refuse("user", "user: must not be empty");
    token.admin = admin;
    token.uses_left = uses.value_or(-1);
    token.created_by = call.who.caller.user;
    token.expires = call.now + (join ? kJoinLife : kApiLife);
    if (expires_in && *expires_in == "never") {
        token.expires = kNever;
    } else if (expires_in) {
        const auto life = parse_duration(*expires_in);
        if (!life || life->ms == 0) {
            body.refuse("expires_in", "expires_in: expected a duration such as 30d, or never");
        } else {
            token.expires = call.now + *life;
        }
    }
    if (auto problem = body.finish()) return *std::move(problem);
    const bool asks_more = join || admin || token.user != call.who.caller.user;
    if (asks_more && !call.who.caller.admin) {
        return Problem{numbered(errors::kAdminOnly,
                                "only administrators make join tokens, administrators' tokens and "
                                "tokens for others")};
    }
    if (join) {
        if (health.agent_address.empty()) {
            return Problem{Error{.code = Code::Conflict,
                                 .message = "this controller serves only this machine: agents "
                                            "cannot join it",
                                 .fix = "set `agents` in controller.yaml to the address to listen "
                                        "on, for example 0.0.0.0:7071",
                                 .number = errors::kJobState}};
        }
        const net::JoinToken made = net::make_join_token(health.ca_sha256, health.agent_address);
        token.hash = net::sha256_hex(made.secret);
        ask.secret_line = net::format_join_token(made);
    } else {
        ask.secret_line = net::make_api_token();
        token.hash = net::sha256_hex(ask.secret_line);
    }
    return ask;
}

}  // namespace

void whoami(const CallPtr& call) {
    JsonWriter json;
    json.begin_object().field("user", call->who.caller.user).field("admin", call->who.caller.admin);
    json.field("by", call->who.token != 0 ? "token" : "unix-socket").key("token_id");
    if (call->who.token != 0)
        json.value(call->who.token);
    else
        json.null();
    write_time(json, "token_expires", call->who.expires);
    json.end_object();
    call->json(std::move(json).text());
}

void list_tokens(const CallPtr& call) {
    with_view(call, [](const CallPtr& ready, const ViewPtr& view) {
        JsonWriter json;
        json.begin_object().key("items").begin_array();
        view->tokens.for_each([&](std::uint64_t, const core::Token& token) {
            const bool own =
                token.kind == core::TokenKind::Api && token.user == ready->who.caller.user;
            if (!own && !ready->who.caller.admin) return;
            json.begin_object().field("id", token.id).field("kind", kind_text(token.kind));
            write_whom(json, token);
            json.field("admin", token.admin).key("uses_left");
            if (token.uses_left < 0)
                json.null();
            else
                json.value(token.uses_left);
            write_time(json, "created", token.created);
            json.field("created_by", token.created_by);
            write_time(json, "expires", token.expires);
            json.field("expired", token.expires <= ready->now).end_object();
        });
        json.end_array().field("revision", revision_text(*view)).end_object();
        ready->json(std::move(json).text());
    });
}

void create_token(const CallPtr& call) {
    auto parsed = parse_ask(*call, call->api->backend.health());
    if (auto* problem = std::get_if<Problem>(&parsed)) return call->fail(std::move(*problem));
    auto ask = std::get<TokenAsk>(std::move(parsed));
    core::CreateToken event{.caller = call->who.caller, .token = ask.token};
    call->api->backend.submit(std::move(event), [call, ask](Result<Backend::Answered> done) {
        if (!done) return call->fail(std::move(done).error());
        const std::string revision =
            revision_text(call->api->backend.view()->meta.term, done->revision);
        JsonWriter json;
        json.begin_object().field("id", done->answer.id).field("kind", kind_text(ask.token.kind));
        json.field("token", ask.secret_line);
        write_whom(json, ask.token);
        json.field("admin", ask.token.admin);
        write_time(json, "expires", ask.token.expires);
        json.field("revision", revision).end_object();
        call->json(std::move(json).text(),
                   {{"Muster-Revision", revision}, {"Cache-Control", "no-store"}}, 201);
    });
}

void revoke_token(const CallPtr& call) {
    const auto id = parse_integer(call->args[0], 1, std::int64_t{1} << 53);
    if (!id) {
        return call->fail(
            numbered(errors::kTokenNotFound, "token \"" + call->args[0] + "\" is no token's id"));
    }
    const auto number = static_cast<std::uint64_t>(*id);
    const core::Token* token = call->api->backend.view()->tokens.find(number);
    const bool own = token != nullptr && token->kind == core::TokenKind::Api &&
                     token->user == call->who.caller.user;
    if (token != nullptr && !own && !call->who.caller.admin) {
        return call->fail(numbered(errors::kTokenNotFound,
                                   "token " + call->args[0] + ": you have no such token"));
    }
    core::RevokeToken event{.caller = call->who.caller, .id = number};
    call->api->backend.submit(std::move(event), [call](Result<Backend::Answered> done) {
        if (!done) return call->fail(std::move(done).error());
        const std::string revision =
            revision_text(call->api->backend.view()->meta.term, done->revision);
        // A revoked token must not be good for one more read.
        call->api->backend.when_published(done->revision, [call, revision] {
            call->answer({.status = 204, .headers = {{"Muster-Revision", revision}}});
        });
    });
}

}  // namespace muster::rest
