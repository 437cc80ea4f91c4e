// muster-task FOLDER: the supervisor of one task. Started by the agent, outlives it.
#include <cstdio>
#include <cstring>

#include <fcntl.h>

#include "os/supervisor/supervisor.h"

int main(int argc, char** argv) {
    if (argc == 2 && std::strcmp(argv[1], "--spawn") == 0) return muster::os::spawn_supervisors(3);
    if (argc != 2 || argv[1][0] == '-') {
        std::fputs(
            "usage: muster-task FOLDER\n"
            "       muster-task --spawn\n"
            "Supervises one task; the agent starts it. FOLDER holds its launch file.\n"
            "--spawn forks supervisors as the agent asks for them on descriptor 3.\n",
            stderr);
        return argc == 2 && std::strcmp(argv[1], "--help") == 0 ? 0 : 2;
    }
    const int agent = ::fcntl(3, F_GETFD) >= 0 ? 3 : -1;
    return muster::os::supervise(argv[1], agent);
}
