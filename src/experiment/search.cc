#include "experiment/search.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "base/units.h"

namespace muster::experiment {
namespace {

using model::QueuePolicy;
using sim::report::RunReport;
using sim::study::Cluster;

constexpr std::int64_t kJobsLeast = 8;  // Of the smallest part that a search looks at.

/// One thing that may be set, its values, and how.
struct Knob {
    std::string name;
    std::vector<std::string> values;
    std::string (*get)(const Cluster&);
    void (*set)(Cluster&, const std::string&);
};

const model::SchedulingRules& rules_of(const Cluster& cluster) {
    static const model::SchedulingRules kDefault;
    return cluster.rules ? *cluster.rules : kDefault;
}
model::SchedulingRules& rules_of(Cluster& cluster) {
    if (!cluster.rules) cluster.rules.emplace();
    return *cluster.rules;
}
/// What all queues have in common, or "mixed".
template <class Get>
std::string common(const Cluster& cluster, const Get& get) {
    std::string all;
    for (const model::Queue& queue : cluster.queues) {
        const std::string one = get(queue.settings);
        if (!all.empty() && all != one) return "mixed";
        all = one;
    }
    return all.empty() ? get(model::QueueSettings{}) : all;
}
Duration length(const std::string& text) {
    const auto parsed = parse_duration(text);
    return parsed ? *parsed : Duration{};
}

const std::vector<Knob>& knobs() {
    static const std::vector<Knob> kKnobs = {
        {"policy of all queues",
         {"priority", "fifo", "fair", "shortest", "las"},
         [](const Cluster& c) {
             return common(c, [](const model::QueueSettings& s) {
                 return std::string(model::to_text(s.policy));
             });
         },
         [](Cluster& c, const std::string& v) {
             for (model::Queue& queue : c.queues)
                 queue.settings.policy = *model::parse_queue_policy(v);
         }},
        {"min_runtime of all queues",
         {"1m", "5m", "30m"},
         [](const Cluster& c) {
             return common(
                 c, [](const model::QueueSettings& s) { return format_duration(s.min_runtime); });
         },
         [](Cluster& c, const std::string& v) {
             for (model::Queue& queue : c.queues) queue.settings.min_runtime = length(v);
         }},
        {"aging of all queues",
         {"0s", "1h", "6h", "1d"},
         [](const Cluster& c) {
             return common(c,
                           [](const model::QueueSettings& s) { return format_duration(s.aging); });
         },
         [](Cluster& c, const std::string& v) {
             for (model::Queue& queue : c.queues) queue.settings.aging = length(v);
         }},
        {"rules.bookings_max",
         {"1", "4", "8", "32", "128"},
         [](const Cluster& c) { return std::to_string(rules_of(c).bookings_max); },
         [](Cluster& c, const std::string& v) { rules_of(c).bookings_max = std::stoll(v); }},
        {"rules.conservative",
         {"false", "true"},
         [](const Cluster& c) { return std::string(rules_of(c).conservative ? "true" : "false"); },
         [](Cluster& c, const std::string& v) { rules_of(c).conservative = v == "true"; }},
        {"rules.defragment",
         {"false", "true"},
         [](const Cluster& c) { return std::string(rules_of(c).defragment ? "true" : "false"); },
         [](Cluster& c, const std::string& v) { rules_of(c).defragment = v == "true"; }},
        {"rules.half_life",
         {"1d", "7d", "30d"},
         [](const Cluster& c) { return format_duration(rules_of(c).half_life); },
         [](Cluster& c, const std::string& v) { rules_of(c).half_life = length(v); }},
        {"rules.reclaim_per_minute",
         {"64", "512", "4096"},
         [](const Cluster& c) { return std::to_string(rules_of(c).reclaim_per_minute); },
         [](Cluster& c, const std::string& v) { rules_of(c).reclaim_per_minute = std::stoll(v); }},
    };
    return kKnobs;
}

class Search {
public:
    Search(const Plan& plan, const SearchRules& rules, const std::function<bool()>& stop)
        : plan_(plan), rules_(rules), stop_(stop) {}

    Result<Found> run() && {
        const std::int64_t train = plan_.jobs * rules_.train / 1000;
        if (train < kJobsLeast || plan_.jobs - train < rules_.folds)
            return Error{.code = Code::Invalid,
                         .message = std::to_string(plan_.jobs) +
                                    " jobs are too few to learn from and to judge by",
                         .fix = "take a longer history"};
        std::vector<Candidate> field =
            candidates_of(plan_.paper.cluster, rules_.candidates, plan_.seeds.front());
        found_.tried = field.size();
        found_.best = field.front();
        std::int64_t part = train;
        for (std::size_t n = field.size(); n > 1; n = (n + 1) / 2)
            part = std::max(part / 2, kJobsLeast);
        while (field.size() > 1 && !found_.out_of_time) {
            part = std::min(part * 2, train);
            MUSTER_TRY(halve(field, part));
        }
        if (found_.best.changes.empty()) return std::move(found_);
        MUSTER_TRY(judge(train));
        return std::move(found_);
    }

private:
    struct Task {
        const Cluster* cluster;
        sim::traces::Play play;
        std::optional<double> score;
        std::int64_t unfinished = 0;
    };

    /// Keeps the better half; the first of equals, so that the present settings win ties.
    Status halve(std::vector<Candidate>& field, std::int64_t jobs) {
        std::vector<Task> tasks;
        for (const Candidate& candidate : field) {
            Task task{&candidate.cluster, plan_.play, {}, 0};
            // The newest of the training jobs: nearest to what comes.
            task.play.jobs_from = plan_.jobs * rules_.train / 1000 - jobs;
            task.play.jobs_max = jobs;
            tasks.push_back(std::move(task));
        }
        MUSTER_TRY(run_tasks(tasks));
        std::vector<std::size_t> order;
        const auto present = std::ranges::find_if(
            field, [](const Candidate& candidate) { return candidate.changes.empty(); });
        const auto least =
            present == field.end()
                ? tasks.front().unfinished
                : tasks[static_cast<std::size_t>(present - field.begin())].unfinished;
        for (std::size_t i = 0; i < tasks.size(); ++i)
            // Who leaves jobs undone has not served them sooner.
            if (tasks[i].score && tasks[i].unfinished <= least) order.push_back(i);
        if (order.empty()) {
            found_.out_of_time = true;
            return Ok{};
        }
        std::ranges::stable_sort(
            order, [&](std::size_t a, std::size_t b) { return *tasks[a].score < *tasks[b].score; });
        std::vector<Candidate> kept;
        for (std::size_t i = 0; i < (order.size() + 1) / 2; ++i) kept.push_back(field[order[i]]);
        // One is left, or all were run: the first is the best of those on this many jobs.
        found_.best = kept.front();
        field = std::move(kept);
        if (order.size() == 1) field.resize(1);
        return Ok{};
    }

    /// The winner against the present settings, fold by fold.
    Status judge(std::int64_t train) {
        const Cluster& present = plan_.paper.cluster;
        const Cluster& best = found_.best.cluster;
        std::vector<Task> tasks;
        const std::int64_t rest = plan_.jobs - train;
        for (std::int64_t fold = 0; fold < rules_.folds; ++fold)
            for (const Cluster* cluster : {&present, &best}) {
                Task task{cluster, plan_.play, {}, 0};
                task.play.jobs_from = train + rest * fold / rules_.folds;
                task.play.jobs_max = train + rest * (fold + 1) / rules_.folds - task.play.jobs_from;
                tasks.push_back(std::move(task));
            }
        MUSTER_TRY(run_tasks(tasks));
        for (std::size_t i = 0; i + 1 < tasks.size(); i += 2) {
            if (!tasks[i].score || !tasks[i + 1].score) continue;
            const double now = *tasks[i].score, then = *tasks[i + 1].score;
            const double scale = now < 0 ? -now : now;
            found_.gains.push_back({now, then, scale > 0 ? (now - then) / scale : 0});
        }
        return Ok{};
    }

    Status run_tasks(std::vector<Task>& tasks) {
        std::atomic<std::size_t> next{0};
        std::mutex mutex;
        std::optional<Error> error;
        const auto work = [&] {
            for (;;) {
                const std::size_t index = next.fetch_add(1);
                if (index >= tasks.size() || stop_()) return;
                Task& task = tasks[index];
                sim::study::Options options = plan_.options;
                options.seed = plan_.seeds.front();
                options.progress = [&](const sim::study::Progress&) { return !stop_(); };
                const auto run = run_study(plan_, *task.cluster, task.play, options);
                const std::lock_guard lock(mutex);
                if (!run) {
                    if (!error) error = run.error();
                    return;
                }
                ++found_.runs;
                if (!run->summary.complete) continue;  // Cut short: no score.
                task.score = score_of(*run, rules_.goal);
                task.unfinished = run->summary.unfinished + run->summary.refused;
            }
        };
        std::vector<std::thread> threads;
        for (std::int64_t i = 1; i < plan_.parallel; ++i) threads.emplace_back(work);
        work();
        for (std::thread& thread : threads) thread.join();
        if (error) return *error;
        if (stop_()) found_.out_of_time = true;
        return Ok{};
    }

    const Plan& plan_;
    const SearchRules& rules_;
    const std::function<bool()>& stop_;
    Found found_;
};

}  // namespace

std::vector<Candidate> candidates_of(const Cluster& cluster, std::size_t count,
                                     std::uint64_t seed) {
    Prng random(seed);
    Cluster present = cluster;
    if (present.queues.empty()) present.queues.emplace_back().name = "default";
    std::vector<Candidate> out{{{}, present}};
    const auto change = [&](Candidate& candidate, const Knob& knob, const std::string& then) {
        const std::string now = knob.get(present);
        const auto same = [&](const Change& made) { return made.setting == knob.name; };
        if (then == now || std::ranges::any_of(candidate.changes, same)) return;
        candidate.changes.push_back({knob.name, now, then});
        knob.set(candidate.cluster, then);
    };
    // Every single change first, then several at once.
    for (const Knob& knob : knobs())
        for (const std::string& value : knob.values) {
            Candidate candidate{{}, present};
            change(candidate, knob, value);
            if (!candidate.changes.empty() && out.size() < count)
                out.push_back(std::move(candidate));
        }
    for (int tries = 0; out.size() < count && tries < 10'000; ++tries) {
        Candidate candidate{{}, present};
        for (std::int64_t changes = random.between(2, 3); changes > 0; --changes) {
            const Knob& knob = knobs()[random.below(knobs().size())];
            change(candidate, knob, knob.values[random.below(knob.values.size())]);
        }
        std::ranges::sort(candidate.changes, {}, &Change::setting);
        const auto equal = [&](const Candidate& other) {
            return std::ranges::equal(candidate.changes, other.changes,
                                      [](const Change& a, const Change& b) {
                                          return a.setting == b.setting && a.then == b.then;
                                      });
        };
        if (candidate.changes.size() > 1 && std::ranges::none_of(out, equal))
            out.push_back(std::move(candidate));
    }
    return out;
}

std::optional<double> score_of(const RunReport& run, Goal goal) {
    const sim::report::Metrics& metrics = run.measured.metrics;
    switch (goal) {
        case Goal::Jct:
            if (metrics.jct_s.count == 0) return std::nullopt;
            return metrics.jct_s.avg;
        case Goal::Utilisation:
            if (!metrics.effective_utilisation_loaded) return std::nullopt;
            return -*metrics.effective_utilisation_loaded;
        case Goal::Fairness:
            if (metrics.finish_time_ratio.count == 0) return std::nullopt;
            return metrics.finish_time_ratio.p90;
    }
    return std::nullopt;
}

Result<Found> search(const Plan& plan, const SearchRules& rules,
                     const std::function<bool()>& stop) {
    return Search(plan, rules, stop).run();
}

}  // namespace muster::experiment
