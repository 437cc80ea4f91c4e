// muster-swarm: a whole cluster in virtual time, hurt at random, judged after every step.
//
//   muster-swarm --seed N [--verbose]       one seed; the same every time
//   muster-swarm --seeds A..B | --for 60s   many; prints how often each fault struck and each state
//                                           was reached, and fails if one never was
//   --plant BUG   with a planted bug: fence, acknowledge, leak, epoch, wakeup, peers
//   --expect-caught   succeeds only if a seed fails
//   --twice       runs each seed twice and compares
//   --jobs N      in N processes
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/units.h"
#include "expected.h"
#include "run.h"
#include "sabotage.h"

namespace {

using namespace muster;
using Clock = std::chrono::steady_clock;

struct Options {
    std::vector<std::uint64_t> seeds;  // Empty: from `base` on.
    std::uint64_t base = 0;
    std::optional<Duration> time;
    swarm::RunOptions run;
    bool expect_caught = false, twice = false, single = false;
    unsigned jobs = 1;
};

char reproduce[256];

extern "C" void on_abort(int) {
    const auto ignored = write(STDOUT_FILENO, reproduce, std::strlen(reproduce));
    (void)ignored;
    _exit(1);
}

std::string command_for(std::uint64_t seed, const Options& options) {
    std::string line = "muster-swarm --seed " + std::to_string(seed);
    if (!options.run.plant.empty()) line += " --plant " + options.run.plant;
    return line;
}

/// What one process did; travels through a pipe as lines.
struct Sum {
    std::uint64_t seeds = 0, failed = 0, steps = 0, events = 0;
    simulator::Tally tally;
};

bool run_one(std::uint64_t seed, const Options& options, Sum& result) {
    const std::string command = command_for(seed, options);
    std::snprintf(reproduce, sizeof reproduce,
                  "FAILED seed %llu: aborted; reproduce: %s --verbose\n",
                  static_cast<unsigned long long>(seed), command.c_str());
    swarm::Outcome outcome = swarm::run_seed(seed, options.run);
    if (options.twice && outcome.failure.empty()) {
        const swarm::Outcome again = swarm::run_seed(seed, options.run);
        if (again.digest != outcome.digest || again.steps != outcome.steps) {
            outcome.failure = "two runs differ";
        }
    }
    ++result.seeds;
    result.steps += outcome.steps;
    result.events += outcome.events;
    for (const auto& [what, count] : outcome.tally.counts()) result.tally.hit(what, count);
    if (options.single) {
        std::printf("seed %llu: %llu steps, %llu events, %.1f virtual s, digest %016llx\n",
                    static_cast<unsigned long long>(seed),
                    static_cast<unsigned long long>(outcome.steps),
                    static_cast<unsigned long long>(outcome.events),
                    static_cast<double>(outcome.virtual_ms) / 1000,
                    static_cast<unsigned long long>(outcome.digest));
    }
    if (outcome.failure.empty()) return true;
    ++result.failed;
    std::printf("FAILED seed %llu: %s; reproduce: %s --verbose\n",
                static_cast<unsigned long long>(seed), outcome.failure.c_str(), command.c_str());
    std::fflush(stdout);
    return false;
}

/// Every `options.jobs`-th seed, from `worker` on.
Sum work(const Options& options, unsigned worker, Clock::time_point end) {
    Sum result;
    for (std::uint64_t i = worker;; i += options.jobs) {
        if (!options.seeds.empty() && i >= options.seeds.size()) break;
        if (options.time && Clock::now() >= end) break;
        const std::uint64_t seed =
            options.seeds.empty() ? options.base + i : options.seeds[static_cast<std::size_t>(i)];
        if (!run_one(seed, options, result) && options.expect_caught) break;
    }
    return result;
}

void write_result(const Sum& result, int fd) {
    std::string text = "seeds " + std::to_string(result.seeds) + "\nfailed " +
                       std::to_string(result.failed) + "\nsteps " + std::to_string(result.steps) +
                       "\nevents " + std::to_string(result.events) + "\n";
    for (const auto& [what, count] : result.tally.counts()) {
        text += "= " + what + " " + std::to_string(count) + "\n";
    }
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t n = write(fd, text.data() + done, text.size() - done);
        if (n <= 0) _exit(3);
        done += static_cast<std::size_t>(n);
    }
}

void read_result(int fd, Sum& sum) {
    FILE* in = fdopen(fd, "r");
    char line[256], what[200];
    long long count = 0;
    while (std::fgets(line, sizeof line, in) != nullptr) {
        if (std::sscanf(line, "= %199s %lld", what, &count) == 2)
            sum.tally.hit(what, count);
        else if (std::sscanf(line, "seeds %lld", &count) == 1)
            sum.seeds += static_cast<std::uint64_t>(count);
        else if (std::sscanf(line, "failed %lld", &count) == 1)
            sum.failed += static_cast<std::uint64_t>(count);
        else if (std::sscanf(line, "steps %lld", &count) == 1)
            sum.steps += static_cast<std::uint64_t>(count);
        else if (std::sscanf(line, "events %lld", &count) == 1)
            sum.events += static_cast<std::uint64_t>(count);
    }
    std::fclose(in);
}

/// A process dies with the first abort of a seed: that counts as one failed.
Sum work_in_processes(const Options& options, Clock::time_point end) {
    std::vector<std::pair<pid_t, int>> workers;
    for (unsigned worker = 0; worker < options.jobs; ++worker) {
        int pipe_ends[2];
        if (pipe(pipe_ends) != 0) std::exit(3);
        std::fflush(stdout);
        const pid_t child = fork();
        if (child < 0) std::exit(3);
        if (child == 0) {
            close(pipe_ends[0]);
            write_result(work(options, worker, end), pipe_ends[1]);
            std::fflush(stdout);
            _exit(0);
        }
        close(pipe_ends[1]);
        workers.push_back({child, pipe_ends[0]});
    }
    Sum sum;
    for (const auto& [child, fd] : workers) {
        read_result(fd, sum);
        int status = 0;
        waitpid(child, &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) ++sum.failed;
    }
    return sum;
}

/// True when every fault struck and every state was reached.
bool report(const Sum& result, double seconds_taken) {
    for (const auto& [what, count] : result.tally.counts()) {
        std::printf("%12lld  %s\n", static_cast<long long>(count), what.c_str());
    }
    bool all = true;
    for (const std::string_view what : swarm::kExpected) {
        if (result.tally.of(what) != 0) continue;
        std::printf("FAILED: never happened: %.*s\n", static_cast<int>(what.size()), what.data());
        all = false;
    }
    std::printf("%llu seeds, %llu failed, %llu steps, %llu events, %.1f s, %.1f seeds/s\n",
                static_cast<unsigned long long>(result.seeds),
                static_cast<unsigned long long>(result.failed),
                static_cast<unsigned long long>(result.steps),
                static_cast<unsigned long long>(result.events), seconds_taken,
                static_cast<double>(result.seeds) / std::max(seconds_taken, 1e-9));
    return all;
}

int usage(const char* problem) {
    std::fprintf(stderr,
                 "muster-swarm: %s\nusage: muster-swarm --seed N | --seeds A..B | --seed-file FILE "
                 "| --for TIME [--jobs N]\n"
                 "       [--verbose] [--twice] [--plant fence|acknowledge|leak|epoch|wakeup|peers "
                 "[--expect-caught]]\n",
                 problem);
    return 2;
}

std::optional<Options> parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string flag = argv[i];
        const auto next = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string(); };
        if (flag == "--seed") {
            options.seeds = {std::strtoull(next().c_str(), nullptr, 10)};
            options.single = true;
        } else if (flag == "--seeds") {
            unsigned long long first = 0, last = 0;
            if (std::sscanf(next().c_str(), "%llu..%llu", &first, &last) != 2 || last < first)
                return {};
            for (unsigned long long seed = first; seed <= last; ++seed)
                options.seeds.push_back(seed);
        } else if (flag == "--seed-file") {
            std::ifstream file(next());
            for (std::string line; std::getline(file, line);) {
                if (!line.empty() && line[0] != '#') {
                    options.seeds.push_back(std::strtoull(line.c_str(), nullptr, 10));
                }
            }
            if (options.seeds.empty()) return {};
        } else if (flag == "--for") {
            const auto time = parse_duration(next());
            if (!time) return {};
            options.time = *time;
            // Ten days apart, so that no two runs share seeds.
            options.base = static_cast<std::uint64_t>(std::time(nullptr)) * 1'000;
        } else if (flag == "--plant") {
            options.run.plant = next();
            if (std::find(std::begin(swarm::kPlants), std::end(swarm::kPlants),
                          options.run.plant) == std::end(swarm::kPlants)) {
                return {};
            }
        } else if (flag == "--jobs") {
            options.jobs = static_cast<unsigned>(std::max(1, std::atoi(next().c_str())));
        } else if (flag == "--verbose")
            options.run.verbose = true;
        else if (flag == "--expect-caught")
            options.expect_caught = true;
        else if (flag == "--twice")
            options.twice = true;
        else
            return {};
    }
    if (options.seeds.empty() && !options.time) return {};
    return options;
}

}  // namespace

int main(int argc, char** argv) {
    const std::optional<Options> options = parse(argc, argv);
    if (!options) return usage("what is asked for is not understood");
    signal(SIGABRT, on_abort);
    const Clock::time_point begin = Clock::now();
    const Clock::time_point end =
        begin + std::chrono::milliseconds(options->time.value_or(Duration{}).ms);
    if (options->time) {
        std::printf("seeds from %llu on\n", static_cast<unsigned long long>(options->base));
    }
    if (options->single && !options->expect_caught) {
        Sum result;
        return run_one(options->seeds[0], *options, result) ? 0 : 1;
    }
    const Sum result = work_in_processes(*options, end);
    const double taken =
        static_cast<double>(
            std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count()) /
        1000;
    if (options->expect_caught) {
        std::printf("%s: %s after %llu seeds\n", options->run.plant.c_str(),
                    result.failed != 0 ? "caught" : "NOT CAUGHT",
                    static_cast<unsigned long long>(result.seeds));
        return result.failed != 0 ? 0 : 1;
    }
    const bool all = report(result, taken);
    // A few seeds cannot be asked to show everything.
    const bool enough = options->time.has_value() || result.seeds >= 200;
    return result.failed == 0 && (all || !enough) ? 0 : 1;
}
