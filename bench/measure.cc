#include "bench/measure.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <unistd.h>

namespace muster::bench {
namespace {

/// A folder that goes with its owner.
class Folder {
public:
    static Result<Folder> make(const std::string& below) {
        std::string path = below + "/muster-bench-XXXXXX";
        if (::mkdtemp(path.data()) == nullptr)
            return Error{Code::Denied, "cannot make a folder in " + below, "",
                         "name a folder on the disk to be measured with --folder"};
        return Folder(path);
    }
    Folder(Folder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
    Folder& operator=(Folder&&) = delete;
    ~Folder() {
        std::error_code ignored;
        if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
    }
    const std::string& path() const { return path_; }

private:
    explicit Folder(std::string path) : path_(std::move(path)) {}
    std::string path_;
};

/// While it lives, SIGINT and SIGTERM end the process after the folder is dropped. Threads that
/// start meanwhile leave the signals to it.
class Interrupts {
public:
    explicit Interrupts(std::string folder) : folder_(std::move(folder)) {
        sigemptyset(&signals_);
        for (const int signal : {SIGINT, SIGTERM, SIGUSR2}) sigaddset(&signals_, signal);
        ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
        thread_ = std::thread([this] { run(); });
    }
    Interrupts(const Interrupts&) = delete;
    Interrupts& operator=(const Interrupts&) = delete;
    ~Interrupts() {
        ::pthread_kill(thread_.native_handle(), SIGUSR2);
        thread_.join();
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }

private:
    void run() {
        int signal = 0;
        ::sigwait(&signals_, &signal);
        if (signal == SIGUSR2) return;  // Over.
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
        ::_exit(128 + signal);
    }
    const std::string folder_;
    sigset_t signals_{}, before_{};
    std::thread thread_;
};

std::string temporary_folder() {
    const char* named = std::getenv("TMPDIR");
    return named != nullptr && *named != '\0' ? named : "/tmp";
}

}  // namespace

double percentile(std::vector<double> values, double at) {
    std::ranges::sort(values);
    const auto index = static_cast<std::size_t>(
        at * static_cast<double>(std::max<std::size_t>(1, values.size()) - 1));
    return values.empty() ? 0 : values[index];
}

double rss_mb() {
    std::ifstream status("/proc/self/statm");
    long pages = 0, resident = 0;
    status >> pages >> resident;
    return static_cast<double>(resident) * 4096.0 / 1e6;
}

const std::vector<std::string>& part_names() {
    static const std::vector<std::string> names = {"full",       "burst",        "gangs",
                                                   "fill",       "nothing_fits", "gang1024",
                                                   "reclaim512", "next_plan",    "growth"};
    return names;
}

std::string json_of(const Figure& figure) {
    char value[32];
    std::snprintf(value, sizeof value, "%.4g", figure.value);
    std::string goal = "null";
    if (figure.goal > 0) {
        char text[32];
        std::snprintf(text, sizeof text, "%.4g", figure.goal);
        goal = text;
    }
    return "{\"bench\": \"scheduler\", \"what\": \"" + figure.what + "\", \"value\": " + value +
           ", \"unit\": \"" + figure.unit + "\", \"better\": \"" + figure.better +
           "\", \"goal\": " + goal + "}";
}

Status check(const Ask& ask) {
    const auto bounded = [](const char* what, int value, int least, int most) -> Status {
        if (value >= least && value <= most) return Ok{};
        return Error{Code::Invalid, std::string(what) + " " + std::to_string(value) +
                                        " is not within " + std::to_string(least) + " and " +
                                        std::to_string(most)};
    };
    MUSTER_TRY(bounded("nodes", ask.nodes, kNodesLeast, kNodesMost));
    MUSTER_TRY(bounded("jobs", ask.jobs, kJobsLeast, kJobsMost));
    std::string known;
    for (const std::string& name : part_names()) known += (known.empty() ? "" : ", ") + name;
    for (const std::string& part : ask.only)
        if (std::ranges::find(part_names(), part) == part_names().end())
            return Error{Code::Invalid, "there is no part '" + part + "'", "",
                         "the parts are: " + known};
    return Ok{};
}

Status measure(Ask ask, const Hooks& hooks) {
    MUSTER_TRY(check(ask));
    MUSTER_LET(folder, Folder::make(ask.folder.empty() ? temporary_folder() : ask.folder));
    ask.folder = folder.path();
    const Interrupts interrupts(folder.path());
    const Ask usual;
    Hooks own = hooks;
    if (ask.nodes != usual.nodes || ask.jobs != usual.jobs)
        own.say = [&](Figure figure) {
            figure.goal = 0;
            hooks.say(figure);
        };
    // Memory first, while the process has not used any for something else.
    MUSTER_TRY(measure_cluster(ask, own));
    measure_planner(ask, own);
    return Ok{};
}

}  // namespace muster::bench
