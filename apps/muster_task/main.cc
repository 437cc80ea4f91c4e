// muster-task FOLDER: the supervisor of one task. Started by the agent, outlives it.
#include <cstdio>
#include <cstring>

#include <fcntl.h>

#include "os/supervisor/supervisor.h"

int main(int argc, char** argv) {
    if (argc != 2 || argv[1][0] == '-') {
        std::fputs(
            "usage: muster-task FOLDER\n"
            "Supervises one task; the agent starts it. FOLDER holds its launch file.\n",
            stderr);
        return argc == 2 && std::strcmp(argv[1], "--help") == 0 ? 0 : 2;
    }
    const int agent = ::fcntl(3, F_GETFD) >= 0 ? 3 : -1;
    return muster::os::supervise(argv[1], agent);
}
