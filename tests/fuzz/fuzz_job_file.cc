// Any bytes as a job file: no crash, and what is accepted reads back as itself.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/require.h"
#include "spec/parse.h"
#include "spec/render.h"

using muster::model::JobSpec;
using muster::spec::ParseOptions;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto parsed = muster::spec::parse_job(text, ParseOptions{});
    const auto* spec = std::get_if<JobSpec>(&parsed);
    if (spec == nullptr) {
        MUSTER_REQUIRE(!muster::spec::render(std::get<muster::spec::Problems>(parsed)).empty());
        return 0;
    }
    // A normal form may be longer than a file is allowed to be: a range in a sweep is written out.
    for (const std::string& form : {muster::spec::to_yaml(*spec), muster::spec::to_json(*spec)}) {
        if (form.size() > muster::spec::kJobFileMax) continue;
        const auto again = muster::spec::parse_job(form, ParseOptions{});
        MUSTER_REQUIRE(std::get_if<JobSpec>(&again) != nullptr);
        MUSTER_REQUIRE(std::get<JobSpec>(again) == *spec);
    }
    const auto decoded = muster::model::decode_job_spec(encode(*spec));
    MUSTER_REQUIRE(decoded && *decoded == *spec);
    return 0;
}
