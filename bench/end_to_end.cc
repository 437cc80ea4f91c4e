// The whole way: submitted, durable, planned, started, durable, the agents told.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>

#include <fcntl.h>
#include <unistd.h>

#include "base/prng.h"
#include "bench/cluster.h"
#include "bench/measure.h"

namespace muster::bench {
namespace {

using Steady = std::chrono::steady_clock;
using Tasks = Cluster::Tasks;

constexpr int kDevices = 8, kQueues = 20, kUsers = 50;
/// The sizes of work B in nodes, and how often each comes in 100.
constexpr int kGangs[][2] = {{1, 40}, {2, 20}, {4, 15}, {8, 10}, {16, 8}, {32, 5}, {64, 2}};

double ms_since(Steady::time_point start) {
    return std::chrono::duration<double, std::milli>(Steady::now() - start).count();
}

model::JobSpec job(std::int64_t nodes, std::int64_t gpus, Prng& random) {
    model::JobSpec spec;
    spec.name = "train";
    spec.roles.resize(1);
    spec.roles[0].run = "exec python3 train.py";
    spec.roles[0].nodes = spec.roles[0].nodes_max = nodes;
    spec.roles[0].devices = {{"gpu", gpus, {}, ""}};
    spec.time = {60'000 * random.between(30, 1440)};
    return spec;
}

int gang_nodes(Prng& random) {
    auto dice = static_cast<int>(random.below(100));
    for (const auto& [nodes, weight] : kGangs) {
        if (dice < weight) return nodes;
        dice -= weight;
    }
    return 1;
}

std::vector<core::QueueWish> teams(int nodes) {
    std::vector<core::QueueWish> out;
    const std::int64_t share = std::int64_t{nodes} * kDevices * 1000 / kQueues;
    for (int q = 1; q <= kQueues; ++q) {
        core::QueueWish wish;
        wish.name = "team" + std::to_string(q);
        wish.settings.guarantee = {{"gpus", share * 8 / 10}};
        if (q % 3 == 0) wish.settings.policy = model::QueuePolicy::Fair;
        out.push_back(std::move(wish));
    }
    return out;
}

class EndToEnd {
public:
    EndToEnd(const Ask& ask, const Hooks& hooks) : ask_(ask), hooks_(hooks) {}

    Status run() {
        if (ask_.wants("full")) MUSTER_TRY(full());
        if (ask_.wants("burst")) MUSTER_TRY(burst());
        if (ask_.wants("gangs")) MUSTER_TRY(gangs());
        return Ok{};
    }

private:
    Result<std::unique_ptr<Cluster>> cluster(const std::string& name, Tasks tasks) {
        const std::string folder = ask_.folder + "/" + name;
        std::error_code failed;
        std::filesystem::create_directories(folder, failed);
        if (failed)
            return Error{Code::Denied, "cannot make the folder " + folder, failed.message(),
                         "name another with --folder"};
        return Cluster::start(folder, ask_.nodes, tasks);
    }
    Error stuck(const Cluster& cluster, const std::string& what) const {
        return {Code::Internal, what + " came to a standstill", cluster.trouble()};
    }
    void note(const std::string& line) const { hooks_.log(line); }

    /// Work A: jobs of one device, all at once.
    Status burst() {
        MUSTER_LET(made, cluster("burst", Tasks::RunOn));
        Prng random(1);
        const int jobs = std::min(ask_.jobs / 10, ask_.nodes * kDevices);
        std::vector<model::JobSpec> specs;
        for (int i = 0; i < jobs; ++i) specs.push_back(job(1, 1, random));
        const auto begin = Steady::now();
        for (model::JobSpec& spec : specs) made->submit("ana", "", std::move(spec));
        if (!made->wait([&](const auto& c) { return c.started >= jobs; }))
            return stuck(*made, "work A");
        const double ms = ms_since(begin);
        tell_of(*made, "burst", ms);
        hooks_.say({"burst_starts_per_s", jobs * 1e3 / ms, "1/s", "higher", 20'000});
        return Ok{};
    }

    /// Work B: gangs of whole nodes that end as soon as they start, to the last.
    Status gangs() {
        MUSTER_LET(made, cluster("gangs", Tasks::EndAtOnce));
        Prng random(2);
        const int jobs = ask_.jobs / 10;
        std::vector<model::JobSpec> specs;
        for (int i = 0; i < jobs; ++i)
            specs.push_back(job(std::min(gang_nodes(random), ask_.nodes), kDevices, random));
        const auto begin = Steady::now();
        for (model::JobSpec& spec : specs) made->submit("ana", "", std::move(spec));
        if (!made->wait([&](const auto& c) { return c.ended >= jobs; }))
            return stuck(*made, "work B");
        const double ms = ms_since(begin);
        tell_of(*made, "gangs", ms);
        hooks_.say({"gang_starts_per_s", jobs * 1e3 / ms, "1/s", "higher", 10'000});
        return Ok{};
    }

    void tell_of(const Cluster& cluster, const std::string& what, double ms) const {
        const Cluster::Counts counts = cluster.counts();
        note(what + ": " + std::to_string(counts.started) + " jobs, " +
             std::to_string(counts.orders) + " orders in " + std::to_string(ms) + " ms, " +
             std::to_string(cluster.batches()) + " commits, " + std::to_string(cluster.plans()) +
             " plans; CPU seconds: " + Cluster::cpu_times());
    }

    /// Every device taken, and a long queue.
    Status full() {
        MUSTER_LET(made, cluster("full", Tasks::RunOn));
        MUSTER_TRY(made->apply_queues(teams(ask_.nodes)));
        note("full: " + std::to_string(rss_mb()) + " MB with the nodes");
        Prng random(3);
        const std::int64_t devices = std::int64_t{ask_.nodes} * kDevices;
        for (std::int64_t i = 0; i < devices; ++i) submit(*made, random, i, 1, 1);
        if (!made->wait([&](const auto& c) { return c.started >= devices; }))
            return stuck(*made, "filling the cluster");
        settle(*made);
        const double before = rss_mb();
        note("full: " + std::to_string(before) + " MB with the running jobs");
        for (int i = 0; i < ask_.jobs; ++i) {
            const bool gang = random.chance(100);
            submit(*made, random, devices + i, gang ? std::int64_t{1} << random.between(1, 5) : 1,
                   gang ? kDevices : std::int64_t{1} << random.below(4));
        }
        if (!made->wait([&](const auto& c) { return c.acknowledged > devices + ask_.jobs; }))
            return stuck(*made, "queueing");
        settle(*made);
        const double after = rss_mb();
        hooks_.say({"rss_full_mb", after, "MB", "lower", 400});
        hooks_.say({"bytes_per_job", (after - before) * 1e6 / ask_.jobs, "B", "lower", 1024});
        return next_plans(*made, random);
    }

    /// Never so many at once that the controller would refuse one.
    static void submit(Cluster& cluster, Prng& random, std::int64_t number, std::int64_t nodes,
                       std::int64_t gpus) {
        cluster.wait([&](const auto& c) { return c.acknowledged + c.refused > number - 5'000; });
        model::JobSpec spec = job(nodes, gpus, random);
        spec.time = {1'800'000 * random.between(1, 8)};  // People ask for round numbers.
        spec.name = "job-" + std::to_string(number);
        spec.roles[0].run += " --number " + std::to_string(number);
        spec.queue = "team" + std::to_string(1 + random.below(kQueues));
        cluster.submit("user" + std::to_string(random.below(kUsers)),
                       "key-" + std::to_string(number), std::move(spec));
    }

    /// Until the planner has nothing more to say.
    static void settle(const Cluster& cluster) {
        std::uint64_t plans = 0;
        do {
            plans = cluster.plans();
            ::usleep(300'000);
        } while (plans != cluster.plans());
    }

    /// A job ends; how long until the next start's order is out?
    Status next_plans(Cluster& cluster, Prng& random) {
        const double sync_p99 = sync_ms();
        std::vector<double> times;
        int nothing = 0;
        for (int i = 0; i < (ask_.sweep ? 1000 : 300) && nothing < 10; ++i) {
            const std::int64_t started = cluster.counts().started;
            const auto begin = Steady::now();
            if (!cluster.end_one(random.next())) break;
            if (cluster.wait([&](const auto& c) { return c.started > started; },
                             std::chrono::seconds(1)))
                times.push_back(ms_since(begin));
            else
                ++nothing;
        }
        note("next plan: p50 " + std::to_string(percentile(times, 0.5)) + " ms, max " +
             std::to_string(percentile(times, 1)) + " ms; " + std::to_string(nothing) +
             " of them started nothing within a second; fdatasync p99 " + std::to_string(sync_p99) +
             " ms");
        hooks_.say({"fdatasync_p99_ms", sync_p99, "ms", "lower", 0});
        hooks_.say(
            {"next_plan_durable_p99_ms", percentile(times, 0.99), "ms", "lower", 2 + sync_p99});
        return Ok{};
    }

    /// The disk's own part, at the 99th percentile.
    double sync_ms() const {
        const std::string path = ask_.folder + "/sync";
        const int fd = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
        if (fd < 0) return 0;
        const std::string block(4096, 'x');
        std::vector<double> times;
        for (int i = 0; i < 500; ++i) {
            const auto begin = Steady::now();
            if (::write(fd, block.data(), block.size()) < 0 || ::fdatasync(fd) != 0) break;
            times.push_back(ms_since(begin));
        }
        ::close(fd);
        return percentile(times, 0.99);
    }

    const Ask& ask_;
    const Hooks& hooks_;
};

}  // namespace

Status measure_cluster(const Ask& ask, const Hooks& hooks) {
    return EndToEnd(ask, hooks).run();
}

}  // namespace muster::bench
