#include "os/node_facts.h"

#include <sched.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/text.h"
#include "os/cpu_list.h"
#include "os/posix.h"

namespace muster::os {

std::string read_boot_id() {
    const auto text = read_file("/proc/sys/kernel/random/boot_id");
    return text ? std::string(trim(*text)) : std::string();
}

std::vector<int> usable_cpus() {
    std::vector<int> usable;
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    if (::sched_getaffinity(0, sizeof cpus, &cpus) == 0)
        for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
            if (CPU_ISSET(cpu, &cpus)) usable.push_back(cpu);
    return usable;
}

void read_node_facts(model::NodeFacts& facts, const std::string& state_dir) {
    const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
    std::int64_t count = online > 0 ? online : 1;
    // What this process may use, where that is less (a container, a reserved core).
    const std::vector<int> usable = usable_cpus();
    if (!usable.empty()) count = static_cast<std::int64_t>(usable.size());
    facts.numa = read_numa("", usable);
    facts.cpus = MilliCpu{count * 1000};
    struct sysinfo info {};
    if (::sysinfo(&info) == 0)
        facts.memory = Bytes{static_cast<std::int64_t>(info.totalram) * info.mem_unit};
    struct statvfs disk {};
    if (::statvfs(state_dir.c_str(), &disk) == 0)
        facts.disk = Bytes{static_cast<std::int64_t>(disk.f_blocks * disk.f_frsize)};
    facts.boot_id = read_boot_id();
}

}  // namespace muster::os
