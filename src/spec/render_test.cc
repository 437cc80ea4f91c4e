#include "spec/render.h"

#include <gtest/gtest.h>

#include "spec/parse.h"
#include "spec/random_spec.h"

namespace muster::spec {
namespace {

std::string problems_of(const ParsedJob& parsed) {
    const auto* problems = std::get_if<Problems>(&parsed);
    return problems == nullptr ? "" : render(*problems);
}

TEST(Render, YamlAndJsonReadBackAsTheSpec) {
    for (std::uint64_t seed = 0; seed < 1500; ++seed) {
        const model::JobSpec spec = SpecMaker(seed).spec();
        for (const std::string& text : {to_yaml(spec), to_json(spec)}) {
            const auto parsed = parse_job(text, ParseOptions{});
            ASSERT_EQ(parsed.index(), 0u) << "seed " << seed << "\n" << text << problems_of(parsed);
            ASSERT_TRUE(std::get<model::JobSpec>(parsed) == spec)
                << "seed " << seed << "\n"
                << text << to_yaml(std::get<model::JobSpec>(parsed));
        }
    }
}

TEST(Render, JsonIsStrict) {
    ParseOptions options;
    options.format = Format::Json;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        const model::JobSpec spec = SpecMaker(seed).spec();
        const auto parsed = parse_job(to_json(spec), options);
        ASSERT_EQ(parsed.index(), 0u) << seed << problems_of(parsed);
    }
}

TEST(Render, OneFieldALineAndNoDefaults) {
    const auto parsed = parse_job(
        "run: |\n  cd x\n  make\nnodes: 2\ngpus: [h100:8, {count: 1, memory: 80GB}]\npriority: 50\n"
        "restart: {max: 3, backoff: 10s}\ncheckpoint: {dir: /c, signal: USR1}\nexclusive: false\n",
        ParseOptions{});
    ASSERT_EQ(parsed.index(), 0u) << problems_of(parsed);
    EXPECT_EQ(
        to_yaml(std::get<model::JobSpec>(parsed)),
        "name: cd\nnodes: 2\ngpus: [h100:8, {count: 1, memory: 80GiB}]\nrun: |\n  cd x\n  make\n"
        "restart: 3\ncheckpoint: /c\n");
    EXPECT_EQ(to_json(std::get<model::JobSpec>(parsed)),
              R"({"name":"cd","nodes":2,"gpus":["h100:8",{"count":1,"memory":"80GiB"}],)"
              R"("run":"cd x\nmake\n","restart":3,"checkpoint":"/c"})");
}

}  // namespace
}  // namespace muster::spec
