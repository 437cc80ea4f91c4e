// A controller core with its planner and hand-driven agents, for tests. After every step the books
// are checked, the incremental PlanIndex is compared with one made anew, and the stored records
// with the state.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/records.h"
#include "core/step.h"

namespace muster::core {

inline model::JobSpec small_job(std::string name = "job") {
    model::JobSpec spec;
    spec.name = std::move(name);
    spec.roles.resize(1);
    spec.roles[0].run = "true";
    return spec;
}
inline model::JobSpec gang_job(std::int64_t nodes, std::int64_t gpus, std::string name = "gang") {
    model::JobSpec spec = small_job(std::move(name));
    spec.roles[0].nodes = spec.roles[0].nodes_max = nodes;
    if (gpus > 0)
        spec.roles[0].devices = {{.kind = "gpu", .count = gpus, .memory_min = {}, .vendor = ""}};
    return spec;
}
inline model::NodeFacts facts_of(const std::string& name, int gpus = 8) {
    model::NodeFacts facts;
    facts.name = name;
    facts.addresses = {"10.0.0." + name.substr(1)};
    facts.peer_port = 7000;
    facts.boot_id = "boot-1";
    facts.cpus = {64'000};
    facts.memory = {std::int64_t{256} << 30};
    facts.disk = {std::int64_t{1} << 40};
    for (int i = 0; i < gpus; ++i) {
        model::Device device;
        device.id = name + "-gpu" + std::to_string(i);
        device.kind = "h100";
        device.memory = {std::int64_t{80} << 30};
        device.numa = i / 4;
        facts.devices.push_back(device);
    }
    return facts;
}

class World {
public:
    explicit World(Settings settings = {}, bool lead = true) {
        state.settings = std::move(settings);
        for (const auto& change : feed_all(state)) index.apply(change);
        if (lead) must(BecomeLeader{1});
    }

    State state;
    scheduler::PlanIndex index;
    Time now{1'000'000};
    std::vector<Command> commands;  // Since the last clear().
    std::vector<Notice> notices;
    std::map<std::string, std::uint64_t> sessions;
    std::map<RecordName, std::string> store;
    std::uint64_t next_session = 1;
    Caller alice{"alice", false}, bob{"bob", false}, root{"root", true};
    bool checks = true;

    Result<Step> step(Event event) {
        const std::uint64_t before = checks ? digest(state) : 0;
        auto result = core::step(state, {now, std::move(event)});
        if (!result) {
            if (checks) EXPECT_EQ(digest(state), before) << "a refused input changed the state";
            return result;
        }
        absorb(*result);
        return result;
    }
    Step must(Event event) {
        auto result = step(std::move(event));
        if (!result) {
            ADD_FAILURE() << result.error().message;
            return {};
        }
        return *std::move(result);
    }
    Error refused(Event event) {
        auto result = step(std::move(event));
        if (result) {
            ADD_FAILURE() << "was not refused";
            return {};
        }
        return result.error();
    }
    JobId submit(const model::JobSpec& spec, const Caller& caller) {
        return must(SubmitJob{caller, spec, "", 0, {}}).answer.job;
    }
    JobId submit(const model::JobSpec& spec) { return submit(spec, alice); }

    void hello(const std::string& name, std::vector<protocol::TaskStatus> tasks = {},
               int gpus = 8) {
        hello(facts_of(name, gpus), std::move(tasks));
    }
    void hello(model::NodeFacts facts, std::vector<protocol::TaskStatus> tasks = {}) {
        const std::string name = facts.name;
        sessions[name] = next_session++;
        must(LinkOpened{sessions[name], name, "", {0, std::move(facts), std::move(tasks)}});
    }
    /// Time passes; the named nodes' heartbeats come every second, and every due Tick.
    void pass(std::int64_t ms, const std::vector<std::string>& alive = {}) {
        const Time end = now + Duration{ms};
        while (now < end) {
            now = std::min(end, now + Duration{1000});
            for (const std::string& name : alive) {
                const auto found = find_node(state, name);
                if (found && state.tables.node_live.at(found->value).session == sessions[name])
                    must(FromAgent{sessions[name], protocol::Heartbeat{1}});
            }
            while (next_wake(state) <= now) must(Tick{});
        }
    }
    /// Plans and commits until nothing starts any more.
    std::size_t plan() {
        std::size_t started = 0;
        for (;;) {
            scheduler::Plan plan = index.plan(now);
            const std::size_t starts = plan.starts.size();
            const bool complete = plan.complete;
            must(PlanProposed{std::move(plan)});
            started += starts;
            if (starts == 0 && complete) return started;
        }
    }
    const Job& job(JobId id) const { return state.tables.jobs.at(id.value); }
    const JobExtra& extra(JobId id) const { return extra_of(job(id)); }
    std::string node_of(JobId id, std::uint32_t rank = 0) const {
        return state.tables.nodes.at(extra(id).allocation->slots.at(rank).node.value).facts->name;
    }
    protocol::TaskKey key(JobId id, std::uint32_t rank = 0) const {
        return {id, job(id).epoch, rank};
    }
    protocol::TaskStatus status(JobId id, std::uint32_t rank, protocol::TaskState to) const {
        protocol::TaskStatus status;
        status.key = key(id, rank);
        status.term = state.tables.meta.term;
        status.state = to;
        if (to >= protocol::TaskState::Ready) status.port = 29'500;
        return status;
    }
    protocol::TaskStatus ended(JobId id, std::uint32_t rank, model::Cause cause,
                               int exit_code = -1) const {
        protocol::TaskStatus out = status(id, rank, protocol::TaskState::Ended);
        out.end.cause = cause;
        out.end.exit_code = cause == model::Cause::Success ? 0 : exit_code;
        return out;
    }
    void report(const protocol::TaskStatus& status) {
        const JobId id = status.key.job;
        must(FromAgent{sessions.at(node_of(id, status.key.rank)), status});
    }
    void report(JobId id, std::uint32_t rank, protocol::TaskState to) {
        report(status(id, rank, to));
    }
    void end(JobId id, std::uint32_t rank, model::Cause cause, int exit_code = 1) {
        report(ended(id, rank, cause, exit_code));
    }
    /// All ranks stand at the barrier, then run.
    void run(JobId id) {
        const auto ranks = static_cast<std::uint32_t>(ranks_of(*extra(id).allocation));
        if (ranks > 1)
            for (std::uint32_t rank = 0; rank < ranks; ++rank)
                report(id, rank, protocol::TaskState::Ready);
        for (std::uint32_t rank = 0; rank < ranks; ++rank)
            report(id, rank, protocol::TaskState::Running);
    }
    template <class Message>
    std::vector<Message> sent(const std::string& node = "") const {
        std::vector<Message> out;
        for (const Command& command : commands) {
            const auto* send = std::get_if<Send>(&command);
            if (send == nullptr) continue;
            if (!node.empty() && send->session != sessions.at(node)) continue;
            if (const auto* message = std::get_if<Message>(&send->message)) out.push_back(*message);
        }
        return out;
    }
    bool told(const std::string& type) const {
        for (const Notice& notice : notices)
            if (notice.type == type) return true;
        return false;
    }
    void clear() { commands.clear(), notices.clear(); }
    /// What a controller would have that reads the store now.
    State reload() const {
        State fresh;
        fresh.settings = state.settings;
        for (const auto& [name, bytes] : store) {
            auto change = decode_record(name, bytes);
            EXPECT_TRUE(change) << name.id;
            if (change) apply_change(fresh, *change);
        }
        const Status whole = finish_load(fresh);
        EXPECT_TRUE(whole) << (whole ? "" : whole.error().message);
        return fresh;
    }
    /// The controller dies and comes back from its records; links are gone.
    void restart() {
        state = reload();
        sessions.clear();
        index = {};
        for (const auto& change : feed_all(state)) index.apply(change);
        must(BecomeLeader{state.tables.meta.term + 1});
    }

private:
    void absorb(const Step& step) {
        for (const Change& change : step.changes) {
            const auto name = record_of(change);
            if (!name) continue;
            const auto bytes = encode_record(state, *name);
            if (bytes)
                store[*name] = *bytes;
            else
                store.erase(*name);
        }
        commands.insert(commands.end(), step.commands.begin(), step.commands.end());
        notices.insert(notices.end(), step.notices.begin(), step.notices.end());
        for (const auto& change : step.planning) index.apply(change);
        if (!checks || step.changes.empty()) return;
        check(state);
        scheduler::PlanIndex again;
        for (const auto& change : feed_all(state)) again.apply(change);
        EXPECT_EQ(index.digest(), again.digest());
        EXPECT_EQ(digest(reload()), digest(state)) << "records do not give the state back";
    }
};

}  // namespace muster::core
