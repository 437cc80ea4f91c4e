#include "simulator/reference/gavel.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "base/prng.h"
#include "base/require.h"
#include "simulator/reference/max_min.h"

namespace muster::simulator::reference {
namespace {

struct Job {
    std::size_t index = 0;
    int devices = 1;
    double left = 0;                 // Steps.
    std::vector<double> speed;       // Steps a second, by kind.
    std::vector<double> share;       // Empty: not allotted yet.
    std::vector<double> received_s;  // Since the last reset, and half a round.
    std::vector<double> deficit_s;   // Of what was its share, before.
    double ends = 0;                 // In this round; of those that run.
    std::size_t kind = 0;
    double steps = 0;
    bool runs = false;
};

class Cluster {
public:
    Cluster(const GavelRules& rules, GavelPolicy policy)
        : rules_(rules), policy_(policy), random_(rules.seed), received_s_(rules.kinds.size()) {}

    void add(Job job) {
        job.received_s.assign(rules_.kinds.size(), rules_.round_s / 2);
        job.deficit_s.assign(rules_.kinds.size(), 0);
        jobs_.push_back(std::move(job));
        changed_ = true;
    }
    /// Marks who runs from now on. False: nobody.
    bool schedule(double now);
    /// Runs the round that began at `now`; when it ends. `ended` is told of who is done.
    template <class Ended>
    double run(double now, const Ended& ended);
    std::int64_t resets() const { return resets_; }
    /// When shares are made anew, if some change waits for that.
    std::optional<double> next_reset() const {
        if (!changed_) return std::nullopt;
        return reset_at_ + rules_.reset_s;
    }

private:
    void reset(double now);
    void share_fairly();
    void share_in_order();
    std::vector<std::size_t> order_of_kinds();

    const GavelRules& rules_;
    GavelPolicy policy_;
    Prng random_;
    std::vector<Job> jobs_;           // By arrival.
    std::vector<double> received_s_;  // Of each kind, by all jobs together.
    double reset_at_ = 0;
    bool changed_ = false;
    std::int64_t resets_ = 0;
};

void Cluster::reset(double now) {
    const double elapsed = now - reset_at_;
    const double first = rules_.round_s / 2;
    for (std::size_t w = 0; w < rules_.kinds.size(); ++w) {
        for (Job& job : jobs_) {
            const double due = job.share.empty() ? 0 : job.share[w] * elapsed;
            job.deficit_s[w] += due - (job.received_s[w] - first);
            job.received_s[w] = first;
        }
        received_s_[w] = first * static_cast<double>(jobs_.size());
    }
    reset_at_ = now;
    if (policy_ == GavelPolicy::FifoPerf)
        share_in_order();
    else
        share_fairly();
    changed_ = false;
    ++resets_;
}

void Cluster::share_fairly() {
    std::vector<double> capacity;
    double total = 0;
    for (const auto& kind : rules_.kinds) {
        capacity.push_back(kind.devices);
        total += kind.devices;
    }
    std::vector<ShareGroup> groups;
    std::vector<std::size_t> group_of;
    std::map<std::pair<int, std::vector<double>>, std::size_t> known;
    for (const Job& job : jobs_) {
        const bool alike = policy_ == GavelPolicy::Las;
        const auto [at, fresh] = known.try_emplace(
            {job.devices, alike ? std::vector<double>{} : job.speed}, groups.size());
        group_of.push_back(at->second);
        if (!fresh) {
            ++groups[at->second].count;
            continue;
        }
        ShareGroup group{.count = 1, .devices = job.devices};
        double equal = 0;
        for (std::size_t w = 0; w < capacity.size(); ++w)
            equal += (alike ? 1 : job.speed[w]) * capacity[w] / total;
        for (std::size_t w = 0; w < capacity.size(); ++w)
            group.worth.push_back((alike ? 1 : job.speed[w]) * job.devices / equal);
        groups.push_back(std::move(group));
    }
    const Shares shares = max_min_shares(groups, capacity);
    for (std::size_t i = 0; i < jobs_.size(); ++i) jobs_[i].share = shares.share[group_of[i]];
}

void Cluster::share_in_order() {
    std::vector<int> left;
    for (const auto& kind : rules_.kinds) left.push_back(kind.devices);
    bool blocked = false;
    for (Job& job : jobs_) {
        job.share.assign(left.size(), 0);
        if (blocked) continue;
        std::size_t best = left.size();
        for (std::size_t w = 0; w < left.size(); ++w) {
            if (left[w] < job.devices) continue;
            if (best == left.size() || job.speed[w] > job.speed[best]) best = w;
        }
        blocked = best == left.size();
        if (blocked) continue;
        job.share[best] = 1;
        left[best] -= job.devices;
    }
}

std::vector<std::size_t> Cluster::order_of_kinds() {
    std::vector<std::size_t> order(rules_.kinds.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (policy_ == GavelPolicy::Las)
        for (std::size_t i = order.size(); i > 1; --i)
            std::swap(order[i - 1], order[random_.below(i)]);
    return order;
}

bool Cluster::schedule(double now) {
    if (changed_ && (now - reset_at_ >= rules_.reset_s || reset_at_ == 0)) reset(now);
    bool any = false;
    for (Job& job : jobs_) job.runs = false;
    struct Entry {
        double priority, deficit, share;
        Job* job;
    };
    std::vector<Entry> entries;
    for (const std::size_t w : order_of_kinds()) {
        entries.clear();
        for (Job& job : jobs_) {
            if (job.runs || job.speed[w] <= 0) continue;
            double priority = 0;
            const double share = job.share.empty() ? 0 : job.share[w];
            if (share > 0)
                priority =
                    received_s_[w] > 0 ? share / (job.received_s[w] / received_s_[w]) : share * 1e9;
            if (priority <= 0 && policy_ == GavelPolicy::FifoPerf) continue;
            entries.push_back({priority, job.deficit_s[w], share, &job});
        }
        std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
            if (a.priority != b.priority) return a.priority > b.priority;
            if (a.deficit != b.deficit) return a.deficit > b.deficit;
            return a.share > b.share;
        });
        int left = rules_.kinds[w].devices;
        for (const Entry& entry : entries) {
            if (left == 0) break;
            if (entry.job->devices > left) continue;
            left -= entry.job->devices;
            entry.job->runs = true;
            entry.job->kind = w;
            any = true;
        }
    }
    return any;
}

template <class Ended>
double Cluster::run(double now, const Ended& ended) {
    // The round ends with the last of those that run: whole steps end a little before its length.
    double end = now;
    for (Job& job : jobs_) {
        if (!job.runs) continue;
        const double speed = job.speed[job.kind];
        job.steps = std::min(std::floor(speed * rules_.round_s), job.left);
        job.ends = now + job.steps / speed;
        end = std::max(end, job.ends);
    }
    for (Job& job : jobs_) {
        if (!job.runs) continue;
        job.left -= job.steps;
        job.received_s[job.kind] += job.ends - now;
        received_s_[job.kind] += job.ends - now;
        if (job.left <= 0) {
            ended(job);
            changed_ = true;
        }
    }
    std::erase_if(jobs_, [](const Job& job) { return job.left <= 0; });
    return end;
}

Error refused(std::size_t index, const std::string& why) {
    return {Code::Invalid, "job " + std::to_string(index) + " of the stream " + why};
}

}  // namespace

std::string_view to_string(GavelPolicy policy) {
    switch (policy) {
        case GavelPolicy::Las: return "las";
        case GavelPolicy::GavelLas: return "gavel";
        case GavelPolicy::FifoPerf: return "fifo_perf";
    }
    return "";
}

Result<GavelResult> run_gavel(const GavelRules& rules, GavelPolicy policy,
                              const models::Throughputs& table,
                              std::span<const traces::GavelJob> jobs,
                              std::span<const double> arrivals) {
    if (jobs.size() <= rules.last || arrivals.size() != jobs.size())
        return Error{Code::Invalid, "the stream has " + std::to_string(jobs.size()) +
                                        " jobs; job " + std::to_string(rules.last) +
                                        " is to be measured"};
    Cluster cluster(rules, policy);
    GavelResult result;
    std::size_t next = 0, measured = 0;
    const std::size_t wanted = rules.last - rules.first + 1;
    double sum_s = 0;
    for (double now = arrivals[0]; measured < wanted;) {
        for (; next < jobs.size() && arrivals[next] <= now; ++next) {
            Job job{.index = next, .devices = jobs[next].devices, .left = jobs[next].steps};
            bool fits = false;
            for (const auto& kind : rules.kinds) {
                job.speed.push_back(table.steps_per_s(kind.name, jobs[next].type, job.devices));
                fits = fits || (job.speed.back() > 0 && job.devices <= kind.devices);
            }
            if (!fits)
                return refused(next, "('" + jobs[next].type + "' on " +
                                         std::to_string(job.devices) +
                                         " devices) runs on no kind of the cluster");
            cluster.add(std::move(job));
        }
        result.exhausted = result.exhausted || next == jobs.size();
        if (!cluster.schedule(now)) {
            const auto reset = cluster.next_reset();
            MUSTER_REQUIRE(reset || next < jobs.size());
            now = next == jobs.size() ? *reset
                                      : std::min(arrivals[next], reset.value_or(arrivals[next]));
            continue;
        }
        ++result.rounds;
        now = cluster.run(now, [&](const Job& job) {
            if (job.index < rules.first || job.index > rules.last) return;
            sum_s += job.ends - arrivals[job.index];
            ++measured;
        });
    }
    result.mean_jct_s = sum_s / static_cast<double>(wanted);
    result.resets = cluster.resets();
    return result;
}

}  // namespace muster::simulator::reference
