// The table itself. Order here is the order of help, docs and man page.
#include "base/text.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "spec/fields.h"

namespace muster::cli {
namespace {

std::vector<Flag> joined(std::vector<Flag> first, const std::vector<Flag>& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

/// Where completion finds values of a field.
std::string values_of_field(std::string_view name) {
    if (name == "queue") return "@queues";
    if (name == "gpus") return "@kinds";
    if (name == "depends") return "@jobs";
    if (name == "workdir" || name == "mounts" || name == "secrets") return "@files";
    return "";
}

std::vector<Flag> spec_flags() {
    std::vector<Flag> flags;
    for (const spec::Field& field : spec::job_fields()) {
        if (field.flags.empty()) continue;
        std::string help(field.help);
        if (help.ends_with('.')) help.pop_back();
        flags.push_back({std::string(field.flags), std::string(field.metavar), std::move(help),
                         field.repeatable, values_of_field(field.name)});
    }
    return flags;
}

std::vector<Flag> filters() {
    return {{"--user", "USER", "jobs of this user; 'me' is you", false, "@users"},
            {"--queue", "QUEUE", "jobs of this queue", false, "@queues"},
            {"--state", "STATE", "jobs in these states: pending, running, …, active, ended"},
            {"--name", "NAME", "jobs of this name; * stands for anything"},
            {"--label", "KEY=VALUE", "jobs with this label", true}};
}

Flag dry_run() {
    return {"--dry-run", "", "only tell what would be done"};
}
Flag yes() {
    return {"-y,--yes", "", "do not ask"};
}
Flag reason() {
    return {"--reason", "TEXT", "kept with the change, for others to read"};
}

Command run_command() {
    std::vector<Flag> own = {
        {"--dry-run", "",
         "check it, print its normal form, and tell whether it could ever run here"},
        {"--wait", "", "stay until the job has ended, and exit as it did"},
        {"-f,--follow", "", "as --wait, with its output, a live progress bar and a timeline"},
        {"--detach", "", "with --pty: submit only; `muster attach` joins it later"},
        {"--idempotency-key", "KEY", "the key to submit under; the same key never submits twice"},
        {"-q,--quiet", "", "print the job's id only"}};
    return {
        .name = "run",
        .aliases = {"submit"},
        .summary = "Submit a job: a file, a command, or both with flags on top",
        .details =
            "FILE is YAML or JSON ('-' is standard input); see docs/job-reference.md. Every field "
            "is also a flag, and flags win over the file. Words after -- are the command; "
            "one in quotes with blanks in it is a line for the shell.\nWhat "
            "is acknowledged is durable; a submit that is cut off is repeated without submitting "
            "twice.",
        .arguments = {{"FILE", true, false, "@files"}},
        .rest = "COMMAND",
        .flags = joined(joined(std::move(own), output_flags()), spec_flags()),
        .examples = {{"muster run -- python3 train.py", "one node, the host's file system"},
                     {"muster run --nodes 4 --gpus h100:8 -- torchrun train.py", "a gang"},
                     {"muster run job.yaml --follow", "submit and watch"},
                     {"muster run job.yaml --dry-run", "check only"},
                     {"muster run --gpus 1 --pty -- bash", "a shell on a GPU"}},
        .run = verbs::run};
}

Command plan_command() {
    return {.name = "plan",
            .summary = "Tell whether a job would start, where, when, and what would stop for it",
            .details =
                "Nothing is submitted. Takes what `muster run` takes. Exits with 8 when it "
                "can never start here.",
            .arguments = {{"FILE", true, false, "@files"}},
            .rest = "COMMAND",
            .flags = joined(
                joined({{"-f,--file", "FILE", "the job's file", false, "@files"}}, output_flags()),
                spec_flags()),
            .examples = {{"muster plan -f job.yaml", ""},
                         {"muster plan --nodes 4 --gpus h100:8 -- torchrun train.py", ""}},
            .run = verbs::plan};
}

Command simulate_command() {
    return {
        .name = "simulate",
        .group = Group::Cluster,
        .summary = "Play a trace of jobs on a cluster of paper, and report how it went",
        .details =
            "The production scheduler in virtual time: nothing is changed, and no controller "
            "asked. "
            "FILE is what sacct -P printed, a workload in the Standard Workload Format, what "
            "`muster ps --all -o ndjson` printed, a public trace or a table of your own; "
            "docs/simulator.md has the formats and the cluster file, docs/metrics.md what each "
            "number means. Several policies or seeds are compared. Ctrl-C prints what there "
            "is.\nWith "
            "--from-live the running cluster is copied as it is now, with the jobs that run and "
            "wait; --add and --queues say what would be changed, and both are shown.",
        .flags =
            {{"--trace", "FILE", "the jobs", false, "@files"},
             {"--format", "FORMAT", "of the trace; 'auto' tells it by its first line", false,
              "auto|sacct|swf|history|philly|openb|muri|pollux|gavel|csv"},
             {"--cluster", "SPEC",
              "352x8:v100, 128x64c (CPUs only), several with commas, or a file", false, "@files"},
             {"--queues", "FILE", "queues and rules, as of `muster queues apply`", false, "@files"},
             {"--policy", "NAME",
              "muster (the queues as they are), or one policy in all queues: priority, fifo, "
              "fair, shortest, las; repeat it to compare",
              true, "muster|priority|fifo|fair|shortest|las"},
             {"--from-live", "", "start from a copy of the running cluster"},
             {"--add", "SPEC", "what if there were these nodes too (with --from-live)", true},
             {"--assume", "DURATION",
              "a waiting job takes so long if nobody told (1h; with --from-live)"},
             {"--seed", "N", "of failures (1)"},
             {"--seeds", "A..B", "one run with each, reported with their spread"},
             {"--parallel", "N", "so many runs at once (1)"},
             {"--compress", "F", "arrivals come F times as fast (1)"},
             {"--jobs", "N", "only the first N jobs"},
             {"--until", "DURATION", "stop so long after the first arrival"},
             {"--know-durations", "", "the scheduler is told how long jobs take: an oracle"},
             {"--processors", "WHAT", "what a processor of a workload is: cpus (default) or gpus",
              false, "cpus|gpus"},
             {"--profiles", "DIR", "measured applications, for a trace of Pollux", false, "@files"},
             {"--throughputs", "FILE", "measured speeds by kind, for a trace of Gavel", false,
              "@files"},
             {"--failures", "RATE", "nodes fail so often in 1,000 node-days (3.8)"},
             {"--failure-law", "LAW", "exponential (default) or weibull (shape 0.7)", false,
              "exponential|weibull"},
             {"--repair", "DURATION", "mean time to repair a node (1h)"},
             {"--checkpoint", "INTERVAL", "jobs save so often, or 'auto'"},
             {"--checkpoint-stall", "DURATION", "each save stops the job for so long"},
             {"--restart-cost", "DURATION",
              "a start after the first makes no progress for so long"},
             {"--launch", "DURATION", "from the order to start to the first step"},
             {"--plan-every", "DURATION",
              "plan at most so often: faster, and a little later (0: after every change)"},
             {"--strict", "", "refuse a trace with a bad row"},
             {"--report", "FILE", "write a page with plots that needs nothing else", false,
              "@files"},
             {"--json", "FILE", "write everything as JSON; '-' prints it in place of the table",
              false, "@files"}},
        .examples =
            {{"muster simulate --trace sacct.txt --cluster 64x8:h100 --report week.html", ""},
             {"muster simulate --from-live --add 4x8:h100", "what if we had four nodes more"},
             {"muster simulate --trace t.csv --cluster site.yaml --policy muster --policy fifo",
              "compared"},
             {"muster simulate --trace t.csv --cluster 64x8:h100 --failures 6.5 --seeds 1..10",
              "ten seeds"}},
        .tolerant = true,
        .run = verbs::simulate};
}

Command tune_command() {
    return {
        .name = "tune",
        .group = Group::Cluster,
        .summary = "Search settings by simulation on your own history; changes nothing",
        .details =
            "Takes the running cluster's nodes, queues and rules and the jobs that ended, or a "
            "trace and a cluster of paper as `muster simulate` does. Candidates are compared on "
            "the earlier jobs by successive halving; the best is judged on the later ones, which "
            "the search never saw, and told as a diff with its expected gain and the spread of "
            "that.",
        .flags = {{"--history", "DURATION", "jobs that ended within it (14d)"},
                  {"--goal", "GOAL",
                   "jct (mean job completion time, the default), utilisation or fairness", false,
                   "jct|utilisation|fairness"},
                  {"--budget", "DURATION", "at most so long (5m)"},
                  {"--parallel", "N", "so many runs at once (1)"},
                  {"--seed", "N", "of the candidates (1)"},
                  {"--write", "FILE", "the queues and rules found, for `muster queues apply`",
                   false, "@files"},
                  {"--trace", "FILE", "jobs in place of the history; needs --cluster", false,
                   "@files"},
                  {"--format", "FORMAT", "of the trace", false,
                   "auto|sacct|swf|history|philly|openb|muri|gavel|csv"},
                  {"--cluster", "SPEC", "as of `muster simulate`", false, "@files"},
                  {"--queues", "FILE", "queues and rules that stand now", false, "@files"},
                  {"--compress", "F", "arrivals come F times as fast (1)"},
                  {"--strict", "", "refuse a trace with a bad row"}},
        .examples = {{"muster tune --history 14d --goal jct", ""},
                     {"muster tune --trace sacct.txt --cluster 64x8:h100 --goal fairness", ""}},
        .tolerant = true,
        .run = verbs::tune};
}

std::vector<Command> looking() {
    const Argument jobs{"JOB", false, true, "@jobs"};
    return {
        {.name = "ps",
         .summary = "List jobs",
         .details = "Shows live jobs; ended ones with --all. TIME is how long it has run, or, "
                    "before its first start, waited. WHERE/WHY is its progress and nodes, or why "
                    "it waits.",
         .arguments = {{"JOB", true, true, "@jobs"}},
         .flags =
             joined(joined(filters(),
                           {{"-a,--all", "", "ended jobs too"},
                            {"--mine", "", "your jobs"},
                            {"--since", "WHEN", "ended jobs since a time, or within 2d"},
                            {"--node", "NODE", "jobs with a task on this node", false, "@nodes"},
                            {"--array", "JOB", "elements of this array", false, "@jobs"}}),
                    list_flags(true)),
         .examples = {{"muster ps", ""},
                      {"muster ps --mine -w", "watch your own"},
                      {"muster ps -o custom=id,name,progress.step", "chosen fields"},
                      {"muster cancel $(muster ps -q --name 'sweep*')", "ids for another command"}},
         .run = verbs::ps},
        {.name = "status",
         .summary = "Show the cluster, or a job with its timeline, ranks and progress",
         .arguments = {{"JOB", true, true, "@jobs"}},
         .flags = joined(output_flags(),
                         {{"-w,--watch", "", "a live view until the job has ended"},
                          {"--topology", "", "where its ranks are, as a tree of the topology"}}),
         .examples = {{"muster status", "the cluster"},
                      {"muster status 12", ""},
                      {"muster status 12 -w", "live, without its output"},
                      {"muster status 12 -o yaml", "everything, with the specification"}},
         .run = verbs::status},
        {.name = "why",
         .summary = "Tell why a job waits, with numbers",
         .details =
             "POSITION is in the order of its queue; a share is decayed and present use over the "
             "weight, as a part of the cluster. What it waits for, who has that and until when, "
             "the time it is expected to start, and the smallest changes that would start it "
             "sooner.\nWith --if nothing is changed: it tells what would be.",
         .arguments = {jobs},
         .flags = joined({{"--if", "FIELD=VALUE",
                           "what if it asked for nodes=2, gpus=h100:4, time=90m, queue=NAME or "
                           "topology.required=none",
                           true}},
                         output_flags()),
         .examples = {{"muster why 12", ""},
                      {"muster why 12 --if nodes=2", "would it start with two nodes?"}},
         .run = verbs::why},
        {.name = "logs",
         .summary = "Print the output of a job's tasks",
         .details = "All ranks merged, each line with its rank before it. The log lives on the "
                    "node; of a dead node the last words are kept.",
         .arguments = {{"JOB", false, false, "@jobs"}},
         .flags = {{"-f,--follow", "", "go on until the tasks end"},
                   {"--rank", "RANK", "one rank, or 'all' (default)"},
                   {"--local-rank", "N", "one process of the node"},
                   {"--attempt", "N", "an earlier attempt"},
                   {"--since", "WHEN", "written since a time, or within 10m"},
                   {"--tail", "N", "only the last N lines of each rank"},
                   {"--no-prefix", "", "no rank before each line"}},
         .examples = {{"muster logs -f 12", ""}, {"muster logs 12 --rank 3 --tail 50", ""}},
         .run = verbs::logs},
        {.name = "events",
         .summary = "Show what happened; with -f, what happens",
         .flags = joined({{"-f,--follow", "", "go on"},
                          {"-w,--watch", "", "the same"},
                          {"--job", "JOB", "of one job", false, "@jobs"},
                          {"--node", "NODE", "of one node", false, "@nodes"},
                          {"--type", "TYPE", "of these types; job.* is a family"},
                          {"--after", "N", "after this sequence number"},
                          {"--tail", "N", "the newest N (50; 10 with -f)"}},
                         output_flags()),
         .examples = {{"muster events -f", ""}, {"muster events --job 12", ""}},
         .run = verbs::events},
    };
}

std::vector<Command> acting() {
    const Argument job{"JOB", false, false, "@jobs"};
    const Argument some{"JOB", true, true, "@jobs"};
    const auto act = [&](std::string name, std::string summary, bool asks,
                         int (*run)(App&, const Invocation&)) {
        std::vector<Flag> flags = joined(filters(), {reason(), dry_run()});
        if (asks) flags.push_back(yes());
        return Command{.name = std::move(name),
                       .summary = std::move(summary),
                       .arguments = {some},
                       .flags = joined(std::move(flags), output_flags()),
                       .run = run};
    };
    std::vector<Command> out = {
        {.name = "attach",
         .summary = "Join a running job's own terminal or output; Ctrl-P Ctrl-Q leaves",
         .arguments = {job},
         .flags = {{"--rank", "RANK", "the task to join (0)"}},
         .run = verbs::attach},
        {.name = "exec",
         .summary = "Run a command inside a running task, and exit as it did",
         .arguments = {job},
         .rest = "COMMAND",
         .rest_needed = true,
         .flags = {{"--rank", "RANK", "the task to run in (0)"},
                   {"-t,--tty", "", "with a terminal, even when piped"},
                   {"-T,--no-tty", "", "without a terminal"}},
         .examples = {{"muster exec 12 -- nvidia-smi", ""},
                      {"muster exec 12 --rank 3 -- bash", "a shell beside rank 3"}},
         .run = verbs::exec},
        {.name = "wait",
         .summary = "Wait until jobs have ended, and exit as the first that failed",
         .arguments = {{"JOB", false, true, "@jobs"}},
         .flags = {{"--for", "STATE", "ended, started or running", false, "ended|started|running"},
                   {"--timeout", "DURATION", "give up after this long (exit code 7)"},
                   {"-q,--quiet", "", "say nothing"}},
         .examples = {{"muster wait 12 && echo done", ""}, {"muster wait --for running 12", ""}},
         .run = verbs::wait},
    };
    out.push_back(act("cancel", "End jobs", true, verbs::cancel));
    out.back().details = "A running job gets its signal and its grace, and is then killed.";
    out.back().examples = {{"muster cancel 12 13", ""},
                           {"muster cancel --user me --state pending", "asks first"}};
    out.push_back(act("hold", "Keep waiting jobs from starting", false, verbs::hold));
    out.push_back(act("release", "Let held jobs start", false, verbs::release));
    out.push_back(
        act("requeue", "Stop jobs and put them back into the queue", true, verbs::requeue));
    return out;
}

std::vector<Command> cluster() {
    return {
        {.name = "nodes",
         .group = Group::Cluster,
         .summary = "List nodes",
         .flags = joined({{"--state", "STATE", "ready, suspect, lost, unknown, drained, held"},
                          {"--label", "KEY=VALUE", "with this label", true}},
                         list_flags(true)),
         .examples = {{"muster nodes", ""}, {"muster nodes -o wide", ""}},
         .run = verbs::nodes},
        {.name = "gpus",
         .group = Group::Cluster,
         .summary = "Show what devices are free, by kind",
         .arguments = {{"KIND", true, false, "@kinds"}},
         .flags = joined({{"-d,--devices", "", "each device with its node and owner"}},
                         list_flags(false)),
         .examples = {{"muster gpus", "what can I get now?"}, {"muster gpus h100 --devices", ""}},
         .run = verbs::gpus},
        {.name = "queues",
         .group = Group::Cluster,
         .summary = "List queues with what waits and runs in each",
         .flags = list_flags(false),
         .run = verbs::queues},
        {.name = "queues show",
         .group = Group::Cluster,
         .summary = "Show how a queue stands and what would start next in it",
         .details = "With -o yaml, or without QUEUE, as a file that `muster queues apply` takes.",
         .arguments = {{"QUEUE", true, false, "@queues"}},
         .flags = output_flags(),
         .examples = {{"muster queues show research/nlp", ""},
                      {"muster queues show > queues.yaml", "all of them, to edit"}},
         .run = verbs::queues_show},
        {.name = "reserve list",
         .group = Group::Cluster,
         .summary = "List reservations, the next to begin first",
         .flags = list_flags(false),
         .run = verbs::reserve_list},
    };
}

std::vector<Command> queue_admin() {
    return {
        {.name = "queues apply",
         .group = Group::Admin,
         .summary = "Make and change queues and scheduling rules as a file says",
         .details = "All of it or nothing. Queues that the file does not name stay, but with "
                    "--prune; a queue that has jobs is never dropped. See "
                    "docs/queue-reference.md.",
         .flags = joined({{"-f,--file", "FILE", "the file; '-' is standard input", false, "@files"},
                          {"--prune", "", "drop the queues that the file does not name"},
                          dry_run(),
                          yes()},
                         output_flags()),
         .examples = {{"muster queues apply -f queues.yaml --dry-run", "what would change"}},
         .run = verbs::queues_apply},
        {.name = "queues set",
         .group = Group::Admin,
         .summary = "Change settings of a queue",
         .arguments = {{"QUEUE", false, false, "@queues"}, {"KEY=VALUE", false, true}},
         .flags = joined({dry_run()}, output_flags()),
         .examples = {{"muster queues set research/nlp weight=200 limit.gpus=64", ""},
                      {"muster queues set batch limit.gpus=none", "no limit"}},
         .run = verbs::queues_set},
    };
}

std::vector<Command> reserving() {
    return {
        {.name = "reserve",
         .group = Group::Admin,
         .summary = "Keep nodes for some users or queues, or free for maintenance, in a window",
         .details =
             "A reservation of the same name is changed. Times without an offset are on the clock "
             "of --zone (UTC). What recurs keeps its local time over changes of the clock: at a "
             "time that does not exist it comes --gap later or not at all, at one that comes "
             "twice the --twice first or second.",
         .arguments = {{"NAME"}},
         .flags = joined({{"--nodes", "NODES", "these nodes: n1,n[2-4]", false, "@nodes"},
                          {"--count", "N", "so many nodes, those with the least use"},
                          {"--gpus", "KIND[:N]",
                           "with --count: nodes with (N) devices of this kind", false, "@kinds"},
                          {"--users", "USERS", "who may start there: ana,wei", false, "@users"},
                          {"--queues", "QUEUES", "whose jobs may", false, "@queues"},
                          {"--maintenance", "", "nobody may"},
                          {"--start", "WHEN", "2026-12-24T08:00, or now+2h (now)"},
                          {"--end", "WHEN", "when it is over"},
                          {"--for", "DURATION", "how long it is, in place of --end"},
                          {"--every", "day|week", "it comes again", false, "day|week"},
                          {"--zone", "ZONE", "whose clock: Europe/Berlin (UTC)"},
                          {"--gap", "RULE", "skip or later (later)", false, "skip|later"},
                          {"--twice", "RULE", "first or second (first)", false, "first|second"},
                          {"--until", "WHEN", "no window starts after it"},
                          reason()},
                         output_flags()),
         .examples = {{"muster reserve course --count 4 --gpus h100:8 --users ana --start "
                       "2026-12-24T08:00 --for 4h",
                       ""},
                      {"muster reserve firmware --nodes n[1-8] --maintenance --start now+2d "
                       "--for 3h",
                       ""},
                      {"muster reserve night --nodes n1 --queues batch --start 2026-12-01T22:00 "
                       "--for 8h --every day",
                       ""}},
         .run = verbs::reserve},
        {.name = "reserve delete",
         .group = Group::Admin,
         .summary = "Drop reservations",
         .arguments = {{"NAME", false, true, "@reservations"}},
         .flags = {yes()},
         .run = verbs::reserve_delete},
    };
}

std::vector<Command> admin() {
    const Argument some{"NODE", false, true, "@nodes"};
    const auto node = [&](std::string name, std::string summary, std::string details, bool asks,
                          int (*run)(App&, const Invocation&)) {
        std::vector<Flag> flags = {reason(), dry_run()};
        if (asks) flags.push_back(yes());
        return Command{.name = "node " + name,
                       .group = Group::Admin,
                       .summary = std::move(summary),
                       .details = std::move(details),
                       .arguments = {some},
                       .flags = joined(std::move(flags), output_flags()),
                       .run = run};
    };
    return {
        node("drain", "Give nodes nothing new; what runs may end", "", false, verbs::node_drain),
        node("resume", "Take off the holds that keep nodes from new work", "", false,
             verbs::node_resume),
        node("fenced", "Confirm that silent nodes are off, so that their jobs go on elsewhere now",
             "Say this only of a machine that is really off: if its tasks still run, two copies "
             "of a job will.",
             true, verbs::node_fenced),
        node("forget", "Remove nodes that are gone for good", "", true, verbs::node_forget),
        {.name = "token create",
         .group = Group::Admin,
         .summary = "Make a token for a person, or one that lets nodes join",
         .details = "The token is printed on stdout, once.",
         .flags = joined({{"--user", "USER", "whom it speaks for (you)", false, "@users"},
                          {"--admin", "", "an administrator's"},
                          {"--join", "", "a join token, for `musterd agent --join`"},
                          {"--node", "NAME", "a join token for this node name only"},
                          {"--uses", "N", "how many nodes may join with it"},
                          {"--expires", "DURATION", "how long it lasts, or 'never'"},
                          {"-q,--quiet", "", "print the token and nothing else"}},
                         output_flags()),
         .examples = {{"muster token create --user wei --expires 90d", ""},
                      {"muster token create --join --uses 16", "for sixteen new nodes"}},
         .run = verbs::token_create},
        {.name = "token list",
         .group = Group::Admin,
         .summary = "List tokens, without their secrets",
         .flags = list_flags(false),
         .run = verbs::token_list},
        {.name = "token revoke",
         .group = Group::Admin,
         .summary = "Revoke tokens",
         .arguments = {{"ID", false, true, "@tokens"}},
         .run = verbs::token_revoke},
        {.name = "doctor",
         .group = Group::Admin,
         .summary = "Check the way from here to the nodes, with a remedy for each problem",
         .flags = output_flags(),
         .run = verbs::doctor},
        {.name = "up",
         .group = Group::Admin,
         .summary = "Start a controller and an agent on this machine (musterd up)",
         .details = "No configuration and no root needed; the state is kept below your home. All "
                    "flags are musterd's: `muster up --help`.",
         .raw = true,
         .run = verbs::up},
        {.name = "bench",
         .group = Group::Admin,
         .summary = "Measure controller and scheduler on this machine, with a made-up cluster",
         .details =
             "Needs no controller. The planner's figures are in CPU time; those of the whole way "
             "(burst_starts_per_s, gang_starts_per_s, next_plan_durable_p99_ms) in wall time, "
             "with commits on disk in a folder that goes afterwards. bench/README.md tells what "
             "each figure is. Goals are told for the default sizes.",
         .flags = {{"--nodes", "N", "nodes of the cluster, of 8 devices each (10000)"},
                   {"--jobs", "N", "jobs that wait (100000); bursts have a tenth of them"},
                   {"--quick", "", "without the sweep over sizes"},
                   {"--only", "PART", "this part alone", true,
                    "full|burst|gangs|fill|nothing_fits|gang1024|reclaim512|next_plan|growth"},
                   {"--folder", "DIR", "where state is written ($TMPDIR, else /tmp)", false,
                    "@files"},
                   {"--json", "", "one JSON object a figure"},
                   {"--verbose", "", "tell what lies behind the figures"}},
         .examples = {{"muster bench --nodes 10000 --jobs 100000", "some two minutes"},
                      {"muster bench --quick --only burst --only gangs", ""}},
         .tolerant = true,
         .run = verbs::bench},
        {.name = "controller",
         .group = Group::Admin,
         .summary = "musterd controller",
         .hidden = true,
         .raw = true,
         .run = verbs::up},
        {.name = "agent",
         .group = Group::Admin,
         .summary = "musterd agent",
         .hidden = true,
         .raw = true,
         .run = verbs::up},
    };
}

std::vector<Command> client() {
    return {
        {.name = "login",
         .group = Group::Client,
         .summary = "Remember a controller and a token for it",
         .details = "The token is read from MUSTER_TOKEN, from a question, or from standard input; "
                    "it is kept in ~/.config/muster with mode 0600.",
         .arguments = {{"URL"}},
         .flags = {{"--ca-sha256", "HEX", "the SHA-256 of the CA to trust"},
                   {"--ca", "FILE", "the CA certificate to trust", false, "@files"}},
         .examples = {{"muster login https://head:7070 --ca-sha256 9f86d0…", ""}},
         .tolerant = true,
         .run = verbs::login},
        {.name = "config view",
         .group = Group::Client,
         .summary = "Show the settings in use",
         .details = "Later wins: /etc/muster/client.yaml, ~/.config/muster/config.yaml and its "
                    "context, .muster.yaml of the project (defaults for `run`), MUSTER_… "
                    "variables, flags.",
         .flags = joined({{"--origin", "", "and where each comes from"}}, output_flags()),
         .run = verbs::config_view},
        {.name = "config set",
         .group = Group::Client,
         .summary = "Change a setting of yours",
         .arguments = {{"KEY", false, false, "@settings"}, {"VALUE"}},
         .examples = {{"muster config set color never", ""}},
         .run = verbs::config_set},
        {.name = "config path",
         .group = Group::Client,
         .summary = "Print where your settings are kept",
         .tolerant = true,
         .run = verbs::config_path},
        {.name = "completion",
         .group = Group::Client,
         .summary = "Print the completion script of a shell",
         .arguments = {{"SHELL", false, false, "bash|zsh|fish"}},
         .examples = {{"eval \"$(muster completion bash)\"", "in ~/.bashrc"},
                      {"muster completion fish | source", ""}},
         .tolerant = true,
         .run = verbs::completion},
        {.name = "explain",
         .group = Group::Client,
         .summary = "Explain an error code",
         .arguments = {{"CODE", true, true, "@codes"}},
         .examples = {{"muster explain E4002", ""}},
         .tolerant = true,
         .run = verbs::explain},
        {.name = "api",
         .group = Group::Client,
         .summary = "Call the API as it is",
         .details = "Prints the answer's body. The routes are in api/openapi.yaml.",
         .arguments = {{"METHOD", false, false, "GET|POST|PATCH|DELETE"}, {"PATH"}},
         .flags = {{"-d,--data", "BODY", "the body; @FILE reads it, @- from standard input", false,
                    "@files"},
                   {"-H,--header", "NAME:VALUE", "a header of the request", true},
                   {"-i,--include", "", "status and headers too"}},
         .examples = {{"muster api GET /v1/jobs?limit=5", ""},
                      {"muster api GET '/v1/events?watch=1'", "a stream"},
                      {"muster api PATCH /v1/jobs/12 -H 'If-Match: *' -d '{\"priority\":80}'", ""}},
         .run = verbs::api},
        {.name = "version",
         .group = Group::Client,
         .summary = "Print the versions of this program and of the controller",
         .flags = joined({{"--client", "", "of this program only"}}, output_flags()),
         .tolerant = true,
         .run = verbs::version},
        {.name = "__complete",
         .group = Group::Client,
         .summary = "for completion scripts",
         .hidden = true,
         .raw = true,
         .run = verbs::complete},
        {.name = "__manual",
         .group = Group::Client,
         .summary = "docs/cli.md, or with 'man' the man page",
         .hidden = true,
         .raw = true,
         .run = verbs::manual},
    };
}

}  // namespace

const std::vector<Command>& commands() {
    static const std::vector<Command> kAll = [] {
        std::vector<Command> all{run_command(), plan_command(), simulate_command(), tune_command()};
        for (std::vector<Command> part :
             {looking(), acting(), cluster(), queue_admin(), reserving(), admin(), client()})
            for (Command& command : part) all.push_back(std::move(command));
        return all;
    }();
    return kAll;
}

const std::vector<Flag>& global_flags() {
    static const std::vector<Flag> kFlags = {
        {"--server", "URL", "the controller: https://HOST:PORT or unix:PATH"},
        {"--context", "NAME", "a controller that `muster login` remembered", false, "@contexts"},
        {"--color", "WHEN", "auto, always or never", false, "auto|always|never"},
        {"-h,--help", "", "say more"},
    };
    return kFlags;
}

}  // namespace muster::cli
