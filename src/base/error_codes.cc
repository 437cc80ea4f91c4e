#include "base/error_codes.h"

#include <algorithm>
#include <charconv>

#include "base/require.h"

namespace muster {
namespace {

using namespace errors;  // NOLINT: the table below names nearly all of them.

constexpr ErrorCode kTable[] = {
    {kJobSyntax, Code::Invalid, "The job file is not valid YAML or JSON",
     "The text could not be read at the place named: a bracket, quote or indentation is wrong, an "
     "alias names no anchor, or it nests deeper than 64 levels.",
     "Correct the line that the caret points at. `muster run --dry-run FILE` checks without "
     "submitting."},
    {kJobUnknownField, Code::Invalid, "Unknown field",
     "A job has no field of that name. Nothing is silently ignored, so that a slip of the hand "
     "cannot change what a job asks for.",
     "Use the suggested name, or see docs/job-reference.md for all fields."},
    {kJobOutOfRange, Code::Invalid, "Value out of range",
     "The value is negative, too large, or outside the limits of the field. The limits are named "
     "in the message.",
     "Choose a value within the limits."},
    {kJobBadValue, Code::Invalid, "Value not understood",
     "The value is not of the form that the field takes: a number, a duration such as 90m, a size "
     "such as 64GB, or one of a few words.",
     "Write the value in one of the forms that the message shows."},
    {kJobFieldMissing, Code::Invalid, "A needed field is missing",
     "Every field is optional but `run`, the command; a role needs its own `run` too.",
     "Add the field, or give the command after `--`."},
    {kJobTooLarge, Code::TooLarge, "The job file is too large",
     "A job file may have 1 MiB. Data does not belong in it.",
     "Put data in files that the job reads, and name them in the job."},
    {kJobNotText, Code::Invalid, "The job file is not text",
     "It holds bytes that are not UTF-8: it is binary, or was saved in another encoding.",
     "Check that it is the file you meant; save it as UTF-8."},
    {kJobUnreadable, Code::NotFound, "The job file cannot be read",
     "It is missing, is a directory, or you may not read it.", "Check the path and its rights."},
    {kJobFieldsConflict, Code::Invalid, "Fields contradict each other",
     "Two fields cannot both hold, for example `array` and `sweep`, or an exact and a total count.",
     "Leave out one of the fields named."},
    {kJobUnsupported, Code::Invalid, "Not supported by this version",
     "The field is known but this version cannot do it yet, and says so rather than ignore it.",
     "Leave the field out, or upgrade."},
    {kBodySyntax, Code::Invalid, "The request's body is not valid JSON",
     "It could not be read at the place named.", "Send one JSON object."},
    {kBadParameter, Code::Invalid, "Wrong query parameter or header",
     "The route has no parameter of that name, or its value is not understood. Nothing is "
     "silently ignored.",
     "See api/openapi.yaml, or docs/api.md, for the parameters of each route."},
    {kMediaType, Code::Invalid, "Content type not accepted",
     "A job is sent as application/json or application/yaml, every other body as "
     "application/json.",
     "Set the Content-Type header."},
    {kNoRoute, Code::NotFound, "No such route",
     "The API has nothing at that path. The answer names the nearest routes.",
     "See GET /openapi.json for all routes."},
    {kMethod, Code::Invalid, "Method not allowed",
     "The path exists, but not with that method. The Allow header names those that do.",
     "Use one of the methods in the Allow header."},
    {kBodyTooLarge, Code::TooLarge, "The request is too large",
     "A body may have 2 MiB, a job 1 MiB.", "Send less."},
    {kUpgradeNeeded, Code::Invalid, "The connection must be upgraded",
     "attach and exec speak frames both ways, so they need `Connection: Upgrade` and `Upgrade: "
     "muster-tty`.",
     "Use `muster attach` or `muster exec`, or send these headers."},
    {kBadCursor, Code::Invalid, "The cursor is not valid",
     "A cursor is the `next_cursor` of the page before, unchanged and with the same filters.",
     "Start over without a cursor."},
    {kBodyMember, Code::Invalid, "Wrong member in the request's body",
     "The body has a member that the route does not know, lacks one that it needs, or one has the "
     "wrong type.",
     "See api/openapi.yaml, or docs/api.md, for the body of each route."},
    {kJobInvalid, Code::Invalid, "The job is not valid",
     "One or more fields are wrong. All of them are listed, each with its place.",
     "Correct each of them. `muster run --dry-run FILE` checks without submitting."},
    {kQueueUnknown, Code::Invalid, "No such queue",
     "The job or change names a queue that is not there.",
     "Choose one of `muster queues`, or leave the field out for the default queue."},
    {kDependencyUnknown, Code::Invalid, "Unknown job in `depends`",
     "The job that this one is to wait for is neither live nor in the history.",
     "Check the id with `muster ps --all`."},
    {kTooManyJobs, Code::Exhausted, "Too many jobs",
     "The controller holds as many live jobs as its `jobs_max` setting allows.",
     "Wait until some end, or use an array: it counts once until its elements start."},
    {kQueueNotLeaf, Code::Invalid, "The queue has queues below it",
     "Jobs wait in the leaves of the tree of queues only.",
     "Use one of the queues below it; the message names them."},
    {kQueueDenied, Code::Denied, "Not allowed in this queue",
     "The queue names the users and groups that may use it, and you are not among them. Who asks "
     "is known from the connection, never from the request.",
     "Use another queue, or ask an administrator."},
    {kQueueFull, Code::Exhausted, "Too many waiting jobs",
     "As many jobs wait in the queue, or of yours in it, as its `max_pending` or "
     "`user_max_pending` allows.",
     "Wait until some have started, or submit an array: it counts as one."},
    {kOverQueueLimit, Code::Invalid, "More than the queue allows",
     "The job asks for more than a limit of its queue (`limit`, `job_limit`, `max_time`) allows, "
     "or wants not to be preempted beyond what the queue's guarantee holds: it could never start.",
     "Ask for less, use another queue, or ask an administrator to raise the limit."},
    {kLevelUnknown, Code::Invalid, "Unknown topology level",
     "The site's topology has no level of that name. `node`, and within nodes `link` and `numa`, "
     "are always known.",
     "Use one of the levels that the message names."},
    {kQueueTree, Code::Invalid, "The queues do not fit together",
     "A queue's settings, or its place in the tree, are not possible. Nothing was changed.",
     "Correct everything that the message names, and apply again."},
    {kTopologyInvalid, Code::Invalid, "The topology is not possible",
     "Levels have to be named once each, at most eight, and each host needs a domain a level.",
     "Correct what the message names, and apply again."},
    {kReservationInvalid, Code::Invalid, "The reservation is not possible",
     "Its window, its nodes or its users are not possible, or its nodes are reserved already.",
     "Correct what the message names."},
    {kNoCredentials, Code::Unauthenticated, "Not signed in",
     "Over TLS every request needs a token: `Authorization: Bearer MUSTER_pat_...`. On the "
     "controller's own machine the Unix socket needs none.",
     "`muster login`, or set MUSTER_TOKEN."},
    {kTokenUnknown, Code::Unauthenticated, "Token not known",
     "The token was never made here, or was revoked.",
     "Ask an administrator for a new one: `muster token create`."},
    {kTokenExpired, Code::Unauthenticated, "Token expired", "Its time is over.",
     "Make a new one: `muster token create`."},
    {kNotOwner, Code::Denied, "Not your job",
     "Only the owner of a job, and administrators, may change it, read its log or run commands "
     "in it.",
     "Ask its owner or an administrator."},
    {kAdminOnly, Code::Denied, "Administrators only",
     "Nodes and other people's tokens are the administrators' to change. On the controller's "
     "machine root and the controller's own user are administrators.",
     "Ask an administrator, or use an administrator's token."},
    {kUidUnknown, Code::Unauthenticated, "Local user without a name",
     "The process that connected runs as a user id that this machine has no name for.",
     "Add the user on the controller's machine, or use a token."},
    {kRateLimit, Code::Exhausted, "Too many requests",
     "Each user may make so many requests a second, with short bursts above; large lists count "
     "for more. The Retry-After header says when to go on.",
     "Watch instead of polling: `muster ps -w`, or GET /v1/events?watch=1."},
    {kJoinRefused, Code::Denied, "Join token refused",
     "The join token is unknown, used up, expired, or for another node name.",
     "Make a new one on the controller: `muster token create --join`."},
    {kNameTaken, Code::Denied, "Node name is bound to another certificate",
     "A name belongs to the certificate that first joined with it.",
     "Choose another name for the node, or `muster node forget NAME` first."},
    {kJobNotFound, Code::NotFound, "No such job",
     "No live job and none in the history has that id.", "See `muster ps --all`."},
    {kJobEnded, Code::Conflict, "The job has ended",
     "What was asked for needs a job that has not ended.",
     "Submit it again: `muster run`, or `muster status JOB -o yaml` for its specification."},
    {kJobState, Code::Conflict, "Not possible in the job's present state",
     "The message names the state and what it would need.",
     "Wait for that state, or cancel first."},
    {kChanged, Code::Precondition, "Changed meanwhile",
     "If-Match named an older version: someone else changed it since you read it.",
     "Read it again, and repeat the change if you still want it."},
    {kKeyReused, Code::Invalid, "Idempotency key used for another request",
     "The key was used within the last 24 hours with a different body.",
     "Use a new key for a new job; repeat a request unchanged."},
    {kCompacted, Code::Gone, "Older events are no longer kept",
     "The event log is bounded, and the place to go on from is no longer in it.",
     "Read the present state, then watch from now on."},
    {kNodeNotFound, Code::NotFound, "No such node", "No node of that name has joined.",
     "See `muster nodes`."},
    {kHoldOfOther, Code::Denied, "Held by an administrator",
     "A hold belongs to whoever set it; a user cannot undo an administrator's.",
     "Ask the administrator whom the message names."},
    {kTokenNotFound, Code::NotFound, "No such token", "No token has that id.",
     "See `muster token list`."},
    {kQueueNotFound, Code::NotFound, "No such queue", "No queue has that name.",
     "See `muster queues`."},
    {kPreconditionNeeded, Code::Precondition, "If-Match is needed",
     "This change must name the version that it is based on, so that two people do not undo each "
     "other's work unseen.",
     "Send the ETag that you read as If-Match, or `If-Match: *` to change it whatever it is."},
    {kNodeInUse, Code::Conflict, "The node is in use",
     "It still has a link, or jobs hold its devices.",
     "Drain it, wait until it is empty, and stop its agent first."},
    {kElementNotFound, Code::NotFound, "No such element of the array",
     "The job is no array, or the array has fewer elements.", "See `muster status JOB`."},
    {kNoSuchRank, Code::NotFound, "No such rank",
     "Ranks count from 0 to the number of nodes less one.", "See `muster status JOB`."},
    {kNotRunning, Code::Conflict, "The job is not running",
     "A command can run only inside a task that is running.",
     "Wait for it: `muster wait --for running JOB`."},
    {kReservationNotFound, Code::NotFound, "No such reservation", "No reservation has that name.",
     "See `muster reserve list`."},
    {kQueueInUse, Code::Conflict, "The queue is in use",
     "It has jobs, or is the one that jobs go to which name none.",
     "Move or cancel its jobs first."},
    {kNotEvaluated, Code::Conflict, "Not evaluated yet",
     "The scheduler has not looked at the job since it was submitted or changed.",
     "Ask again in a moment."},
    {kNeverFits, Code::Conflict, "Can never start here",
     "Even the empty cluster, with all nodes healthy, could not hold it. The numbers say what is "
     "short.",
     "Ask for fewer or other nodes or devices, or add nodes."},
    {kNoNodes, Code::Conflict, "No usable nodes", "No node has joined, or none is ready.",
     "See `muster nodes`; start agents or resume drained nodes."},
    {kNotEnoughFree, Code::Conflict, "Not enough is free",
     "It fits the cluster but other jobs hold what it needs. The numbers say how much is free.",
     "Wait, or ask for less; see what is free with `muster gpus`."},
    {kReserved, Code::Conflict, "Would delay a job before it",
     "It would fit now, but would push back the reserved start of a job that is before it.",
     "Give a shorter `time`, so that it ends before the reservation begins."},
    {kNotEligible, Code::Conflict, "Its time has not come",
     "Its `begin` lies ahead, or it waits a little before it is tried again.", "Wait."},
    {kHeld, Code::Conflict, "Held", "It is held back until someone releases it.",
     "`muster release JOB`."},
    {kDependency, Code::Conflict, "Waits for other jobs",
     "Jobs in its `depends` have not ended yet.", "See them with `muster status JOB`."},
    {kParallel, Code::Conflict, "Array at its bound",
     "As many elements run at once as its `parallel` allows.", "Raise `parallel`, or wait."},
    {kQueueLimit, Code::Conflict, "At a limit of its queue",
     "With this job, its queue or one above would use more than its `limit`.",
     "Wait until jobs of the queue end, or use another queue."},
    {kBorrowLimit, Code::Conflict, "At the queue's limit of borrowing",
     "With this job, its queue would use more beyond its guarantee than `borrow_limit` allows.",
     "Wait until jobs of the queue end, or use another queue."},
    {kLendLimit, Code::Conflict, "What is free is kept for its owner",
     "Other queues lend no more of their idle guarantees than their `lend_limit` allows.",
     "Wait until jobs of your queue end, or use another queue."},
    {kUserLimit, Code::Conflict, "At the limit of one user",
     "With this job, you would use more in the queue than `user_limit` allows.",
     "Wait until jobs of yours end."},
    {kMaxJobs, Code::Conflict, "As many jobs run as the queue allows",
     "The queue's `max_jobs` is reached.", "Wait until jobs of the queue end."},
    {kUserMaxJobs, Code::Conflict, "As many of your jobs run as the queue allows",
     "The queue's `user_max_jobs` is reached.", "Wait until jobs of yours end."},
    {kGuarantee, Code::Conflict, "Not preemptible, so within the guarantee only",
     "A job that may not be preempted starts only where its queue's guarantee holds it.",
     "Wait, or leave out `preemptible: false`."},
    {kBehindFirst, Code::Conflict, "Behind another job of a strict queue",
     "The queue's policy is fifo: nothing passes the job before.", "Wait, or use another queue."},
    {kWindow, Code::Conflict, "Would run into a reservation",
     "It might not end before the window of a reservation that it may not use.",
     "Give a shorter `time`, so that it ends before."},
    {kTopology, Code::Conflict, "Enough nodes are free, but not together",
     "No domain of the level that `topology` asks for has enough nodes that fit.",
     "Wait, or ask for a wider level."},
    {kVictims, Code::Conflict, "Waits for others to stop",
     "Jobs that were told to stop for it are saving their work.", "It starts when they have."},
    {kNodeUnreachable, Code::Unavailable, "Node not reachable",
     "The controller has no link to the node's agent at present. Its tasks may well be running.",
     "See `muster nodes`; try again when it is back."},
    {kLogGone, Code::Gone, "The log is no longer kept",
     "The node removed it, or is gone and no tail of it was kept here.",
     "Write what must last to shared storage."},
    {kTunnelFailed, Code::Unavailable, "The connection into the task failed",
     "The node's agent could not start the command or lost the task's terminal.",
     "See the message; check that the command exists in the job's image."},
    {kLimitsUnenforced, Code::Invalid, "Limits are not enforced on this node",
     "Its agent could not make control groups, so CPU and memory limits are promises only.",
     "Run the agent as root, or delegate a cgroup to it."},
    {kEndUserError, Code::Conflict, "Ended: the command failed",
     "The job's own command ended with a non-zero exit code or a signal of its own.",
     "Read its log: `muster logs JOB`."},
    {kEndOom, Code::Conflict, "Ended: out of memory",
     "The task used more than its memory limit and the kernel killed it. The peak is shown.",
     "Ask for more `memory`, or use less."},
    {kEndTimeLimit, Code::Conflict, "Ended: time limit", "It ran longer than its `time`.",
     "Ask for more `time`, or save checkpoints and submit again."},
    {kEndDeadline, Code::Conflict, "Ended: deadline", "Its `deadline` came before its end.",
     "Submit it earlier, or move the deadline."},
    {kEndLogRule, Code::Conflict, "Ended: a log rule matched",
     "A line of its log matched a rule in `log_rules` that says fail.",
     "Read the line in the message."},
    {kEndImage, Code::Conflict, "Ended: the image could not be had",
     "The pull or unpacking of the image failed or took too long. An image that its registry does "
     "not know, or not for this node, ends the job at once; any other is asked for ten times, with "
     "growing pauses.",
     "Check the name of the image and the registry's rights."},
    {kEndLaunch, Code::Conflict, "Ended: the node could not start it",
     "The fault is the node's; the job is tried again elsewhere and loses no restart.",
     "See `muster nodes` and the agent's log."},
    {kEndNodeLost, Code::Conflict, "Ended: node lost",
     "The node fell silent and was fenced. The job goes on elsewhere from its newest complete "
     "checkpoint; it loses no restart.",
     "See `muster events`."},
    {kEndDeviceFault, Code::Conflict, "Ended: device fault",
     "A device failed. The job goes on elsewhere and loses no restart.", "See `muster nodes`."},
    {kEndPreempted, Code::Conflict, "Ended: preempted",
     "A job with a better right to the devices needed them; this one starts again later and "
     "loses no restart.",
     "Save checkpoints, so that little is lost."},
    {kEndRequeued, Code::Conflict, "Ended: requeued",
     "Its owner or an administrator put it back into the queue.", "Wait for its next start."},
    {kEndCancelled, Code::Conflict, "Ended: cancelled",
     "Its owner or an administrator cancelled it, or a job that it needed failed.",
     "See who did with `muster events`."},
    {kEndFenced, Code::Conflict, "Ended: cut off",
     "The agent could reach neither a controller nor its peers for the fence time, so it stopped "
     "its part of the gang, that it might not run twice.",
     "Check the node's network."},
    {kEndPeer, Code::Conflict, "Ended: another task of the gang ended",
     "A gang runs whole or not at all; the first failure is the one that matters.",
     "See the rank that ended first: `muster status JOB`."},
    {kEndVanished, Code::Conflict, "Ended: the task vanished",
     "The agent no longer has it: the node was restarted or lost its state.",
     "The job is tried again; see `muster events`."},
    {kEndResized, Code::Conflict, "Stopped to go on with another number of nodes",
     "An elastic job grew or shrank. It goes on from its newest checkpoint, and no restart of its "
     "own was used up.",
     "Nothing is to be done."},
    {kInternal, Code::Internal, "Internal error", "A bug in Muster. Nothing acknowledged is lost.",
     "Report it with the request_id and the controller's log."},
    {kDiskFull, Code::NoSpace, "The controller's disk is nearly full",
     "New work is refused so that running jobs can still end and be cancelled.",
     "Make room in the controller's state directory; it goes on by itself."},
    {kNotReady, Code::Unavailable, "The controller is not ready",
     "It starts, hands over to another, or its store does not keep up.",
     "Try again after the time in the Retry-After header; `muster` does so by itself."},
    {kCorrupt, Code::Corrupt, "Stored data is damaged",
     "What was read back is not what was written.", "Check the disk; see the controller's log."},
    {kUnreachable, Code::Unavailable, "Controller not reachable",
     "Nothing answers at the address in use.",
     "`muster doctor` shows which address is used, and why. Start one with `muster up`."},
    {kNotTrusted, Code::Denied, "The controller's certificate is not the expected one",
     "Its chain does not lead to the certificate authority that was pinned at login.",
     "Check the address; `muster login` again if the controller was set up anew."},
    {kBadAnswer, Code::Internal, "The answer is not understood",
     "What answered is no Muster controller, or a much newer or older one.",
     "Check the address with `muster config view`; compare `muster version`."},
    {kBadConfig, Code::Invalid, "Configuration not valid",
     "A configuration file or variable has an unknown key or a value that is not understood.",
     "`muster config view --origin` shows where each value came from."},
};

}  // namespace

std::span<const ErrorCode> error_codes() {
    return kTable;
}

const ErrorCode* find_error_code(int number) {
    const auto* at = std::ranges::lower_bound(kTable, number, {}, &ErrorCode::number);
    return at != std::end(kTable) && at->number == number ? at : nullptr;
}

int parse_error_number(std::string_view text) {
    if (!text.empty() && (text.front() == 'E' || text.front() == 'e')) text.remove_prefix(1);
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool whole = error == std::errc{} && end == text.data() + text.size();
    return whole && text.size() == 4 && number > 0 ? number : 0;
}

std::string error_name(int number) {
    return "E" + std::to_string(number);
}

Error numbered(int number, std::string message, std::string cause, std::string fix) {
    const ErrorCode* entry = find_error_code(number);
    MUSTER_REQUIRE(entry != nullptr);
    if (fix.empty()) fix = entry->fix;
    return Error{.code = entry->code,
                 .message = std::move(message),
                 .cause = std::move(cause),
                 .fix = std::move(fix),
                 .number = number};
}

int number_of(const Error& error) {
    if (error.number != 0) return error.number;
    switch (error.code) {
        case Code::Invalid: return kBadParameter;
        case Code::Unauthenticated: return kNoCredentials;
        case Code::Denied: return kAdminOnly;
        case Code::NotFound: return kNoRoute;
        case Code::Conflict: return kJobState;
        case Code::Precondition: return kChanged;
        case Code::Gone: return kCompacted;
        case Code::TooLarge: return kBodyTooLarge;
        case Code::Exhausted: return kRateLimit;
        case Code::Unavailable: return kNotReady;
        case Code::NoSpace: return kDiskFull;
        case Code::Corrupt: return kCorrupt;
        case Code::Internal: break;
    }
    return kInternal;
}

std::string explain(const ErrorCode& entry) {
    std::string out = error_name(entry.number) + ": ";
    out.append(entry.title).append("\n\n").append(entry.meaning);
    out.append("\n\nWhat to do: ").append(entry.fix).append("\n");
    return out;
}

std::string errors_page() {
    std::string out =
        "# Errors\n\nGenerated from src/base/error_codes.cc. Every error that Muster tells has one "
        "of these codes; `muster explain CODE` prints the same.\n";
    int thousand = 0;
    for (const ErrorCode& entry : kTable) {
        if (entry.number / 1000 != thousand) {
            thousand = entry.number / 1000;
            constexpr std::string_view kHeads[] = {"",
                                                   "E1xxx: job files and requests",
                                                   "E2xxx: who may do what",
                                                   "E3xxx: against the present state",
                                                   "E4xxx: why a job does not start",
                                                   "E5xxx: nodes and tasks",
                                                   "",
                                                   "",
                                                   "",
                                                   "E9xxx: the controller"};
            out.append("\n## ").append(kHeads[thousand]).append("\n");
        }
        out.append("\n### ").append(error_name(entry.number)).append("\n\n**");
        out.append(entry.title).append("**. ").append(entry.meaning);
        out.append("\n\n*What to do:* ").append(entry.fix).append("\n");
    }
    return out;
}

}  // namespace muster
