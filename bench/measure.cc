#include "bench/measure.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/json_writer.h"

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

Status measure(Ask ask, const Hooks& hooks) {
    MUSTER_LET(folder, Folder::make(ask.folder.empty() ? temporary_folder() : ask.folder));
    ask.folder = folder.path();
    // Memory first, while the process has not used any for something else.
    MUSTER_TRY(measure_cluster(ask, hooks));
    measure_planner(ask, hooks);
    return Ok{};
}

}  // namespace muster::bench
