// musterd: `musterd controller` is the brain, `musterd agent` the hands, `musterd up` both at once;
// `musterd simulate` the same brain in virtual time.
#include <cstdio>
#include <cstring>

#include <signal.h>

#include "experiment/simulate.h"
#include "verbs.h"

namespace {

constexpr const char* kUsage =
    "usage: musterd VERB [flags]    (musterd VERB --help tells the flags)\n"
    "  controller   the brain: takes jobs, decides, remembers\n"
    "  agent        the hands: runs tasks on this node\n"
    "  up           a controller and an agent on this machine, no configuration\n"
    "  simulate     a trace of jobs on a cluster of paper; needs no controller\n"
    "  tune         searches settings by simulation on the site's own history\n"
    "  bench        measures controller and scheduler on this machine\n"
    "  version      prints the version\n";

/// `muster` hands these over, so that it need not know the scheduler itself.
int experiment_verb(int argc, char** argv) {
    ::signal(SIGPIPE, SIG_IGN);
    const muster::cli::World world = muster::cli::real_world(argv[0]);
    const std::vector<std::string> words(argv + 1, argv + argc);
    muster::cli::Output out(1), err(2);
    return muster::experiment::run_verb(world, words, out, err);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) return std::fputs(kUsage, stderr), 2;
    const char* verb = argv[1];
    if (std::strcmp(verb, "--help") == 0 || std::strcmp(verb, "-h") == 0)
        return std::fputs(kUsage, stdout), 0;
    if (std::strcmp(verb, "version") == 0 || std::strcmp(verb, "--version") == 0)
        return std::puts("musterd " MUSTER_VERSION), 0;
    if (std::strcmp(verb, "controller") == 0)
        return muster::apps::controller_verb(argc - 1, argv + 1);
    if (std::strcmp(verb, "agent") == 0) return muster::apps::agent_verb(argc - 1, argv + 1);
    if (std::strcmp(verb, "up") == 0) return muster::apps::up_verb(argc - 1, argv + 1);
    if (std::strcmp(verb, "simulate") == 0 || std::strcmp(verb, "tune") == 0)
        return experiment_verb(argc, argv);
    if (std::strcmp(verb, "bench") == 0) return muster::apps::bench_verb(argc - 1, argv + 1);
    std::fprintf(stderr, "error: musterd has no verb %s\n%s", verb, kUsage);
    return 2;
}
