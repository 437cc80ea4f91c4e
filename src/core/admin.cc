// What admins do to nodes and tokens. Holds have owners: nobody undoes another's (F48).
#include <algorithm>

#include "base/error_codes.h"
#include "core/stepper.h"

namespace muster::core {
namespace {

Error denied(const std::string& what) {
    return {.code = Code::Denied,
            .message = what + ": only admins may",
            .fix = "ask an admin",
            .number = errors::kAdminOnly};
}
bool is_machine(const model::NodeHold& hold) {
    return !hold.owner.starts_with("admin:");
}

}  // namespace

Status Stepper::operator()(const ActOnNode& event) {
    if (!event.caller.admin) return denied("node " + event.node);
    const auto found = find_node(state_, event.node);
    if (!found)
        return Error{.code = Code::NotFound,
                     .message = "node " + event.node + ": there is no such node",
                     .fix = "see `muster nodes`",
                     .number = errors::kNodeNotFound};
    Node node = tables_.nodes.at(found->value);
    const NodeLive& live = tables_.node_live.at(found->value);
    const std::string owner = "admin:" + event.caller.user;
    step_.answer.id = found->value;
    switch (event.action) {
        case NodeAction::Drain: {
            const auto mine = std::ranges::find(node.holds, owner, &model::NodeHold::owner);
            if (mine != node.holds.end())
                mine->reason = event.reason;
            else
                node.holds.push_back({owner, event.reason, at_, kNever});
            record(NodePut{std::move(node)});
            tell_node("node.drained", *found, event.reason, event.caller.user);
            return Ok{};
        }
        case NodeAction::Resume: {
            // His own holds and the machine's; another admin's stays.
            std::erase_if(node.holds, [&](const model::NodeHold& hold) {
                return is_machine(hold) || hold.owner == owner;
            });
            if (!node.holds.empty() &&
                node.holds.size() == tables_.nodes.at(found->value).holds.size())
                return Error{.code = Code::Conflict,
                             .message = "node " + event.node + ": is held by " +
                                        node.holds.front().owner + " (" +
                                        node.holds.front().reason + ")",
                             .fix = "only who drained a node resumes it",
                             .number = errors::kHoldOfOther};
            for (const model::NodeHold& hold : node.holds)
                step_.answer.warnings.push_back("node " + event.node + " is still held by " +
                                                hold.owner + " (" + hold.reason + ")");
            record(NodePut{std::move(node)});
            if (!live.launch_failures.empty())
                edit_node_live(*found, [](NodeLive& l) { l.launch_failures.clear(); });
            tell_node("node.resumed", *found, event.reason, event.caller.user);
            return Ok{};
        }
        case NodeAction::Fenced:
            if (live.health == model::NodeHealth::Ready && live.session != 0)
                return Error{.code = Code::Conflict,
                             .message = "node " + event.node + ": is alive, it was heard " +
                                        std::to_string((at_ - live.heard).ms) + " ms ago",
                             .fix = "power it off first, or cancel its jobs",
                             .number = errors::kNodeInUse};
            close_link(live.session, "the node was declared fenced");
            edit_node_live(*found, [&](NodeLive& l) {
                if (l.health != model::NodeHealth::Lost) l.since = at_;
                l.health = model::NodeHealth::Lost;
                l.session = 0;
                l.fenced = true;
            });
            node_fenced(*found, true, "fenced by " + event.caller.user);
            tell_node("node.fenced", *found, event.reason, event.caller.user);
            thaw_if_over();
            return Ok{};
        case NodeAction::Forget: break;
    }
    const std::size_t jobs = tables_.node_use.at(found->value).jobs.size();
    if (jobs > 0)
        return Error{
            .code = Code::Conflict,
            .message = "node " + event.node + ": " + std::to_string(jobs) + " jobs hold it",
            .fix = "cancel or requeue them, or declare the node fenced",
            .number = errors::kNodeInUse};
    close_link(live.session, "the node was forgotten");
    tell_node("node.forgotten", *found, event.reason, event.caller.user);
    leave_reservations(*found);
    forget_claims(*found);
    record(NodeDropped{*found});
    return Ok{};
}

/// Promises and bookings on a node that goes are void.
void Stepper::forget_claims(NodeId node) {
    if (const auto at = index_.claims.find(node); at != index_.claims.end()) {
        const std::vector<JobId> jobs(at->second.begin(), at->second.end());
        for (const JobId id : jobs)
            edit_job(id, [](Job&, JobExtra& extra) { extra.claim.reset(); });
    }
    if (!tables_.bookings) return;
    std::vector<scheduler::Booking> left = *tables_.bookings;
    std::erase_if(left, [&](const scheduler::Booking& booking) {
        return std::ranges::find(booking.slots, node, &scheduler::Slot::node) !=
               booking.slots.end();
    });
    put_bookings(left);
}

Status Stepper::operator()(const CreateToken& event) {
    Token token = event.token;
    const bool own =
        token.kind == TokenKind::Api && token.user == event.caller.user && !token.admin;
    if (!event.caller.admin && !own) return denied("token for " + token.user);
    if (token.hash.empty() || token.hash.size() > 128)
        return Error{.code = Code::Invalid, .message = "token: its hash is missing"};
    if (token.kind == TokenKind::Api && token.user.empty())
        return Error{.code = Code::Invalid,
                     .message = "token: whom it speaks for is missing",
                     .fix = "name a user"};
    if (token.uses_left == 0 || token.uses_left < -1)
        return Error{.code = Code::Invalid,
                     .message = "token: uses must be at least 1, or no bound"};
    if (token.expires.ms == 0) token.expires = kNever;
    if (token.expires <= at_)
        return Error{.code = Code::Invalid,
                     .message = "token: its expiry has passed",
                     .fix = "give a time in the future"};
    Meta meta = tables_.meta;
    token.id = meta.next_token++;
    token.created = at_;
    token.created_by = event.caller.user;
    put_meta(meta);
    step_.answer.id = token.id;
    record(TokenPut{std::move(token)});
    tell("token.created", "token " + std::to_string(step_.answer.id) + " by " + event.caller.user);
    return Ok{};
}

Status Stepper::operator()(const RevokeToken& event) {
    const Token* token = tables_.tokens.find(event.id);
    if (token == nullptr)
        return Error{.code = Code::NotFound,
                     .message = "token " + std::to_string(event.id) + ": there is no such token",
                     .fix = "see `muster token list`",
                     .number = errors::kTokenNotFound};
    if (!event.caller.admin && token->user != event.caller.user)
        return denied("token " + std::to_string(event.id));
    record(TokenDropped{event.id});
    tell("token.revoked", "token " + std::to_string(event.id) + " by " + event.caller.user);
    return Ok{};
}

void Stepper::use_up(Token token) {
    if (token.uses_left > 0) --token.uses_left;
    if (token.uses_left == 0)
        record(TokenDropped{token.id});
    else
        record(TokenPut{std::move(token)});
}

Status Stepper::operator()(const NodeJoined& event) {
    const Token* found = tables_.tokens.find(event.token);
    // Token 0: the controller itself admits a node of its own machine.
    const bool own = event.token == 0;
    const bool good =
        own || (found != nullptr && found->kind == TokenKind::Join && found->uses_left != 0 &&
                at_ < found->expires && (found->user.empty() || found->user == event.name));
    if (!good)
        return Error{.code = Code::Denied,
                     .message = "join token " + std::to_string(event.token) +
                                ": is not valid for node " + event.name,
                     .cause = "it is unknown, used up, expired, or for another name",
                     .fix = "make a new one with `muster token create`",
                     .number = errors::kJoinRefused};
    if (event.name.empty() || event.certificate.empty())
        return Error{.code = Code::Invalid, .message = "join: name or certificate is missing"};
    if (const auto known = find_node(state_, event.name); known && !own) {
        const std::string& bound = tables_.nodes.at(known->value).certificate;
        if (!bound.empty() && bound != event.certificate && found->user != event.name)
            return Error{.code = Code::Denied,
                         .message = "node name " + event.name + ": is bound to another certificate",
                         .fix = "make a token for that very name, or forget the node",
                         .number = errors::kNameTaken};
    }
    if (!own) use_up(*found);
    NodeId id;
    if (const auto known = find_node(state_, event.name)) {
        id = *known;
        Node node = tables_.nodes.at(id.value);
        node.certificate = event.certificate;
        record(NodePut{std::move(node)});
        const NodeLive& live = tables_.node_live.at(id.value);
        if (live.session != 0) {
            close_link(live.session, "the node joined anew with another certificate");
            edit_node_live(id, [](NodeLive& l) { l.session = 0; });
        }
    } else {
        Meta meta = tables_.meta;
        id = {meta.next_node++};
        put_meta(meta);
        auto facts = std::make_shared<model::NodeFacts>();
        facts->name = event.name;
        Node node{id, std::move(facts), {}, event.certificate, at_, false};
        record(NodePut{std::move(node)});
    }
    step_.answer.id = id.value;
    tell_node("node.joined", id);
    return Ok{};
}

}  // namespace muster::core
