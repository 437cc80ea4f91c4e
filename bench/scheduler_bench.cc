// bench/run.sh scheduler: one JSON line a figure on standard output.
#include <cstdio>
#include <cstring>
#include <string>

#include "bench/measure.h"

int main(int argc, char** argv) {
    muster::bench::Ask ask;
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--quick") == 0) ask.sweep = false;
        if (std::strcmp(argv[i], "--only") == 0 && i + 1 < argc) ask.only.insert(argv[++i]);
    }
    muster::bench::Hooks hooks;
    hooks.say = [](const muster::bench::Figure& figure) {
        std::printf("%s\n", muster::bench::json_of(figure).c_str());
        std::fflush(stdout);
    };
    hooks.log = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
    const muster::Status done = muster::bench::measure(ask, hooks);
    if (done) return 0;
    std::fprintf(stderr, "error: %s: %s\n", done.error().message.c_str(),
                 done.error().cause.c_str());
    return 1;
}
