#include "core/state.h"

#include <algorithm>
#include <charconv>

#include "base/hash.h"
#include "base/require.h"
#include "core/indexes.h"
#include "core/record_codec.h"

namespace muster::core {
namespace {

std::optional<std::uint64_t> parse_number(std::string_view text) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
}

}  // namespace

State::State() : indexes(std::make_unique<Indexes>()) {}
State::~State() = default;
State::State(State&&) noexcept = default;
State& State::operator=(State&&) noexcept = default;

std::span<const DeviceShare> NodeUse::shares_of(std::string_view device) const {
    const auto range = std::ranges::equal_range(
        devices, device, {}, [](const DeviceShare& each) { return std::string_view(each.device); });
    return {range.begin(), range.end()};
}

std::size_t ranks_of(const Allocation& allocation) {
    std::size_t ranks = allocation.slots.size();
    while (ranks > 0 && allocation.slots[ranks - 1].spare) --ranks;
    return ranks;
}

std::vector<QueueId> chain_of(const View& view, QueueId queue) {
    std::vector<QueueId> chain;
    for (; queue; queue = view.queues.at(queue.value).parent) chain.push_back(queue);
    return chain;
}

const JobExtra& extra_of(const Job& job) {
    static const JobExtra kDefault;
    return job.extra ? *job.extra : kDefault;
}

std::optional<JobId> find_job(const View& view, std::string_view text) {
    const std::size_t bar = text.find('_');
    const auto id = parse_number(text.substr(0, bar));
    if (!id || *id == 0 || *id > kJobIdMax) return std::nullopt;
    if (bar == std::string_view::npos)
        return view.jobs.contains(*id) ? std::optional<JobId>(JobId{*id}) : std::nullopt;
    const auto element = parse_number(text.substr(bar + 1));
    const CowTree<JobId>* elements = view.elements.find(*id);
    if (!element || elements == nullptr || *element >= std::uint64_t(model::kArrayMax)) return {};
    const JobId* job = elements->find(*element);
    return job == nullptr ? std::nullopt : std::optional<JobId>(*job);
}

std::optional<NodeId> find_node(const State& state, std::string_view name) {
    const auto at = state.indexes->node_by_name.find(name);
    if (at == state.indexes->node_by_name.end()) return std::nullopt;
    return at->second;
}

std::shared_ptr<const model::JobSpec> spec_of(const View& view, SpecId id) {
    auto spec = model::decode_job_spec(*view.specs.at(id.value).bytes);
    MUSTER_REQUIRE(spec.has_value());
    return std::make_shared<const model::JobSpec>(*std::move(spec));
}

std::shared_ptr<const model::JobSpec> cached_spec(const State& state, SpecId id) {
    auto& [known, spec] = state.indexes->decoded[id.value % state.indexes->decoded.size()];
    if (known != id || !spec) {
        spec = spec_of(state.tables, id);
        known = id;
    }
    return spec;
}

bool queued(const Job& job) {
    return job.state == model::JobState::Pending && !job.held && extra_of(job).waiting_for.empty();
}

std::int64_t startable(const Job& parent, const model::Array& array) {
    const ArrayBook& book = *extra_of(parent).array;
    std::int64_t waiting = 0;
    for (const ElementRange& range : book.waiting) waiting += range.last - range.first;
    if (array.parallel > 0)
        waiting = std::min(waiting, std::max<std::int64_t>(0, array.parallel - book.live));
    return waiting;
}

scheduler::Blocked wait_of(const View& view, const Job& job, Time now) {
    using Reason = scheduler::Blocked::Reason;
    scheduler::Blocked why;
    const JobExtra& extra = extra_of(job);
    if (job.held) {
        why.reason = Reason::Held;
    } else if (!extra.waiting_for.empty()) {
        why.reason = Reason::Dependency;
        why.behind = extra.waiting_for.front().job;
        why.ahead = static_cast<std::int64_t>(extra.waiting_for.size());
    } else if (now < job.eligible) {
        why.reason = Reason::NotEligible;
        why.expected_start = job.eligible;
    } else if (extra.array && startable(job, spec_of(view, job.spec)->array) == 0) {
        why.reason = Reason::Parallel;
        why.ahead = extra.array->live;
    } else if (const scheduler::Blocked* own = view.waits.find(job.id.value)) {
        why = *own;
    } else if (const scheduler::Blocked* shared = view.shape_waits.find(job.shape.value)) {
        why = *shared;
    }
    return why;
}

std::uint64_t revision_of(const Job& job) {
    Fnv fnv;
    fnv.add(encode_job(job));
    return fnv.hash() == 0 ? 1 : fnv.hash();
}

bool usable(const State& state, NodeId id) {
    const Node* node = state.tables.nodes.find(id.value);
    const NodeLive* live = state.tables.node_live.find(id.value);
    return node != nullptr && live != nullptr && live->health == model::NodeHealth::Ready &&
           live->session != 0 && live->strays.empty() && node->holds.empty();
}

std::string node_name(const State& state, NodeId id) {
    const Node* node = state.tables.nodes.find(id.value);
    return node == nullptr ? "node " + std::to_string(id.value) : node->facts->name;
}

}  // namespace muster::core
