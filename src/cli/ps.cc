// muster ps: jobs, readable in 80 columns.
#include "base/text.h"
#include "cli/format.h"
#include "cli/verbs.h"

namespace muster::cli::verbs {
namespace {

using Values = std::span<const Json>;

CellText state_cell(Values v, const Look&) {
    std::string room;
    return job_state(v[0].view(room), v[1].truth());
}

CellText gpus_cell(Values v, const Look&) {
    const std::int64_t count = v[0].integer();
    return {count == 0 ? "-" : std::to_string(count)};
}

/// How long it has run; before its first start, how long it has waited.
CellText time_cell(Values v, const Look& look) {
    std::string room;
    const std::string_view state = v[2].view(room);
    const bool waits = state == "pending" || state == "starting";
    const bool runs = !waits && !has_ended(state);
    if (v[0].integer() > 0 || runs)
        return {length_text(v[0].integer() + (runs ? look.age.ms : 0)), Tone::Plain};
    return {length_text(v[1].integer() + (waits ? look.age.ms : 0)), Tone::Dim};
}

/// Where it runs and how far it is, or why it does not.
CellText place_cell(Values v, const Look&) {
    std::string out;
    if (v[3].view(out) == "failed" && !v[2].empty()) return {v[2].text(), Tone::Bad};
    out.clear();
    if (const Json fraction = v[1].path("fraction"); fraction.is_number())
        out = std::to_string(static_cast<int>(fraction.number() * 100)) + "% ";
    std::vector<std::string> names;
    for (Json name = v[0].first(); name.exists(); name = name.next()) names.push_back(name.text());
    if (!names.empty()) return {out + host_list(std::move(names))};
    return {v[2].text(), Tone::Dim};
}

CellText submitted_cell(Values v, const Look& look) {
    return {clock_text(moment_of(v[0]), look.now)};
}

std::string joined(const std::vector<std::string>& values) {
    return join(values, ",");
}

}  // namespace

std::vector<Column> job_columns() {
    return {
        {.head = "JOB", .fields = {"id"}},
        {.head = "NAME", .fields = {"name"}, .flexible = true},
        {.head = "USER", .fields = {"user"}, .flexible = true},
        {.head = "QUEUE", .fields = {"queue"}, .wide = true},
        {.head = "STATE", .fields = {"state", "held"}, .cell = state_cell},
        {.head = "PRI", .fields = {"priority"}, .right = true, .wide = true},
        {.head = "NODES", .fields = {"nodes"}, .right = true},
        {.head = "GPUS", .fields = {"gpus"}, .cell = gpus_cell, .right = true},
        {.head = "TIME",
         .fields = {"run_ms", "wait_ms", "state"},
         .cell = time_cell,
         .right = true},
        {.head = "ATTEMPT", .fields = {"attempt"}, .right = true, .wide = true},
        {.head = "RESTARTS", .fields = {"restarts"}, .right = true, .wide = true},
        {.head = "FAULTS", .fields = {"faults"}, .right = true, .wide = true},
        {.head = "SUBMITTED", .fields = {"submitted"}, .cell = submitted_cell, .wide = true},
        {.head = "WHERE/WHY",
         .fields = {"node_names", "progress", "reason", "state"},
         .cell = place_cell,
         .flexible = true},
    };
}

int ps(App& app, const Invocation& invocation) {
    Listing listing{.path = "/v1/jobs",
                    .columns = job_columns(),
                    .none = invocation.has("all")
                                ? "no jobs; `muster run -- COMMAND` submits one"
                                : "no live jobs; `muster ps --all` shows ended ones",
                    .has_fields = true,
                    .has_rows = true,
                    .paged = true,
                    .newest_first = true};
    const auto pass = [&](std::string_view flag, std::string_view name) {
        const std::vector<std::string> values = invocation.values(flag);
        if (!values.empty()) listing.query.emplace_back(name, joined(values));
    };
    pass("state", "state");
    pass("user", "user");
    pass("queue", "queue");
    pass("name", "name");
    pass("node", "node");
    pass("array", "array");
    pass("since", "since");
    for (const std::string& label : invocation.values("label"))
        listing.query.emplace_back("label", label);
    if (invocation.has("mine")) listing.query.emplace_back("user", "me");
    if (invocation.has("all") || invocation.has("since")) listing.query.emplace_back("all", "1");
    if (!invocation.arguments.empty()) {
        listing.query.emplace_back("id", joined(invocation.arguments));
        listing.none = "no such job; `muster ps --all` shows ended ones too";
    } else if (!listing.query.empty()) {
        listing.none = "no jobs match";
    }
    return show_list(app, invocation, listing);
}

}  // namespace muster::cli::verbs
