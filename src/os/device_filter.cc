// The program that a v2 group runs at every opening of a device: a list of the allowed, compiled
// by hand to the few instructions it needs, so that no library is.
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/cgroups.h"
#include "os/posix.h"

namespace muster::os {
namespace {

bpf_insn instruction(int code, int to, int from, int offset, std::int32_t immediate) {
    bpf_insn made{};
    made.code = static_cast<std::uint8_t>(code);
    made.dst_reg = static_cast<std::uint8_t>(to & 15);
    made.src_reg = static_cast<std::uint8_t>(from & 15);
    made.off = static_cast<std::int16_t>(offset);
    made.imm = immediate;
    return made;
}

/// r2 = type, r4 = major, r5 = minor; each rule jumps over its "allow" when it does not fit.
std::vector<bpf_insn> compile(const std::vector<DeviceNumber>& allowed) {
    std::vector<bpf_insn> program = {
        instruction(BPF_LDX | BPF_MEM | BPF_W, BPF_REG_2, BPF_REG_1, 0, 0),
        instruction(BPF_ALU | BPF_AND | BPF_K, BPF_REG_2, 0, 0, 0xffff),
        instruction(BPF_LDX | BPF_MEM | BPF_W, BPF_REG_4, BPF_REG_1, 4, 0),
        instruction(BPF_LDX | BPF_MEM | BPF_W, BPF_REG_5, BPF_REG_1, 8, 0),
    };
    for (const DeviceNumber& device : allowed) {
        const int rest = device.minor ? 1 : 0;
        program.push_back(instruction(BPF_JMP | BPF_JNE | BPF_K, BPF_REG_2, 0, 3 + rest,
                                      device.block ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR));
        program.push_back(instruction(BPF_JMP | BPF_JNE | BPF_K, BPF_REG_4, 0, 2 + rest,
                                      static_cast<std::int32_t>(device.major)));
        if (device.minor)
            program.push_back(instruction(BPF_JMP | BPF_JNE | BPF_K, BPF_REG_5, 0, 2,
                                          static_cast<std::int32_t>(*device.minor)));
        program.push_back(instruction(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 1));
        program.push_back(instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
    }
    program.push_back(instruction(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0));
    program.push_back(instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
    return program;
}

int bpf(int command, bpf_attr& attributes) {
    return static_cast<int>(::syscall(SYS_bpf, command, &attributes, sizeof attributes));
}

}  // namespace

Status attach_device_filter(const std::string& group, const std::vector<DeviceNumber>& allowed) {
    const std::vector<bpf_insn> program = compile(allowed);
    static constexpr char kLicense[] = "Apache-2.0";
    bpf_attr load{};
    load.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
    load.insns = reinterpret_cast<std::uintptr_t>(program.data());
    load.insn_cnt = static_cast<std::uint32_t>(program.size());
    load.license = reinterpret_cast<std::uintptr_t>(kLicense);
    const Fd filter(bpf(BPF_PROG_LOAD, load));
    if (!filter) return system_error("load a device filter for", group);
    const Fd folder(::open(group.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder) return system_error("open control group", group);
    bpf_attr attach{};
    attach.target_fd = static_cast<std::uint32_t>(folder.get());
    attach.attach_bpf_fd = static_cast<std::uint32_t>(filter.get());
    attach.attach_type = BPF_CGROUP_DEVICE;
    // MULTI: what a container runtime or the service manager adds later can only narrow it (F41).
    attach.attach_flags = BPF_F_ALLOW_MULTI;
    if (bpf(BPF_PROG_ATTACH, attach) != 0) return system_error("attach a device filter to", group);
    return Ok{};
}

}  // namespace muster::os
