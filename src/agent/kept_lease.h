// The lease and its peers on disk, so that a restarted agent does not judge from nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "node/step.h"

namespace muster::agent {

std::string encode(const node::KeptLease& lease, std::string_view boot_id);
/// Empty: damaged, or of another boot.
std::optional<node::KeptLease> decode_kept_lease(std::string_view bytes, std::string_view boot_id);

}  // namespace muster::agent
