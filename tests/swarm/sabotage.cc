#include "sabotage.h"

#include <algorithm>
#include <map>
#include <memory>

namespace muster::swarm {
namespace {

/// The controller believes that a silent node's gangs are gone at once; agents are told otherwise.
void drop_fence_check(Plan& plan) {
    const protocol::LeaseRules told = plan.world.controller.settings.lease;
    protocol::LeaseRules& believed = plan.world.controller.settings.lease;
    believed.fence = Duration{-10'000};
    plan.world.sabotage.down = [told](protocol::ControllerMessage& message) {
        if (auto* welcome = std::get_if<protocol::Welcome>(&message)) welcome->rules = told;
    };
}

/// Agents hear of fewer peers than the controller believes: an island of three runs on.
void withhold_peers(Plan& plan) {
    plan.world.sabotage.down = [](protocol::ControllerMessage& message) {
        auto* grant = std::get_if<protocol::LeaseGrant>(&message);
        if (grant != nullptr && grant->peers.size() > 2) grant->peers.resize(2);
    };
}

/// The planner is not told that capacity came back.
void leak_devices(Plan& plan) {
    plan.world.sabotage.step = [](core::Step& step) {
        std::erase_if(step.planning, [](const scheduler::Change& change) {
            const auto* released = std::get_if<scheduler::JobReleased>(&change);
            return released != nullptr && released->id.value % 5 == 0;
        });
    };
}

/// Reports of any attempt count for the present one. So that there are some, the first two orders
/// to forget an end get lost: it is told again every 10 s, which harms nobody who looks at epochs.
void obey_stale_epochs(Plan& plan) {
    auto lost = std::make_shared<std::map<protocol::TaskKey, int>>();
    plan.world.sabotage.down = [lost](protocol::ControllerMessage& message) {
        auto* forget = std::get_if<protocol::ForgetTask>(&message);
        if (forget != nullptr && ++(*lost)[forget->key] <= 2) forget->key.job = {kJobIdMax};
    };
    plan.world.sabotage.up = [](const core::State& state, protocol::AgentMessage& message) {
        const auto freshen = [&](protocol::TaskStatus& status) {
            const core::Job* job = state.tables.jobs.find(status.key.job.value);
            if (job != nullptr) status.key.epoch = job->epoch;
        };
        if (auto* status = std::get_if<protocol::TaskStatus>(&message)) freshen(*status);
        if (auto* hello = std::get_if<protocol::Hello>(&message)) {
            for (protocol::TaskStatus& status : hello->tasks) freshen(status);
        }
    };
}

}  // namespace

bool plant(Plan& plan, std::string_view name) {
    if (name == "fence")
        drop_fence_check(plan);
    else if (name == "acknowledge")
        plan.world.sabotage.acknowledge_early = true;
    else if (name == "leak")
        leak_devices(plan);
    else if (name == "epoch")
        obey_stale_epochs(plan);
    else if (name == "wakeup")
        plan.world.sabotage.lose_wakeups = true;
    else if (name == "peers")
        withhold_peers(plan);
    else
        return false;
    return true;
}

}  // namespace muster::swarm
