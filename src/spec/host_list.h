// Lists of hosts as Slurm's tools and people write them: "n[001-064,100],login1".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::spec {

/// The names in the order written, repeated ones too. Ranges keep their leading zeros; several
/// brackets in one name multiply. Refused: brackets that do not match, ranges that fall, empty
/// names, more than `most` hosts.
Result<std::vector<std::string>> expand_host_list(std::string_view text, std::size_t most);

}  // namespace muster::spec
