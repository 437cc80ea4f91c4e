// muster-task FOLDER: the supervisor of one task. Started by the agent, outlives it.
#include <cstdio>
#include <cstring>

#include <fcntl.h>

#include "os/supervisor/supervisor.h"

int main(int argc, char** argv) {
    const char* option = argc > 1 ? argv[1] : "";
    const char* slash = argc > 0 ? std::strrchr(argv[0], '/') : nullptr;
    const char* name = slash != nullptr ? slash + 1 : argc > 0 ? argv[0] : "";
    if (std::strcmp(name, "ssh") == 0) return muster::os::launch_remote(true, argc, argv);
    if (std::strcmp(name, "muster-rsh") == 0) return muster::os::launch_remote(false, argc, argv);
    if (std::strcmp(option, "--rsh") == 0)
        return muster::os::launch_remote(false, argc - 1, argv + 1);
    if (argc <= 3 && std::strcmp(option, "--wait") == 0) return muster::os::wait_for_end(argv[2]);
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
            "       muster-task --wait [FILE]\n"
            "       muster-task --rsh HOST COMMAND...\n"
            "Supervises one task; the agent starts it. FOLDER holds its launch file.\n"
            "--spawn forks supervisors as the agent asks for them on descriptor 3.\n"
            "--init is the first process in a container, --without runs a command that does not\n"
            "see MOUNT. --wait makes an empty FILE and does nothing until SIGTERM. --rsh (or the\n"
            "name muster-rsh or ssh) runs a command on another node of the job it is called in "
            "and\n"
            "takes the options of ssh.\n",
            stderr);
        return argc == 2 && std::strcmp(argv[1], "--help") == 0 ? 0 : 2;
    }
    muster::os::reset_signals();
    const int agent = ::fcntl(3, F_GETFD) >= 0 ? 3 : -1;
    return muster::os::supervise(argv[1], agent);
}
