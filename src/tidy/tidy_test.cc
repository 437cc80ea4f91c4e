// The house rules that no compiler checks: who may include whom, what pure rooms may not use, how
// long a file may be.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace muster {
namespace {

namespace fs = std::filesystem;
using Rooms = std::set<std::string>;

// Each room and the rooms that it may include, besides itself; nothing else, and no way back.
const std::map<std::string, Rooms> kMayInclude = {
    {"base", {}},
    {"model", {"base"}},
    {"scheduler", {"base", "model"}},
    {"protocol", {"base", "model"}},
    {"spec", {"base", "model"}},
    {"core", {"base", "model", "scheduler", "protocol"}},
    {"node", {"base", "model", "protocol"}},
    {"ports", {"base", "model", "protocol"}},
    {"simulator", {"base", "model", "scheduler", "protocol", "core", "node", "ports", "spec"}},
    {"store", {"base", "model", "ports"}},
    {"net", {"base", "model", "protocol", "ports"}},
    {"os", {"base", "model", "protocol", "ports"}},
    {"rest", {"base", "model", "spec", "core", "scheduler", "protocol", "ports", "net"}},
    {"controller",
     {"base", "model", "spec", "core", "scheduler", "protocol", "ports", "net", "rest", "store"}},
    {"agent", {"base", "model", "spec", "protocol", "node", "ports", "net", "os"}},
    {"cli", {"base", "model", "spec", "net"}},
    {"experiment", {"base", "model", "spec", "scheduler", "core", "ports", "simulator", "cli"}},
    {"tidy", {"base"}},
};
const Rooms kPure = {"base", "model", "scheduler", "protocol", "core", "node"};

// Words that would let time, chance, threads or hash order into a decision.
const std::vector<std::string> kBannedInPureRooms = {
    "<chrono>",  "<thread>",   "<mutex>",   "<random>", "<unordered_map>", "<unordered_set>",
    "<fstream>", "<iostream>", "<sstream>", "::now(",   "rand()",          "getenv",
    "float ",    "std::sqrt",  "std::exp",  "std::log", "std::pow",
};
// Third-party headers cost seconds; ours must not spread them.
const std::vector<std::string> kHeavy = {"<boost/",     "<grpc",    "<google/",   "<nlohmann/",
                                         "<rapidjson/", "<spdlog/", "<yaml-cpp/", "<CLI/",
                                         "<openssl/",   "<sqlite3", "<libqhull",  "<Clp"};
constexpr int kLinesMax = 700;
constexpr std::size_t kColumnsMax = 100;

std::string room_of(const std::string& path) {
    return path.substr(0, path.find('/'));
}
/// Characters, not bytes.
std::size_t columns(const std::string& line) {
    return static_cast<std::size_t>(
        std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}
bool ends_with(const std::string& text, const std::string& end) {
    return text.ends_with(end);
}

std::vector<std::string> complaints_about(const std::string& path, std::istream& text) {
    std::vector<std::string> complaints;
    const std::string room = room_of(path);
    const auto allowed = kMayInclude.find(room);
    if (allowed == kMayInclude.end()) return {path + ": no such room"};
    int number = 0;
    for (std::string line; std::getline(text, line);) {
        const std::string where = path + ":" + std::to_string(++number) + ": ";
        if (columns(line) > kColumnsMax && !ends_with(path, "_test.cc") &&
            line.find("R\"") == std::string::npos && line.find('"') == std::string::npos) {
            complaints.push_back(where + "longer than " + std::to_string(kColumnsMax) + " columns");
        }
        if (line.starts_with("#include \"")) {
            const std::string other = room_of(line.substr(10));
            const bool test_only =
                ends_with(path, "_test.cc") || path.find("/test_") != std::string::npos;
            if (other != room && !allowed->second.contains(other) && !test_only) {
                complaints.push_back(where + room + " may not include " + other);
            }
        }
        if (ends_with(path, ".h") && line.starts_with("#include <")) {
            for (const std::string& heavy : kHeavy) {
                if (line.find(heavy) != std::string::npos) {
                    complaints.push_back(where + "a header of ours includes " + heavy);
                }
            }
        }
        if (ends_with(path, "_test.cc") || !kPure.contains(room)) continue;
        const std::string code = line.substr(0, line.find("//"));
        for (const std::string& word : kBannedInPureRooms) {
            if (code.find(word) == std::string::npos) continue;
            complaints.push_back(where + word + " is banned in " + room);
        }
    }
    if (number > kLinesMax) {
        complaints.push_back(path + ": " + std::to_string(number) + " lines; the bound is " +
                             std::to_string(kLinesMax));
    }
    return complaints;
}

TEST(Tidy, every_room_keeps_the_house_rules) {
    const fs::path source = fs::path(MUSTER_SOURCE_DIR) / "src";
    int files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(source)) {
        const std::string extension = entry.path().extension();
        if (!entry.is_regular_file() || (extension != ".cc" && extension != ".h")) continue;
        std::ifstream text(entry.path());
        for (const auto& complaint :
             complaints_about(fs::relative(entry.path(), source).string(), text)) {
            ADD_FAILURE() << complaint;
        }
        ++files;
    }
    EXPECT_GT(files, 50) << "no sources under " << source;
}

TEST(Tidy, every_room_has_a_short_readme) {
    for (const auto& [room, may] : kMayInclude) {
        if (room == "tidy") continue;
        const fs::path path = fs::path(MUSTER_SOURCE_DIR) / "src" / room / "README.md";
        std::ifstream text(path);
        EXPECT_TRUE(text.good()) << path << " is missing";
        int lines = 0;
        for (std::string line; std::getline(text, line);) ++lines;
        EXPECT_LE(lines, 40) << path;
    }
}

TEST(Tidy, complains) {
    std::istringstream text(
        "#include \"core/step.h\"\nauto t = clock::now();\n#include <boost/asio.hpp>\n");
    const std::vector<std::string> want = {"model/bad.h:1: model may not include core",
                                           "model/bad.h:2: ::now( is banned in model",
                                           "model/bad.h:3: a header of ours includes <boost/"};
    EXPECT_EQ(complaints_about("model/bad.h", text), want);
    std::string long_file;
    for (int i = 0; i <= kLinesMax; ++i) long_file += "\n";
    std::istringstream lines(long_file);
    EXPECT_EQ(complaints_about("net/long.cc", lines).size(), 1u);
}

}  // namespace
}  // namespace muster
