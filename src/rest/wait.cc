// GET /v1/jobs/{id}/wait: answers when the job has come as far as asked, or
// when the time is over.
#include <algorithm>

#include "base/units.h"
#include "rest/body.h"
#include "rest/find_job.h"
#include "rest/job_json.h"

namespace muster::rest {
namespace {

constexpr Duration kWaitMax = seconds(600);
constexpr Duration kWaitUsual = seconds(60);

enum class Goal : std::uint8_t { Ended, Started, Running };

bool reached(const core::Job& job, Goal goal) {
    using model::JobState;
    if (model::ended(job.state)) return true;
    switch (goal) {
        case Goal::Ended: return false;
        case Goal::Started: return job.state != JobState::Pending;
        case Goal::Running: return job.state == JobState::Running;
    }
    return false;
}

void answer(const CallPtr& call, bool is_reached, bool ended, std::string_view job) {
    JsonWriter json;
    json.begin_object().field("reached", is_reached).field("ended", ended);
    json.key("job").raw(job).end_object();
    call->json(std::move(json).text());
}

void answer_live(const CallPtr& call, const core::View& view, const FoundJob& found, Goal goal) {
    JobRenderer renderer(view, &call->api->facts, call->api->options.now(),
                         {.user = call->who.caller.user, .sees_all = call->who.caller.admin});
    JsonWriter json;
    const auto fields = usual_job_fields();
    if (found.waiting_element >= 0) {
        renderer.waiting_element(json, *found.live, found.waiting_element, fields);
    } else {
        renderer.object(json, *found.live, fields);
    }
    const bool at_goal = found.waiting_element < 0 && reached(*found.live, goal);
    const bool ended = found.waiting_element < 0 && model::ended(found.live->state);
    answer(call, at_goal, ended, json.text());
}

/// One waiter. On the watches thread but for the look into the history.
struct Waiter : std::enable_shared_from_this<Waiter> {
    CallPtr call;
    Goal goal = Goal::Ended;
    std::shared_ptr<void> handle;
    std::uint64_t timer = 0;
    bool looking = false, again = false, late = false, done = false;

    void look(const ViewPtr& view) {
        if (done) return;
        if (call->reply->gone()) return finish([] {});
        if (looking) {
            again = true;
            return;
        }
        looking = true;
        again = false;
        find_job(call, view, [self = shared_from_this(), view](Result<FoundJob> found) {
            // Perhaps on the reads thread.
            self->call->api->watches->post([self, view, found = std::move(found)]() mutable {
                self->looking = false;
                self->judge(*view, found);
            });
        });
    }
    void judge(const core::View& view, Result<FoundJob>& found) {
        if (done) return;
        if (!found) return finish([&] { call->fail(std::move(found).error()); });
        if (found->live == nullptr) {
            const ports::EndedJob& job = *found->ended;
            return finish([&] {
                answer(call, true, true, call->may_see(job.user) ? job.json : mask_json(job.json));
            });
        }
        const bool at_goal = found->waiting_element < 0 && reached(*found->live, goal);
        if (at_goal || late) return finish([&] { answer_live(call, view, *found, goal); });
        if (again) look(call->api->backend.view());
    }
    template <class Answer>
    void finish(Answer&& give) {
        done = true;
        handle.reset();
        call->api->watches->cancel(timer);
        give();
    }
};

}  // namespace

void wait_job(const CallPtr& call) {
    Duration timeout = kWaitUsual;
    if (const std::string text = call->query("timeout"); !text.empty()) {
        const auto parsed = parse_duration(text);
        if (!parsed || *parsed > kWaitMax) {
            return call->fail(bad_parameter("timeout", text, "a duration of at most 10m"));
        }
        timeout = *parsed;
    }
    auto waiter = std::make_shared<Waiter>();
    waiter->call = call;
    if (const std::string goal = call->query("for"); !goal.empty()) {
        if (goal == "started")
            waiter->goal = Goal::Started;
        else if (goal == "running")
            waiter->goal = Goal::Running;
        else if (goal != "ended") {
            return call->fail(bad_parameter("for", goal, "ended, started or running"));
        }
    }
    // From a view on that shows what the caller wrote; the hub's present one may be older.
    with_view(call, [waiter, timeout](const CallPtr& ready, const ViewPtr&) {
        ready->api->watches->post([waiter, timeout] {
            Api& api = *waiter->call->api;
            waiter->timer = api.watches->after(timeout, [waiter] {
                waiter->late = true;
                waiter->look(waiter->call->api->backend.view());
            });
            const std::weak_ptr<Waiter> weak = waiter;
            auto joined = api.hub.listen([weak](const Round& round) {
                if (const auto awake = weak.lock()) awake->look(round.after);
            });
            waiter->handle = std::move(joined.handle);
            waiter->look(api.backend.view());
        });
    });
}

}  // namespace muster::rest
