// How a node becomes one of ours: a join token or a valid old certificate buys a new one.
#pragma once

#include "base/result.h"
#include "controller/authority.h"
#include "controller/loop.h"
#include "core/step.h"
#include "net/agent_link.h"

namespace muster::controller {

/// Checks the ask against the published tokens, binds the name, signs. Answers later.
void answer_join(Loop& loop, const Authority& authority, net::JoinAsk ask, net::JoinReply reply,
                 Time now);
/// Steps NodeJoined and waits until it is durable.
Status admit(Loop& loop, core::NodeJoined joined);

}  // namespace muster::controller
