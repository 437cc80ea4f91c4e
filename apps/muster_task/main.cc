// muster-task FOLDER: the supervisor of one task. Started by the agent, outlives it.
#include <cstdio>
#include <cstring>

#include <fcntl.h>

#include "os/supervisor/supervisor.h"

int main(int argc, char** argv) {
    const char* option = argc > 1 ? argv[1] : "";
    if (argc == 2 && std::strcmp(option, "--spawn") == 0) return muster::os::spawn_supervisors(3);
    if (argc == 2 && std::strcmp(option, "--init") == 0) return muster::os::container_init();
    if (argc > 4 && std::strcmp(option, "--without") == 0 && std::strcmp(argv[3], "--") == 0)
        return muster::os::run_without_mount(argv[2], argv + 4);
    if (argc != 2 || argv[1][0] == '-') {
        std::fputs(
            "usage: muster-task FOLDER\n"
            "       muster-task --spawn\n"
            "       muster-task --init\n"
            "       muster-task --without MOUNT -- COMMAND...\n"
            "Supervises one task; the agent starts it. FOLDER holds its launch file.\n"
            "--spawn forks supervisors as the agent asks for them on descriptor 3.\n"
            "--init is the first process in a container, --without runs a command that does not\n"
            "see MOUNT.\n",
            stderr);
        return argc == 2 && std::strcmp(argv[1], "--help") == 0 ? 0 : 2;
    }
    const int agent = ::fcntl(3, F_GETFD) >= 0 ? 3 : -1;
    return muster::os::supervise(argv[1], agent);
}
