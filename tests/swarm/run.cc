#include "run.h"

#include <cstdio>
#include <utility>

#include "judge.h"
#include "sabotage.h"
#include "workload.h"

namespace muster::swarm {
namespace {

constexpr std::uint64_t kStepsMin = 2'000;
constexpr Duration kHealLimit{4 * 3'600'000};
constexpr Duration kLook{500};  // How often the end is looked for.
constexpr int kStepsAfter = 10;

class Run {
public:
    Run(std::uint64_t seed, Plan plan, const RunOptions& options,
        std::map<std::string, Behaviour>& behaviours)
        : plan_(std::move(plan)),
          referee_(plan_.outage_only, options.verbose),
          world_(plan_.world, referee_),
          faults_(world_, plan_.faults),
          operators_(world_, make_site(seed), seed),
          users_(world_, referee_, seed, make_site(seed), behaviours) {
        referee_.attach(world_);
    }

    Outcome play() {
        world_.boot();
        world_.clients.set_loss(plan_.client_loss_per_mille);
        faults_.begin();
        operators_.begin(plan_.safety);
        users_.begin(plan_.jobs, plan_.safety, plan_.islands);
        look();
        if (plan_.outage_only) world_.tally.hit("config.outage-only");
        run_until([this] {
            return world_.queue.now() >= Time{plan_.safety.ms} &&
                   world_.controller.steps() >= kStepsMin;
        });
        faults_.heal();
        operators_.finish();
        users_.finish();
        done_ = false;
        healed_ = true;
        const Time limit = world_.queue.now() + kHealLimit;
        run_until([this, limit] { return done_ || world_.queue.now() >= limit; });
        if (referee_.failure().empty() && !done_)
            referee_.fail("no end after the healing: " + unended());
        if (referee_.failure().empty()) stays_done();
        return {.failure = referee_.failure(),
                .digest = world_.digest(),
                .steps = world_.controller.steps(),
                .events = world_.queue.fired(),
                .virtual_ms = world_.queue.now().ms,
                .tally = world_.tally};
    }

private:
    template <class Reached>
    void run_until(Reached reached) {
        while (referee_.failure().empty() && !reached() && world_.queue.run_one()) {
        }
    }

    /// Every so often: is it over? And does the planner's index still equal one made anew?
    void look() {
        world_.queue.after(kLook, [this] {
            if (over()) done_ = true;
            if (healed_ && looks_ % 4 == 0) operators_.look_again(), users_.give_up();
            compare_books();
            look();
        });
    }

    void compare_books() {
        ++looks_;
        if (!world_.controller.settled()) return;
        if (world_.controller.planner_forgot()) {
            referee_.fail("changes wait for a planner that nobody wakes");
        }
        if (looks_ % 4 != 0) return;
        world_.tally.hit("check.index-compared");
        if (!world_.controller.planner_agrees()) {
            referee_.fail("the planner's index is not the one that the state would make anew");
        }
        if (looks_ % 40 != 0) return;
        world_.tally.hit("fault.clean-restart");
        referee_.expect_digest(core::digest(world_.controller.state()));
        world_.controller.crash(false);
        world_.controller.start();
    }

    bool over() {
        if (!users_.content() || !world_.controller.settled()) return false;
        const core::View& tables = world_.controller.state().tables;
        if (!tables.jobs.empty() || !tables.live.empty()) return false;
        bool idle = true;
        tables.node_use.for_each([&](std::uint64_t, const core::NodeUse& use) {
            idle = idle && use.jobs.empty() && use.devices.empty() && use.cpus.value == 0;
        });
        for (HostIndex host = 1; host <= world_.hosts(); ++host) {
            const simulator::ModelAgent& agent = world_.host(host);
            idle = idle && agent.alive() && agent.state().linked && agent.state().tasks.empty() &&
                   agent.runtime().size() == 0;
        }
        return idle && referee_.running_tasks() == 0;
    }

    void stays_done() {
        const std::uint64_t steps = world_.controller.steps() + kStepsAfter;
        run_until([this, steps] { return world_.controller.steps() >= steps; });
        if (world_.controller.alive() && !world_.controller.state().tables.jobs.empty()) {
            referee_.fail("a job came back after the end");
        }
    }

    std::string reason(std::uint64_t job) const {
        const scheduler::Blocked why = world_.controller.why({job});
        return std::to_string(static_cast<int>(why.reason)) + " wants " +
               std::to_string(why.nodes_wanted) + " fit " + std::to_string(why.nodes_fit) +
               " busy " + std::to_string(why.nodes_busy) + " unfit " +
               std::to_string(why.nodes_unfit) + " unusable " + std::to_string(why.nodes_unusable) +
               (why.behind ? " behind " + std::to_string(why.behind.value) : "");
    }

    std::string unended() {
        std::string out;
        if (!world_.controller.alive()) return "the controller is down";
        const core::View& tables = world_.controller.state().tables;
        tables.jobs.for_each([&](std::uint64_t id, const core::Job& job) {
            if (out.size() > 1'000) return;
            const core::JobExtra& extra = core::extra_of(job);
            out += "job " + std::to_string(id) + " state " +
                   std::to_string(static_cast<int>(job.state)) + " epoch " +
                   std::to_string(job.epoch) + (job.held ? " held by " + extra.hold_owner : "") +
                   " waits for " + std::to_string(extra.waiting_for.size()) +
                   (job.state == model::JobState::Pending && extra.waiting_for.empty() && !job.held
                        ? " reason " + reason(id)
                        : "") +
                   "; ";
        });
        for (HostIndex host = 1; host <= world_.hosts(); ++host) {
            const simulator::ModelAgent& agent = world_.host(host);
            if (agent.alive() && agent.state().linked && agent.runtime().size() == 0 &&
                agent.state().tasks.empty()) {
                continue;
            }
            out += "host " + std::to_string(host) + " has " +
                   std::to_string(agent.runtime().size()) + " tasks" +
                   (agent.state().linked ? "" : ", no link") + "; ";
        }
        out += std::to_string(world_.clients.waiting()) + " requests open";
        return out;
    }

    Plan plan_;
    Referee referee_;
    simulator::World world_;
    simulator::Faults faults_;
    Operators operators_;
    Users users_;
    bool done_ = false, healed_ = false;
    std::uint64_t looks_ = 0;
};

}  // namespace

Outcome run_seed(std::uint64_t seed, const RunOptions& options) {
    std::map<std::string, Behaviour> behaviours;
    Plan plan = make_plan(seed, behaviours);
    if (!options.plant.empty()) (void)swarm::plant(plan, options.plant);
    Run run(seed, std::move(plan), options, behaviours);
    return run.play();
}

}  // namespace muster::swarm
