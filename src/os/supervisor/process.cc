#include "os/supervisor/process.h"

#include <cerrno>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace muster::os {
namespace {

constexpr std::size_t kSecretMax = 64 * 1024;

/// What the child does between vfork and exec. It lives in the supervisor's memory, which the child
/// shares until then: what it allocates there the supervisor frees, and failure() is simply read.
class Child {
public:
    explicit Child(const SpawnAsk& ask) : ask_(ask), launch_(ask.launch) {}

    /// It was born in that group.
    void set_born_in(const GroupLaunch* group) { born_in_ = group; }
    int error() const { return error_; }
    bool users_fault() const { return users_fault_; }
    const std::string& what() const { return what_; }
    int exec_code() const { return exec_code_; }

    [[noreturn, gnu::noinline]] void run() {
        ::setsid();
        join_groups();
        stdio();
        signals();
        if (launch_.reset_oom_score) reset_oom_score();
        for (const LimitLaunch& limit : launch_.limits) {
            const rlimit value{limit.soft, limit.hard};
            ::setrlimit(static_cast<__rlimit_resource>(limit.resource), &value);
        }
        ::umask(022);
        if (ask_.as == SpawnAs::User) {
            become_user();
            if (::chdir(launch_.workdir.c_str()) != 0)
                fail(errno, "cannot enter workdir ", launch_.workdir, true);
        }
        make_env();
        if (ask_.as == SpawnAs::Container) hand_over();
        const int error = start_.run(ask_.argv);
        exec_code_ = error == ENOENT || error == ENOTDIR ? 127 : 126;
        fail(error, "cannot run ", ask_.argv.front(), ask_.as == SpawnAs::User);
    }

private:
    [[noreturn]] void fail(int error, std::string_view what, std::string_view name,
                           bool users_fault) {
        error_ = error;
        users_fault_ = users_fault;
        what_.assign(what).append(name);
        ::_exit(127);
    }

    void join_groups() {
        if (ask_.as == SpawnAs::Helper) return;
        for (const GroupLaunch& group : launch_.groups_to_join) {
            if (!group.join || &group == born_in_) continue;
            // "tasks" moves this thread alone, which is all there is. For "cgroup.procs" the kernel
            // would stop every fork and exit on the machine, and wait milliseconds for that.
            const std::string procs = group.path + (group.unified ? "/cgroup.procs" : "/tasks");
            const int fd = ::open(procs.c_str(), O_WRONLY | O_CLOEXEC);
            if (fd < 0 || ::write(fd, "0", 1) != 1)
                fail(errno, "cannot join control group ", group.path, false);
            ::close(fd);
        }
    }

    void stdio() {
        int null = -1;
        for (int i = 0; i < 3; ++i) {
            int fd = ask_.stdio[i];
            if (fd < 0) {
                if (null < 0) null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
                fd = null;
            }
            if (fd == i) {
                ::fcntl(fd, F_SETFD, 0);
            } else if (::dup2(fd, i) < 0) {
                fail(errno, "cannot set up standard streams", "", false);
            }
        }
        if (ask_.terminal) ::ioctl(0, TIOCSCTTY, 0);
    }

    static void signals() {
        sigset_t none;
        ::sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
    }

    static void reset_oom_score() {
        const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
        if (fd < 0) return;
        [[maybe_unused]] const ssize_t n = ::write(fd, "0", 1);
        ::close(fd);
    }

    void become_user() {
        if (!launch_.switch_user) return;
        static_assert(sizeof(gid_t) == sizeof(std::uint32_t));
        if (::setgroups(launch_.groups.size(), launch_.groups.data()) != 0 ||
            ::setresgid(launch_.gid, launch_.gid, launch_.gid) != 0 ||
            ::setresuid(launch_.uid, launch_.uid, launch_.uid) != 0)
            fail(errno, "cannot become user ", std::to_string(launch_.uid), false);
    }

    void make_env() {
        start_.set_env(*ask_.env.front());
        for (std::size_t i = 1; i < ask_.env.size(); ++i)
            for (const std::string& variable : *ask_.env[i]) start_.set(variable);
        if (ask_.as == SpawnAs::Helper || launch_.secrets.empty()) return;
        // For a container the runtime must stay root; the files are still opened as the user.
        const bool back = ask_.as == SpawnAs::Container && launch_.switch_user;
        if (back && (::setgroups(launch_.groups.size(), launch_.groups.data()) != 0 ||
                     ::setegid(launch_.gid) != 0 || ::seteuid(launch_.uid) != 0))
            fail(errno, "cannot become user ", std::to_string(launch_.uid), false);
        for (const std::string& secret : launch_.secrets) read_secret(secret);
        if (back && (::seteuid(0) != 0 || ::setegid(0) != 0 || ::setgroups(0, nullptr) != 0))
            fail(errno, "cannot become root again", "", false);
    }

    void read_secret(const std::string& secret) {
        const std::size_t equal = secret.find('=');
        const char* file = secret.c_str() + equal + 1;
        const int fd = ::open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0) fail(errno, "cannot read secret file ", file, true);
        std::string value = secret.substr(0, equal + 1);
        std::size_t size = value.size();
        value.resize(size + kSecretMax + 1);
        ssize_t n = 0;
        while ((n = ::read(fd, value.data() + size, value.size() - size)) > 0)
            size += static_cast<std::size_t>(n);
        if (n < 0) fail(errno, "cannot read secret file ", file, true);
        if (size == value.size()) fail(EFBIG, "secret file over 64 KiB: ", file, true);
        ::close(fd);
        value.resize(size);
        while (!value.empty() && (value.back() == '\n' || value.back() == '\r')) value.pop_back();
        start_.set(std::move(value));
    }

    /// Environment and command go into the container through memory: they touch no disk.
    void hand_over() {
        records_.clear();
        for (const std::string& variable : start_.env()) put_record(records_, "env", variable);
        for (const std::string& word : *ask_.inside) put_record(records_, "arg", word);
        put_record(records_, "end", 1);
        const int fd = ::memfd_create("muster-launch", 0);
        if (fd < 0 ||
            ::write(fd, records_.data(), records_.size()) != static_cast<ssize_t>(records_.size()))
            fail(errno, "cannot hand over the environment", "", false);
        ::lseek(fd, 0, SEEK_SET);
        if (fd != 3 && ::dup2(fd, 3) < 0)
            fail(errno, "cannot hand over the environment", "", false);
        if (fd != 3) ::close(fd);
        start_.set_env({"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"});
    }

    const SpawnAsk& ask_;
    const Launch& launch_;
    const GroupLaunch* born_in_ = nullptr;
    ProgramStart start_;
    int error_ = 0, exec_code_ = 0;
    bool users_fault_ = false;
    std::string what_, records_;
};

/// As vfork(), with the child born in the group `fd`, so that it need not be moved there. Nothing
/// but the parent's return address may lie in this frame, which the child shares. -1: not possible.
[[gnu::noinline]] pid_t vfork_into(Child& child, int fd) {
    clone_args args{};
    args.flags = CLONE_VM | CLONE_VFORK | CLONE_INTO_CGROUP;
    args.exit_signal = SIGCHLD;
    args.cgroup = static_cast<std::uint64_t>(fd);
#if defined(__x86_64__)
    long pid = SYS_clone3;
    asm volatile("syscall" : "+a"(pid) : "D"(&args), "S"(sizeof args) : "rcx", "r11", "memory");
#elif defined(__aarch64__)
    register long number asm("x8") = SYS_clone3;
    register long pid asm("x0") = reinterpret_cast<long>(&args);
    register long size asm("x1") = sizeof args;
    asm volatile("svc 0" : "+r"(pid) : "r"(number), "r"(size) : "memory");
#else
    long pid = -1;
#endif
    if (pid == 0) child.run();
    return pid > 0 ? static_cast<pid_t>(pid) : -1;
}

pid_t start(Child& child, const SpawnAsk& ask) {
    for (const GroupLaunch& group : ask.launch.groups_to_join) {
        if (!group.unified || !group.join || ask.as == SpawnAs::Helper) continue;
        const int fd = ::open(group.path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0) break;
        child.set_born_in(&group);
        const pid_t pid = vfork_into(child, fd);
        ::close(fd);
        if (pid > 0) return pid;
        child.set_born_in(nullptr);
    }
    // Not fork: half of a short task's cost would be copied page tables and their faults.
    const pid_t pid = ::vfork();
    if (pid == 0) child.run();
    return pid;
}

}  // namespace

void reset_signals() {
    // The kernel's own form of "default": the C library hides two signals, and a posix_spawn() of
    // it leaves them ignored.
    alignas(8) constexpr char kDefault[64] = {};
    for (int s = 1; s < NSIG; ++s) ::syscall(SYS_rt_sigaction, s, kDefault, nullptr, 8);
}

void ProgramStart::set(std::string variable) {
    const std::size_t equal = variable.find('=');
    const std::string_view name(variable.data(), equal + 1);
    for (std::string& old : env_)
        if (old.compare(0, name.size(), name) == 0) {
            old = std::move(variable);
            return;
        }
    env_.push_back(std::move(variable));
}

std::string_view ProgramStart::path() const {
    for (const std::string& variable : env_)
        if (variable.compare(0, 5, "PATH=") == 0) return std::string_view(variable).substr(5);
    return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
}

int ProgramStart::run(const std::vector<std::string>& words) {
    for (const std::string& word : words) argv_.push_back(const_cast<char*>(word.c_str()));
    for (const std::string& word : env_) envp_.push_back(const_cast<char*>(word.c_str()));
    argv_.push_back(nullptr);
    envp_.push_back(nullptr);
    int error = ENOENT;
    last_ = words.front();
    if (last_.find('/') != std::string::npos) {
        ::execve(last_.c_str(), argv_.data(), envp_.data());
        error = errno;
    } else {
        std::string_view rest = path();
        while (!rest.empty()) {
            const std::size_t end = rest.find(':');
            candidate_.assign(rest.substr(0, end));
            rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
            if (candidate_.empty()) candidate_.push_back('.');
            candidate_.append("/").append(words.front());
            ::execve(candidate_.c_str(), argv_.data(), envp_.data());
            if (errno == ENOENT || errno == ENOTDIR) continue;
            error = errno;
            last_ = candidate_;
        }
    }
    if (error == ENOEXEC) {  // A script that does not say of which shell.
        static char shell[] = "/bin/sh";
        argv_.front() = last_.data();
        argv_.insert(argv_.begin(), shell);
        ::execve(shell, argv_.data(), envp_.data());
    }
    return error;
}

Spawned spawn(const SpawnAsk& ask) {
    Child child(ask);
    const pid_t pid = start(child, ask);
    if (pid < 0) return {.error = std::string("cannot fork: ") + std::strerror(errno)};
    if (child.error() == 0) return {.pid = pid};
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return {.error = child.what() + ": " + std::strerror(child.error()),
            .users_fault = child.users_fault(),
            .exec_code = child.exec_code()};
}

}  // namespace muster::os
