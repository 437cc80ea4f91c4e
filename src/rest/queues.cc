// Queues: how one stands, and changing one or all of them as files and words say.
#include <algorithm>
#include <map>

#include "base/text.h"
#include "rest/ask.h"
#include "rest/body.h"
#include "rest/explain_json.h"
#include "rest/ids.h"
#include "rest/job_json.h"
#include "spec/queue_file.h"

namespace muster::rest {
namespace {

using Tree = std::map<std::string, model::QueueSettings>;

const core::Queue* queue_named(const core::View& view, std::string_view name) {
    const core::Queue* found = nullptr;
    view.queues.for_each([&](std::uint64_t, const core::Queue& queue) {
        if (queue.name == name) found = &queue;
    });
    return found;
}

Error no_such_queue(const core::View& view, const std::string& name) {
    std::vector<std::string> names;
    view.queues.for_each(
        [&](std::uint64_t, const core::Queue& queue) { names.push_back(queue.name); });
    const std::string near = nearest(name, names);
    return numbered(errors::kQueueNotFound,
                    "queue " + name + ": there is no such queue" +
                        (near.empty() ? "" : "; did you mean " + near + "?"),
                    {}, "`muster queues` lists them");
}

std::vector<model::Queue> queues_of(const Tree& tree) {
    std::vector<model::Queue> out;
    for (const auto& [name, settings] : tree)
        out.push_back({.id = {}, .parent = {}, .name = name, .settings = settings});
    return out;
}

Tree tree_of(const core::View& view) {
    Tree tree;
    view.queues.for_each(
        [&](std::uint64_t, const core::Queue& queue) { tree[queue.name] = queue.settings; });
    return tree;
}

/// What the file says, or all that is wrong with it.
std::variant<spec::QueueFile, Problem> parse_file(const Call& call) {
    auto parsed = spec::parse_queue_file(call.request.body, "");
    if (const auto* problems = std::get_if<spec::Problems>(&parsed))
        return invalid_text(*problems, errors::kQueueTree);
    return std::move(std::get<spec::QueueFile>(parsed));
}

/// A change that is asked for, against what is there.
struct Wanted {
    core::ApplyQueues apply;
    std::optional<model::SchedulingRules> rules;
    std::vector<std::pair<std::string, std::string>> changes;  // Queue, and "made", "changed"….
};

/// Also what the core would refuse, so that a dry run tells.
std::variant<Wanted, Problem> wanted_of(const core::View& view, Tree wishes, bool whole) {
    const Tree before = tree_of(view);
    Wanted out;
    out.apply.whole = whole;
    Tree after = whole ? Tree{{"default", before.contains("default") ? before.at("default")
                                                                     : model::QueueSettings{}}}
                       : before;
    for (auto& [name, settings] : wishes) {
        const auto known = before.find(name);
        if (known == before.end())
            out.changes.emplace_back(name, "made");
        else if (!(known->second == settings))
            out.changes.emplace_back(name, "changed");
        after[name] = settings;
        out.apply.queues.push_back({.name = name, .settings = std::move(settings)});
    }
    for (const auto& [name, settings] : before)
        if (!after.contains(name)) out.changes.emplace_back(name, "dropped");
    const auto errors = spec::check_queues(queues_of(after));
    if (errors.empty()) return out;
    Problem problem{.error = numbered(errors::kQueueTree, join(errors, "; "), {},
                                      "correct this and apply again; nothing was changed"),
                    .status = 422};
    return problem;
}

void answer_changes(const CallPtr& call, const Wanted& wanted, bool dry_run,
                    const std::string& revision) {
    JsonWriter json;
    json.begin_object().field("dry_run", dry_run).key("changes").begin_array();
    for (const auto& [queue, change] : wanted.changes)
        json.begin_object().field("queue", queue).field("change", change).end_object();
    json.end_array().field("rules", wanted.rules.has_value());
    json.field("revision", revision).end_object();
    call->json(std::move(json).text(), {{"Muster-Revision", revision}});
}

void answer_done(const CallPtr& call, const Wanted& wanted, const Backend::Answered& done) {
    call->api->own_writes.note(call->who.caller.user, done.revision);
    answer_changes(call, wanted, false,
                   revision_text(call->api->backend.view()->meta.term, done.revision));
}

/// Rules only when the queues were taken, so that a refusal changes nothing.
void submit_wanted(const CallPtr& call, const std::shared_ptr<Wanted>& wanted) {
    wanted->apply.caller = call->who.caller;
    call->api->backend.submit(wanted->apply, [call, wanted](Result<Backend::Answered> done) {
        if (!done) return call->fail(std::move(done).error());
        if (!wanted->rules) return answer_done(call, *wanted, *done);
        call->api->backend.submit(core::SetRules{call->who.caller, *wanted->rules},
                                  [call, wanted](Result<Backend::Answered> ruled) {
                                      if (!ruled) return call->fail(std::move(ruled).error());
                                      answer_done(call, *wanted, *ruled);
                                  });
    });
}

void carry_out(const CallPtr& call, Wanted wanted, const core::View& view) {
    if (call->query_flag("dry_run")) return answer_changes(call, wanted, true, revision_text(view));
    submit_wanted(call, std::make_shared<Wanted>(std::move(wanted)));
}

void apply_file(const CallPtr& call, bool whole) {
    auto file = parse_file(*call);
    if (const auto* problem = std::get_if<Problem>(&file)) return call->fail(*problem);
    auto kept = std::make_shared<spec::QueueFile>(std::move(std::get<spec::QueueFile>(file)));
    // Against what the caller wrote before, too.
    with_view(call, [kept, whole](const CallPtr& ready, const ViewPtr& view) {
        Tree wishes;
        for (const model::Queue& queue : kept->queues) wishes[queue.name] = queue.settings;
        // A file of rules alone says nothing about queues.
        auto wanted = wanted_of(*view, std::move(wishes), whole && !kept->queues.empty());
        if (const auto* problem = std::get_if<Problem>(&wanted)) return ready->fail(*problem);
        auto& change = std::get<Wanted>(wanted);
        if (kept->rules && !(*kept->rules == view->rules)) change.rules = kept->rules;
        carry_out(ready, std::move(change), *view);
    });
}

void write_line(JsonWriter& json, const scheduler::QueueStanding::Line& line) {
    json.begin_object().field("resource", line.resource);
    const auto amount = [&](std::string_view name, std::int64_t value) {
        json.key(name);
        write_amount(json, line.resource, value);
    };
    amount("guarantee", line.guarantee);
    amount("used", line.used);
    amount("borrowed", line.borrowed);
    amount("lent", line.lent);
    json.key("limit");
    if (line.limit < 0)
        json.null();
    else
        write_amount(json, line.resource, line.limit);
    json.end_object();
}

/// The queue and what is below it, as a file.
std::string yaml_of(const core::View& view, const std::string& name) {
    spec::QueueFile file;
    for (model::Queue& queue : queues_of(tree_of(view)))
        if (queue.name == name || queue.name.starts_with(name + "/"))
            file.queues.push_back(std::move(queue));
    return spec::to_yaml(file);
}

void write_next(JsonWriter& json, const core::View& view, JobId next) {
    json.key("next");
    const core::Job* job = view.jobs.find(next.value);
    if (job == nullptr) {
        json.null();
        return;
    }
    const auto spec = core::spec_of(view, job->spec);
    json.begin_object().field("job", job_name(view, next)).field("name", spec->name);
    json.field("user", user_name(view, job->user)).field("wants", wants_text(*spec));
    json.field("waiting_ms", std::max<std::int64_t>(0, (view.at - job->submitted).ms));
    json.end_object();
}

void answer_queue(const CallPtr& call, const core::View& view, const core::Queue& queue,
                  const scheduler::QueueStanding& stands) {
    const model::QueueSettings& settings = queue.settings;
    JsonWriter json;
    json.begin_object().field("name", queue.name);
    json.field("policy", model::to_text(settings.policy))
        .field("weight", static_cast<double>(settings.weight) / 100);
    json.field("preemptible", settings.preemptible);
    write_share(json, "share", stands.share);
    json.field("position", stands.position);
    json.field("running", stands.running).field("pending", stands.pending);
    json.key("lines").begin_array();
    for (const auto& line : stands.lines) write_line(json, line);
    json.end_array().key("below").begin_array();
    view.queues.for_each([&](std::uint64_t, const core::Queue& other) {
        if (other.parent == queue.id) json.value(other.name);
    });
    json.end_array();
    write_next(json, view, stands.next);
    json.field("yaml", yaml_of(view, queue.name));
    json.field("revision", revision_text(view)).end_object();
    call->json(std::move(json).text());
}

}  // namespace

void get_queue(const CallPtr& call) {
    with_view(call, [](const CallPtr& ready, const ViewPtr& view) {
        const core::Queue* queue = queue_named(*view, ready->args[0]);
        if (queue == nullptr) return ready->fail(no_such_queue(*view, ready->args[0]));
        using Standing = std::optional<scheduler::QueueStanding>;
        const auto look = [id = queue->id](const scheduler::PlanIndex& index, Time now) {
            return index.standing(id, now);
        };
        ask_planner<Standing>(ready, look, [ready, view, queue](const Result<Standing>& stands) {
            if (!stands) return ready->fail(stands.error());
            answer_queue(ready, *view, *queue, stands->value_or(scheduler::QueueStanding{}));
        });
    });
}

void put_queues(const CallPtr& call) {
    apply_file(call, true);
}
void patch_queues(const CallPtr& call) {
    apply_file(call, false);
}

void patch_queue(const CallPtr& call) {
    Body body(call->request, BodyNeed::Required);
    const auto set = body.texts("set", 100);
    if (auto problem = body.finish()) return call->fail(*std::move(problem));
    if (!set || set->empty())
        return call->fail(numbered(errors::kBodyMember, "set: nothing to change", {},
                                   "give a list of \"key=value\""));
    with_view(call, [set = *set](const CallPtr& ready, const ViewPtr& view) {
        const core::Queue* queue = queue_named(*view, ready->args[0]);
        if (queue == nullptr) return ready->fail(no_such_queue(*view, ready->args[0]));
        model::Queue changed{
            .id = {}, .parent = {}, .name = queue->name, .settings = queue->settings};
        const auto problems = spec::set_queue(changed, set);
        if (!problems.empty()) return ready->fail(invalid_text(problems, errors::kQueueTree));
        auto wanted = wanted_of(*view, {{changed.name, changed.settings}}, false);
        if (const auto* problem = std::get_if<Problem>(&wanted)) return ready->fail(*problem);
        carry_out(ready, std::move(std::get<Wanted>(wanted)), *view);
    });
}

std::string queues_yaml(const core::View& view) {
    return spec::to_yaml({.queues = queues_of(tree_of(view)), .rules = view.rules});
}

void write_amounts(JsonWriter& json, std::string_view name, const model::Amounts& amounts) {
    json.key(name).begin_object();
    for (const model::Amount& amount : amounts) {
        json.key(amount.resource);
        write_amount(json, amount.resource, amount.value);
    }
    json.end_object();
}

}  // namespace muster::rest
