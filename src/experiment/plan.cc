#include "experiment/plan.h"

#include <algorithm>

#include "base/error_codes.h"
#include "base/text.h"
#include "base/units.h"
#include "simulator/traces/gavel.h"
#include "simulator/traces/pollux.h"
#include "spec/parse.h"
#include "spec/queue_file.h"

namespace muster::experiment {
namespace {

constexpr std::size_t kRunsMax = 1000;
constexpr std::int64_t kParallelMax = 1024;
constexpr std::int64_t kCompressMax = 1'000'000;
const std::string kReferenceKind = "v100";  // Of tables of throughputs.
constexpr std::int64_t kSamples = 4000;     // Of the time in which jobs arrive, at least.

using model::QueuePolicy;
constexpr std::pair<std::string_view, std::optional<QueuePolicy>> kPolicies[] = {
    {"muster", std::nullopt},    {"priority", QueuePolicy::Priority}, {"fifo", QueuePolicy::Fifo},
    {"fair", QueuePolicy::Fair}, {"shortest", QueuePolicy::Shortest}, {"las", QueuePolicy::Las}};

Error bad_flag(const std::string& flag, const std::string& what) {
    return numbered(errors::kBadParameter, "--" + flag + ": " + what);
}

class Planner {
public:
    explicit Planner(const cli::Invocation& invocation) : given_(invocation) {}

    Result<Plan> make(std::optional<Live> live) && {
        if (live) {
            MUSTER_TRY(take(*std::move(live)));
        } else {
            MUSTER_TRY(cluster());
            MUSTER_TRY(trace());
        }
        MUSTER_TRY(queues());
        MUSTER_TRY(policies());
        MUSTER_TRY(seeds());
        MUSTER_TRY(play());
        MUSTER_TRY(failures());
        MUSTER_TRY(bounds());
        plan_.html = given_.value_or("report", "");
        plan_.json = given_.value_or("json", "");
        // What the report tells elsewhere, or what does not bear on the result, is left out.
        constexpr std::string_view kElsewhere[] = {"report", "json",   "parallel", "color",
                                                   "trace",  "policy", "seed",     "seeds",
                                                   "server", "context"};
        for (const auto& [name, value] : given_.flags)
            if (std::ranges::find(kElsewhere, name) == std::end(kElsewhere))
                plan_.settings.emplace_back(name, value);
        return std::move(plan_);
    }

private:
    Status take(Live live) {
        plan_.paper = std::move(live.paper);
        plan_.options.power = plan_.paper.power;
        plan_.standing = std::move(live.standing);
        if (live.history) {
            plan_.trace = *std::move(live.history);
        } else if (given_.has("trace")) {
            MUSTER_TRY(trace());
            const Duration by = live.at - plan_.trace.first();  // Its first job comes now.
            for (auto& row : plan_.trace.rows) row.submit = row.submit + by;
        } else {
            plan_.trace.file = "the running cluster";
            plan_.trace.format = "live";
        }
        if (!given_.has("add") && !given_.has("queues")) return Ok{};
        auto& changed = plan_.changed.emplace(plan_.paper);
        for (const std::string& text : given_.values("add")) {
            MUSTER_LET(more, sim::traces::read_cluster(text));
            const std::string prefix = "added" + std::to_string(++added_) + "-";
            for (model::NodeFacts& node : more.cluster.nodes) {
                node.name = prefix + node.name;
                for (model::Device& device : node.devices) device.id = prefix + device.id;
                changed.cluster.nodes.push_back(std::move(node));
            }
        }
        sim::traces::describe(changed);
        return Ok{};
    }

    Status cluster() {
        const auto text = given_.value("cluster");
        if (!text)
            return numbered(errors::kBadParameter, "--cluster is missing", "",
                            "say what to simulate, as in --cluster 352x8:v100, or name a file");
        MUSTER_LET(paper, sim::traces::read_cluster(*text));
        plan_.paper = std::move(paper);
        plan_.options.power = plan_.paper.power;
        return Ok{};
    }

    Status trace() {
        const auto path = given_.value("trace");
        if (!path)
            return numbered(errors::kBadParameter, "--trace is missing", "",
                            "name a file of jobs; docs/simulator.md lists the formats");
        sim::traces::ReadOptions read;
        read.format = given_.value_or("format", "auto");
        read.strict = given_.has("strict");
        read.devices_per_node = plan_.paper.devices_per_node;
        read.cpus_per_node = plan_.paper.cpus_per_node;
        const std::string processors = given_.value_or("processors", "cpus");
        if (processors != "cpus" && processors != "gpus")
            return bad_flag("processors", processors + ": must be cpus or gpus");
        read.processors_are_devices = processors == "gpus";
        if (const auto folder = given_.value("profiles")) {
            MUSTER_LET(applications, sim::traces::read_applications(*folder));
            plan_.applications = std::move(applications);
            read.applications = &plan_.applications;
        }
        MUSTER_LET(trace, sim::traces::read_trace(*path, read));
        plan_.trace = std::move(trace);
        return throughputs();
    }

    /// A table that lacks a type of the trace would be a guess.
    Status throughputs() {
        const auto path = given_.value("throughputs");
        if (!path) return Ok{};
        MUSTER_LET(table, sim::traces::read_throughputs(*path));
        for (const auto& row : plan_.trace.rows) {
            const std::string& type = plan_.trace.texts[row.profile];
            const int devices = row.nodes * row.devices;
            if (table.steps_per_s(kReferenceKind, type, devices) <= 0)
                return Error{.code = Code::Invalid,
                             .message = *path + ": job " + row.name + " is a '" + type + "' on " +
                                        std::to_string(devices) +
                                        " devices, which was not "
                                        "measured on a " +
                                        kReferenceKind,
                             .fix = "add it to the table, or take the job out of the trace"};
        }
        plan_.throughputs = std::move(table);
        return Ok{};
    }

    Status queues() {
        if (const auto path = given_.value("queues")) {
            MUSTER_LET(text, spec::read_text_file(*path, spec::kQueueFileMax, "a queue file"));
            auto parsed = spec::parse_queue_file(text, *path);
            if (const auto* problems = std::get_if<spec::Problems>(&parsed))
                return spec::to_error(*problems, errors::kQueueTree);
            auto& file = std::get<spec::QueueFile>(parsed);
            auto& cluster = plan_.changed ? plan_.changed->cluster : plan_.paper.cluster;
            cluster.queues = std::move(file.queues);
            if (file.rules) cluster.rules = file.rules;
        }
        sim::traces::add_queues(plan_.paper.cluster, plan_.trace.queues());
        const auto wrong = spec::check_queues(plan_.changed ? plan_.changed->cluster.queues
                                                            : plan_.paper.cluster.queues);
        if (!wrong.empty())
            return numbered(errors::kQueueTree, "the queues contradict themselves",
                            join(wrong, "\n"));
        return Ok{};
    }

    Status policies() {
        for (const std::string& name : given_.values("policy")) {
            const auto* found = std::ranges::find(kPolicies, std::string_view(name),
                                                  [](const auto& row) { return row.first; });
            if (found == std::end(kPolicies)) {
                std::vector<std::string> names;
                for (const auto& row : kPolicies) names.emplace_back(row.first);
                return bad_flag("policy", name + ": must be one of " + join(names, ", "));
            }
            plan_.policies.push_back({name, found->second});
        }
        if (plan_.policies.empty()) plan_.policies.push_back({"muster", std::nullopt});
        if (plan_.changed) plan_.policies.push_back({"changed", std::nullopt, true});
        return Ok{};
    }

    Status seeds() {
        constexpr std::int64_t kMost = std::int64_t{1} << 53;
        if (given_.has("seed") && given_.has("seeds"))
            return bad_flag("seeds", "cannot be given together with --seed");
        const std::string text = given_.value_or("seeds", given_.value_or("seed", "1"));
        const std::size_t dots = text.find("..");
        const bool range = given_.has("seeds") && dots != std::string::npos;
        const auto first = parse_integer(text.substr(0, range ? dots : text.size()), 0, kMost);
        const auto last = range ? parse_integer(text.substr(dots + 2), 0, kMost) : first;
        if (!first || !last || *last < *first)
            return bad_flag(given_.has("seeds") ? "seeds" : "seed",
                            text + ": must be a whole number" +
                                (given_.has("seeds") ? ", or a range as in 1..10" : ""));
        if (static_cast<std::size_t>(*last - *first) >= kRunsMax / plan_.policies.size())
            return bad_flag("seeds", text + ": more than " + std::to_string(kRunsMax) + " runs");
        for (std::int64_t seed = *first; seed <= *last; ++seed)
            plan_.seeds.push_back(static_cast<std::uint64_t>(seed));
        return whole("parallel", 1, kParallelMax, 1, plan_.parallel);
    }

    Status play() {
        auto& play = plan_.play;
        if (const auto text = given_.value("compress")) {
            // A decimal number, in thousandths.
            const auto factor = parse_cpus(*text);
            if (!factor || factor->value < 1 || factor->value > kCompressMax ||
                text->ends_with('m'))
                return bad_flag("compress", *text + ": must be a number in 0.001..1000");
            play.compress = factor->value;
        }
        play.know_durations = given_.has("know-durations");
        MUSTER_TRY(whole("jobs", 1, std::int64_t{1} << 40, 0, play.jobs_max));
        const auto all = static_cast<std::int64_t>(plan_.trace.rows.size());
        plan_.jobs = play.jobs_max > 0 ? std::min(play.jobs_max, all) : all;
        plan_.jobs += std::ssize(plan_.standing);
        if (const auto text = given_.value("checkpoint"); text && *text == "auto") {
            play.checkpoint_auto = true;
        } else {
            MUSTER_TRY(length("checkpoint", play.checkpoint_every));
        }
        MUSTER_TRY(length("checkpoint-stall", play.checkpoint_stall));
        MUSTER_TRY(length("restart-cost", play.restart_cost));
        MUSTER_TRY(length("plan-every", plan_.options.plan_every));
        return length("launch", plan_.options.launch);
    }

    Status failures() {
        auto& rules = plan_.options.failures;
        MUSTER_TRY(length("repair", rules.repair));
        const auto text = given_.value("failures");
        if (!text) {
            if (given_.has("failure-law"))
                return bad_flag("failure-law", "needs --failures with a rate");
            return Ok{};
        }
        const auto rate = parse_cpus(*text);
        if (!rate || rate->value < 1 || rate->value > 1'000'000'000 || text->ends_with('m'))
            return bad_flag("failures", *text +
                                            ": must be a number of failures in 1,000 "
                                            "node-days, above 0 (3.8)");
        rules.rate = rate->value;
        const std::string law = given_.value_or("failure-law", "exponential");
        if (law == "exponential")
            rules.law = sim::models::FailureLaw::Exponential;
        else if (law == "weibull")
            rules.law = sim::models::FailureLaw::Weibull;
        else
            return bad_flag("failure-law", law + ": must be exponential or weibull");
        return Ok{};
    }

    Status bounds() {
        auto& options = plan_.options;
        const auto& rows = plan_.trace.rows;
        Time first = rows.empty() ? Time{} : rows.front().submit;
        if (!plan_.standing.empty()) first = plan_.standing.front().submit;
        const std::int64_t played = plan_.jobs - std::ssize(plan_.standing);
        const std::int64_t span =
            played == 0
                ? 0
                : (rows[static_cast<std::size_t>(played) - 1].submit - rows.front().submit).ms;
        const auto arrivals =
            static_cast<std::int64_t>(static_cast<__int128>(span) * 1000 / plan_.play.compress);
        std::int64_t work = plan_.trace.device_ms();
        for (const auto& job : plan_.standing)
            for (const model::Role& role : job.spec.roles)
                work += job.model.work_ms * role.nodes *
                        (role.devices.empty() ? 0 : role.devices.front().count);
        work /= std::max<std::int64_t>(1, plan_.paper.devices);
        options.sample_every.ms = std::max<std::int64_t>(1000, std::max(arrivals, work) / kSamples);
        Duration until;
        MUSTER_TRY(length("until", until));
        if (given_.has("until")) {
            if (until.ms == 0) return bad_flag("until", "must be above 0");
            options.until = first + until;
        }
        return Ok{};
    }

    Status length(const char* flag, Duration& out) const {
        const auto text = given_.value(flag);
        if (!text) return Ok{};
        const auto value = parse_duration(*text);
        if (!value) return bad_flag(flag, value.error().message);
        out = *value;
        return Ok{};
    }
    Status whole(const char* flag, std::int64_t low, std::int64_t high, std::int64_t missing,
                 std::int64_t& out) const {
        out = missing;
        const auto text = given_.value(flag);
        if (!text) return Ok{};
        const auto value = parse_integer(*text, low, high);
        if (!value) return bad_flag(flag, value.error().message);
        out = *value;
        return Ok{};
    }

    const cli::Invocation& given_;
    Plan plan_;
    int added_ = 0;
};

}  // namespace

sim::models::MeasuredRules Plan::rates() const {
    sim::models::MeasuredRules rules;
    if (paper.cluster.rules) rules.speeds = paper.cluster.rules->kind_speeds;
    if (throughputs) rules.throughputs = &*throughputs;
    rules.reference = kReferenceKind;
    if (!applications.empty()) rules.applications = &applications;
    rules.devices_per_node = static_cast<int>(std::max<std::int64_t>(1, paper.devices_per_node));
    return rules;
}

Result<Plan> make_plan(const cli::Invocation& invocation, std::optional<Live> live) {
    return Planner(invocation).make(std::move(live));
}

}  // namespace muster::experiment
