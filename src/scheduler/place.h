// What fits on one node: the rules that planning (by counts) and core (by ids) share.
//
// Pure functions of their arguments, so that core's re-check of a plan cannot disagree with the
// planner about what a kind, a constraint or a default share means.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.h"
#include "model/device.h"
#include "model/job_spec.h"
#include "model/node.h"
#include "scheduler/plan.h"

namespace muster::scheduler {

/// Whether a device is one that `ask` accepts, by kind or class, vendor and memory. Health and
/// owner are not looked at.
bool matches(const model::DeviceAsk& ask, const model::Device& device);
/// Whether all terms hold for the node. A term on "node" is on its name.
bool satisfies(const std::vector<model::ConstraintTerm>& constraint, const model::NodeFacts& facts);
/// CPUs that a group's node gets: what it asks for, else its share by devices (part of a device:
/// part of that), else one; all of them if the job has whole nodes to itself.
MilliCpu node_cpus(const GroupAsk& group, std::uint32_t alternative, const model::NodeFacts& facts,
                   bool exclusive);
/// The alternatives of a group: its devices, or one empty ask (count 0) if it wants none.
std::size_t alternatives_of(const GroupAsk& group);
const model::DeviceAsk& ask_of(const GroupAsk& group, std::uint32_t alternative);
/// Kinds of devices that `ask` accepts on a node, sorted, each once. A gang's group has one kind.
std::vector<std::string> kinds_of(const model::DeviceAsk& ask, const model::NodeFacts& facts);

/// Levels that no site names: no level at all, the whole cluster, and what is inside a node.
bool implied_level(std::string_view name);

}  // namespace muster::scheduler
