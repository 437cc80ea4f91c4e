// Who this node is to the controller: its certificate, its key, and where the controller is.
#pragma once

#include <optional>
#include <string>

#include "agent/config.h"
#include "base/result.h"
#include "net/agent_link.h"

namespace muster::agent {

struct Identity {
    std::string name;        // The certificate's.
    std::string controller;  // "host:port"
    net::LinkTls tls;
};

/// From the state folder; NotFound before the first join.
Result<Identity> load_identity(const std::string& state_dir);
/// Stores an identity made elsewhere (`muster up`), in place of any other.
Status save_identity(const std::string& state_dir, const Identity& identity);
/// Asks the controller that the token names for a certificate and stores it. Blocks.
Result<Identity> join(const std::string& state_dir, const std::string& node_name,
                      const std::string& token);
/// A new certificate with a new key, stored. Blocks.
Result<Identity> renew(const std::string& state_dir, const Identity& identity);
bool renewal_due(const Identity& identity, Time now);

/// This host's name, without its domain.
std::string host_name();
/// The address from which packets to `controller` ("host:port") leave; "" = not known.
std::string address_towards(const std::string& controller);

}  // namespace muster::agent
