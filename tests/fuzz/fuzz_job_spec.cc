// Any bytes as the binary form of a spec: no crash, and what is accepted encodes to itself.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/require.h"
#include "model/job_spec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    const auto spec = muster::model::decode_job_spec(bytes);
    if (!spec) return 0;
    const auto again = muster::model::decode_job_spec(encode(*spec));
    MUSTER_REQUIRE(again && *again == *spec);
    for (std::int64_t i = -1; i < 4; ++i) (void)muster::model::sweep_values(spec->array, i);
    return 0;
}
