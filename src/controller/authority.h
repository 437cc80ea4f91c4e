// The controller's own certificate authority, kept in its state folder.
#pragma once

#include <string>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "net/agent_link.h"
#include "net/pki.h"

namespace muster::controller {

struct Authority {
    net::KeyedCertificate ca;
    net::LinkTls own;  // The controller's certificate, for agents and for REST.
    std::string ca_sha256;

    /// Loads it from `folder`, or makes it there (mode 0600). The controller's certificate is made
    /// anew when it nears its end or does not name all of `hosts`.
    static Result<Authority> load_or_make(const std::string& folder,
                                          const std::vector<std::string>& hosts, Time now);
    /// A certificate for a node of this machine, without a token: `muster up`.
    Result<net::LinkTls> issue_node(const std::string& name, Time now) const;
};

/// Reads a whole small file; NotFound when it is not there.
Result<std::string> read_file(const std::string& path);
/// Atomically, and synced: a temporary file beside it, then a rename.
Status write_file(const std::string& path, const std::string& bytes, unsigned mode);

}  // namespace muster::controller
