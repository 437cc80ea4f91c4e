// The load of the end-to-end benchmark: submits jobs over the REST API and times them.
//
//   muster-load submit UNIX_SOCKET CLIENTS JOBS [--body JSON]   requests a second, ids to stdout on
//   --ids muster-load sync FOLDER TIMES                               the file system's own
//   fdatasync, p50 and p99 muster-load start UNIX_SOCKET TIMES STAMP_PROGRAM FOLDER    submit
//   acknowledged -> first instruction
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "net/http_client.h"

namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}
double quantile(std::vector<double> values, double q) {
    std::sort(values.begin(), values.end());
    return values.empty()
               ? 0
               : values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

std::unique_ptr<muster::net::HttpClient> client_of(const std::string& socket) {
    muster::net::HttpClientOptions options;
    options.endpoint.unix_path = socket;
    return muster::net::HttpClient::make(options);
}

// Returns the id, or ends the program: a benchmark of refusals would measure nothing.
std::string submit(muster::net::HttpClient& client, const std::string& body,
                   const std::string& key) {
    muster::net::HttpCall call;
    call.method = "POST";
    call.target = "/v1/jobs";
    call.body = body;
    call.headers.push_back({"Idempotency-Key", key});
    const auto reply = client.send(call);
    if (!reply || reply->status != 201) {
        std::fprintf(stderr, "submit failed: %s\n",
                     reply ? reply->body.c_str() : reply.error().message.c_str());
        std::exit(1);
    }
    const auto at = reply->body.find("\"id\":");
    const auto start = reply->body.find_first_of("0123456789", at);
    return reply->body.substr(start, reply->body.find_first_not_of("0123456789", start) - start);
}

int submit_verb(int argc, char** argv) {
    const std::string socket = argv[2];
    const int clients = std::atoi(argv[3]), jobs = std::atoi(argv[4]);
    std::string body = R"({"gpus":1,"run":"python train.py --lr 3e-4"})";
    bool print_ids = false;
    for (int i = 5; i < argc; ++i) {
        if (std::strcmp(argv[i], "--ids") == 0) print_ids = true;
        if (std::strcmp(argv[i], "--body") == 0) body = argv[++i];
    }
    std::vector<std::vector<std::string>> ids(static_cast<std::size_t>(clients));
    const std::string run =
        std::to_string(::getpid()) + "-" + std::to_string(Clock::now().time_since_epoch().count());
    const auto start = Clock::now();
    std::vector<std::thread> threads;
    for (int c = 0; c < clients; ++c) {
        threads.emplace_back([&, c] {
            auto client = client_of(socket);
            for (int i = c; i < jobs; i += clients) {
                ids[static_cast<std::size_t>(c)].push_back(
                    submit(*client, body, run + "-" + std::to_string(i)));
            }
        });
    }
    for (auto& thread : threads) thread.join();
    const double seconds = ms_since(start) / 1000;
    if (print_ids) {
        for (const auto& list : ids) {
            for (const auto& id : list) std::printf("%s\n", id.c_str());
        }
    }
    std::fprintf(stderr, "{\"per_second\": %.1f, \"seconds\": %.4f}\n", jobs / seconds, seconds);
    return 0;
}

int sync_verb(char** argv) {
    const std::string path = std::string(argv[2]) + "/sync-probe";
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return std::perror(path.c_str()), 1;
    // Overwrites what is there already, as a write-ahead log in steady state does.
    constexpr int kBlocks = 256;
    const std::string block(4096, 'x');
    for (int i = 0; i < kBlocks; ++i) (void)!::write(fd, block.data(), block.size());
    if (::fsync(fd) != 0) return std::perror("sync"), 1;
    std::vector<double> times;
    for (int i = 0; i < std::atoi(argv[3]); ++i) {
        const auto start = Clock::now();
        if (::pwrite(fd, block.data(), block.size(), (i % kBlocks) * 4096) < 0 ||
            ::fdatasync(fd) != 0)
            return std::perror("sync"), 1;
        times.push_back(ms_since(start));
    }
    ::close(fd);
    ::unlink(path.c_str());
    std::printf("{\"p50_ms\": %.4f, \"p99_ms\": %.4f}\n", quantile(times, 0.5),
                quantile(times, 0.99));
    return 0;
}

// The stamp program writes CLOCK_REALTIME in ns to the file named by its argument, first of all.
int start_verb(char** argv) {
    auto client = client_of(argv[2]);
    std::vector<double> times;
    for (int i = 0; i < std::atoi(argv[3]); ++i) {
        const std::string file = std::string(argv[5]) + "/stamp-" + std::to_string(i);
        submit(*client, std::string(R"({"run":"exec )") + argv[4] + " " + file + R"("})", file);
        const auto answered = std::chrono::system_clock::now();
        long long stamp = 0;
        for (int tries = 0; tries < 10'000 && stamp == 0; ++tries) {
            std::ifstream(file) >> stamp;
            if (stamp == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        if (stamp == 0) return std::fprintf(stderr, "job %d never started\n", i), 1;
        const auto then =
            std::chrono::duration_cast<std::chrono::nanoseconds>(answered.time_since_epoch())
                .count();
        times.push_back(static_cast<double>(stamp - then) / 1e6);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));  // The cluster is idle again.
    }
    std::printf("{\"median_ms\": %.3f, \"p99_ms\": %.3f}\n", quantile(times, 0.5),
                quantile(times, 0.99));
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string verb = argc > 1 ? argv[1] : "";
    if (verb == "submit" && argc >= 5) return submit_verb(argc, argv);
    if (verb == "sync" && argc == 4) return sync_verb(argv);
    if (verb == "start" && argc == 6) return start_verb(argv);
    std::fprintf(
        stderr,
        "usage: muster-load submit SOCKET CLIENTS JOBS [--body JSON] [--ids] | sync FOLDER TIMES |"
        " start SOCKET TIMES STAMP FOLDER\n");
    return 2;
}
