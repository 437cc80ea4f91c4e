#include "sabotage.h"

#include <algorithm>

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

/// The planner is not told that capacity came back.
void leak_devices(Plan& plan) {
    plan.world.sabotage.step = [](core::Step& step) {
        std::erase_if(step.planning, [](const scheduler::Change& change) {
            const auto* released = std::get_if<scheduler::JobReleased>(&change);
            return released != nullptr && released->id.value % 5 == 0;
        });
    };
}

/// Reports of any attempt count for the present one.
void obey_stale_epochs(Plan& plan) {
    plan.world.sabotage.up = [](const core::State& state, protocol::AgentMessage& message) {
        auto* status = std::get_if<protocol::TaskStatus>(&message);
        if (status == nullptr) return;
        const core::Job* job = state.tables.jobs.find(status->key.job.value);
        if (job != nullptr) status->key.epoch = job->epoch;
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
    else
        return false;
    return true;
}

}  // namespace muster::swarm
