// The laws of the core on random inputs: books balance after every step, the same seed gives the
// same state, records give the state back, a refused input changes nothing.
#include "core/step.h"

#include <gtest/gtest.h>

#include "base/prng.h"
#include "core/test_world.h"

namespace muster::core {
namespace {

using model::Cause;
using model::JobState;
using protocol::TaskState;

/// Agents as simple as can be: they hold what they were told to start, and move it on at random.
class Trial {
public:
    explicit Trial(std::uint64_t seed) : random_(seed) {
        world.state.settings.jobs_max = 60;
        for (int i = 1; i <= 5; ++i) connect("n" + std::to_string(i));
    }

    void run(int steps) {
        for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
            world.now = world.now + Duration{random_.between(1, 3'000)};
            act();
            deliver();
            while (next_wake(world.state) <= world.now) world.must(Tick{});
            deliver();
        }
    }
    World world;
    std::map<std::string, int> seen;

private:
    struct Agent {
        std::map<protocol::TaskKey, protocol::TaskStatus> tasks;
        bool up = true;
        int boot = 1;
    };

    void act() {
        const std::string name = "n" + std::to_string(random_.between(1, 5));
        switch (random_.below(16)) {
            case 0:
            case 1: submit(); break;
            case 2:
            case 3:
            case 4:
            case 5:
            case 6: move_task(name); break;
            case 7:
            case 8: beat(); break;
            case 9: world.plan(); break;
            case 10: act_on_job(); break;
            case 11:
                if (random_.chance(300)) drop(name);
                break;
            case 12:
                if (!agents_[name].up) connect(name);
                break;
            case 13: archive(); break;
            case 14:
                if (random_.chance(100)) world.restart(), relink();
                break;
            default: admin(name); break;
        }
    }
    void submit() {
        model::JobSpec spec = random_.chance(400)
                                  ? gang_job(random_.between(2, 3), random_.between(1, 8))
                                  : gang_job(1, random_.between(0, 8));
        spec.name = "j" + std::to_string(random_.below(4));
        spec.priority = random_.between(0, 100);
        spec.restart.max = random_.between(0, 2);
        spec.restart.backoff = {1000};
        spec.hold = random_.chance(50);
        if (random_.chance(200)) spec.checkpoint.dir = "/ckpt", spec.checkpoint.grace = {20'000};
        if (random_.chance(200)) spec.time = {random_.between(1000, 100'000)};
        if (random_.chance(100)) spec.deadline = world.now + Duration{random_.between(1, 100'000)};
        if (random_.chance(200))
            spec.array = {.count = random_.between(1, 9),
                          .first = 0,
                          .step = 1,
                          .parallel = random_.between(0, 3),
                          .sweep = {}};
        if (random_.chance(300) && world.state.tables.meta.next_job > 1)
            spec.depends.push_back({static_cast<model::Dependency::When>(random_.below(3)),
                                    {random_.below(world.state.tables.meta.next_job) + 1}});
        SubmitJob event{world.alice, spec, random_.chance(300) ? "key" : "", 7, {}};
        if (world.step(std::move(event)))
            ++seen["submit"];
        else
            ++seen["refused"];
    }
    void move_task(const std::string& name) {
        Agent& agent = agents_[name];
        if (agent.tasks.empty() || !agent.up) return;
        auto at = agent.tasks.begin();
        std::advance(at, static_cast<std::ptrdiff_t>(random_.below(agent.tasks.size())));
        protocol::TaskStatus& task = at->second;
        if (task.state == TaskState::Ended) return;
        if (random_.chance(250)) {
            task.state = TaskState::Ended;
            const Cause causes[] = {Cause::Success, Cause::Success, Cause::UserError,
                                    Cause::Oom,     Cause::Launch,  Cause::DeviceFault,
                                    Cause::Image};
            task.end.cause = causes[random_.below(7)];
            task.end.exit_code = task.end.cause == Cause::Success ? 0 : 1;
        } else if (task.state < TaskState::Ready) {
            task.state = TaskState::Ready;
            task.port = 29'500;
        } else if (task.state == TaskState::Ready && released_.contains(at->first)) {
            task.state = TaskState::Running;
        } else if (task.state == TaskState::Running) {
            say(name, protocol::CheckpointDone{at->first, random_.between(0, 100), "/ckpt/x"});
            return;
        }
        say(name, task);
    }
    void beat() {
        for (auto& [name, agent] : agents_)
            if (agent.up) say(name, protocol::Heartbeat{++beats_});
    }
    void act_on_job() {
        const std::uint64_t id = random_.below(world.state.tables.meta.next_job) + 1;
        const auto action = static_cast<JobAction>(random_.below(4));
        const std::int64_t element = random_.chance(300) ? random_.between(0, 9) : -1;
        const Caller& caller = random_.chance(100) ? world.bob : world.alice;
        if (world.step(ActOnJob{caller, {id}, element, action, "", 0}))
            ++seen["act"];
        else
            ++seen["refused"];
    }
    void admin(const std::string& name) {
        const auto action = static_cast<NodeAction>(random_.below(3));
        if (world.step(ActOnNode{world.root, name, action, "test"})) ++seen["admin"];
    }
    void archive() {
        Archived event;
        world.state.tables.jobs.for_each([&](std::uint64_t id, const Job& job) {
            if (model::ended(job.state)) event.jobs.push_back({id});
        });
        world.must(event);
    }
    void drop(const std::string& name) {
        Agent& agent = agents_[name];
        if (!agent.up) return;
        agent.up = false;
        if (world.sessions.contains(name)) world.must(LinkClosed{world.sessions[name]});
        if (random_.chance(400)) agent.tasks.clear(), ++agent.boot;  // It rebooted.
        ++seen["drop"];
    }
    void connect(const std::string& name) {
        Agent& agent = agents_[name];
        agent.up = true;
        model::NodeFacts facts = facts_of(name, name == "n5" ? 0 : 8);
        facts.boot_id = "boot-" + std::to_string(agent.boot);
        std::vector<protocol::TaskStatus> tasks;
        for (const auto& [key, task] : agent.tasks) tasks.push_back(task);
        world.hello(std::move(facts), std::move(tasks));
        ++seen["hello"];
    }
    void relink() {
        for (auto& [name, agent] : agents_)
            if (agent.up) connect(name);
    }
    void say(const std::string& name, protocol::AgentMessage message) {
        const auto found = world.sessions.find(name);
        if (found != world.sessions.end())
            (void)world.step(FromAgent{found->second, std::move(message)});
    }
    /// Carries out what the core asked of the agents.
    void deliver() {
        while (!world.commands.empty()) {
            const std::vector<Command> commands = std::exchange(world.commands, {});
            for (const Command& command : commands) {
                if (const auto* close = std::get_if<CloseLink>(&command)) hung_up(close->session);
                const auto* send = std::get_if<Send>(&command);
                if (send == nullptr) continue;
                for (auto& [name, agent] : agents_)
                    if (agent.up && world.sessions[name] == send->session)
                        hear(name, agent, send->message);
            }
        }
        for (const Notice& notice : world.notices) ++seen[notice.type];
        world.notices.clear();
    }
    void hung_up(std::uint64_t session) {
        for (auto& [name, agent] : agents_)
            if (world.sessions[name] == session) agent.up = false;
    }
    void hear(const std::string& name, Agent& agent, const protocol::ControllerMessage& message) {
        if (const auto* order = std::get_if<protocol::StartTask>(&message)) {
            if (agent.tasks.contains(order->key)) return;
            protocol::TaskStatus task;
            task.key = order->key;
            task.term = order->term;
            for (const std::string& device : order->devices)
                for (const auto& [key, other] : agent.tasks)
                    if (other.state != TaskState::Ended)
                        EXPECT_FALSE((devices_[{name, key}].contains(device))) << device;
            devices_[{name, order->key}] = {order->devices.begin(), order->devices.end()};
            agent.tasks[order->key] = task;
            if (!order->barrier) released_.insert(order->key);
            say(name, task);
        } else if (const auto* stop = std::get_if<protocol::StopTask>(&message)) {
            const auto at = agent.tasks.find(stop->key);
            if (at == agent.tasks.end() || random_.chance(200)) return;
            if (at->second.state != TaskState::Ended) at->second.end.cause = stop->cause;
            at->second.state = TaskState::Ended;
            say(name, at->second);
        } else if (const auto* forget = std::get_if<protocol::ForgetTask>(&message)) {
            agent.tasks.erase(forget->key);
        } else if (const auto* go = std::get_if<protocol::Go>(&message)) {
            released_.insert(go->key);
        }
    }

    Prng random_;
    std::map<std::string, Agent> agents_;
    std::map<std::pair<std::string, protocol::TaskKey>, std::set<std::string>> devices_;
    std::set<protocol::TaskKey> released_;
    std::uint64_t beats_ = 0;
};

TEST(Step, random_inputs_keep_the_books_and_the_same_seed_gives_the_same_state) {
    std::map<std::string, int> seen;
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        Trial first(seed);
        first.run(250);
        ASSERT_FALSE(HasFailure()) << "seed " << seed;
        if (seed <= 3) {
            Trial second(seed);
            second.world.checks = false;
            second.run(250);
            EXPECT_EQ(digest(first.world.state), digest(second.world.state)) << "seed " << seed;
        }
        for (const auto& [what, count] : first.seen) seen[what] += count;
    }
    for (const char* what :
         {"submit", "refused", "act", "admin", "drop", "job.started", "job.running", "job.ended",
          "job.lost", "job.recovered", "job.checkpoint", "node.lost", "node.fenced", "node.suspect",
          "node.drained", "cluster.frozen"})
        EXPECT_GT(seen[what], 0) << what << " never happened";
}

}  // namespace
}  // namespace muster::core
