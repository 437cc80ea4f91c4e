#include <clocale>

#include <signal.h>

#include "cli/app.h"

int main(int argc, char** argv) {
    std::setlocale(LC_TIME, "");
    ::signal(SIGPIPE, SIG_IGN);
    const muster::cli::World world = muster::cli::real_world(argv[0]);
    const std::vector<std::string> words(argv + 1, argv + argc);
    muster::cli::Output out(1), err(2);
    return muster::cli::run_muster(world, words, out, err);
}
