// muster run: a job file, flags or a command to the controller; then, if asked, to its end.
#include <algorithm>

#include <unistd.h>

#include "base/error_codes.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/follow.h"
#include "cli/format.h"
#include "cli/job_source.h"
#include "cli/job_view.h"
#include "cli/session_verbs.h"
#include "cli/verbs.h"
#include "cli/width.h"
#include "spec/fields.h"
#include "spec/parse.h"
#include "spec/problem.h"
#include "spec/render.h"

namespace muster::cli::verbs {
namespace {

/// The field that a flag of the table sets; "" for the verb's own flags.
std::string field_of(std::string_view flag) {
    for (const spec::Field& field : spec::job_fields())
        for (const std::string_view name : split(field.flags, ','))
            if (name.substr(2) == flag) return std::string(field.name);
    return "";
}

std::string folder_of(const std::string& path, const std::string& here) {
    const std::string whole = path.starts_with('/') ? path : here + "/" + path;
    return whole.substr(0, std::max<std::size_t>(whole.rfind('/'), 1));
}

struct Source {
    std::string text;
    std::vector<spec::FlagText> flags;
    spec::ParseOptions options;
};

Result<Source> source_of(App& app, const Invocation& invocation, const std::string& file) {
    Source source;
    const std::string here = app.world().directory;
    source.options.now = app.now();
    source.options.base_dir = here;
    source.options.flag_dir = here;
    source.options.default_workdir = here;
    if (!file.empty()) {
        auto text = spec::read_job_file(file);
        if (!text) {
            Error error = text.error();
            if (error.number == 0 && error.code == Code::NotFound)
                error.number = errors::kJobUnreadable;
            if (!invocation.has_rest && file.find('.') == std::string::npos && error.fix.empty())
                error.fix = "a command to run stands after --: `muster run -- " + file + " …`";
            return error;
        }
        source.text = *std::move(text);
        const bool program = source.text.starts_with(
            "\x7f"
            "ELF");
        if (program || (source.text.starts_with("#!") && !file.ends_with(".yaml")))
            return numbered(
                errors::kJobUnsupported,
                file + " is a " + (program ? "program" : "script") + ", not a job file", "",
                "`muster run -- " + std::string(file.find('/') != std::string::npos ? "" : "./") +
                    file + "` runs it as a command");
        source.options.file = file == "-" ? "stdin" : file;
        if (file != "-") source.options.base_dir = folder_of(file, here);
    }
    for (const auto& [name, value] : invocation.flags) {
        const std::string field = field_of(name);
        if (field.empty()) continue;
        const spec::Field* known = spec::find_field(spec::job_fields(), field);
        source.flags.push_back({field, known->metavar.empty() ? "true" : value});
    }
    for (const RunDefault& fallback : app.config().run_defaults())
        source.options.defaults.push_back({fallback.field, fallback.text});
    return source;
}

int dry_run(App& app, Client& client, const OutputForm& form, const std::string& body) {
    const auto answer = client.call({.method = "POST",
                                     .target = "/v1/jobs?dry_run=1",
                                     .headers = {{"Idempotency-Key", fresh_key()}},
                                     .body = body});
    if (!answer) return app.fail(answer.error());
    const auto document = JsonDocument::parse(answer->body);
    if (!document) return app.fail(document.error());
    const Json result = document->root();
    const bool could = result["could_run"].truth();
    if (!form.is_table()) {
        show_object(app, form, result, {}, "valid");
        return could ? exit_codes::kOk : exit_codes::kNoPlace;
    }
    app.out().write(result["yaml"].text());
    app.out().flush();
    for (Json w = result["warnings"].first(); w.exists(); w = w.next())
        app.note("warning: " + w.text());
    const Json why = result["why"];
    if (could) {
        const bool now = result["starts_now"].truth();
        app.note(paint(now ? "would start now" : "would wait", now ? Tone::Good : Tone::Warn,
                       app.err_color()) +
                 (why["text"].empty() ? "" : ": " + printable(why["text"].text())));
        return exit_codes::kOk;
    }
    std::string cause = why["text"].text();
    constexpr std::string_view kAgain = "can never start here: ";
    if (cause.starts_with(kAgain)) cause.erase(0, kAgain.size());
    return app.fail(
        numbered(errors::kNeverFits, "this job can never start here", cause, why["fix"].text()));
}

/// A single word in quotes that no program is called by: "sleep 1; echo done".
bool is_shell_line(const std::string& word) {
    return word.find_first_of(" \t\n;|&<>$`") != std::string::npos &&
           ::access(word.c_str(), F_OK) != 0;
}

/// Nobody should find out next morning that a job could not start here.
void warn_if_never(App& app, Client& client, const std::string& id) {
    const auto why = client.get(target("/v1/jobs/", id, "/why"));
    if (!why || why->root()["reason"]["code"].text() != "never-fits") return;
    app.note(paint("warning: it ", Tone::Warn, app.err_color()) +
             printable(why->root()["reason"]["text"].text()));
}

int wait_and_attach(App& app, Client& client, const std::string& id) {
    const int interrupt = app.catch_interrupts();
    for (;;) {
        const auto answer = client.get(target("/v1/jobs/", id, "/wait?for=running&timeout=20s"));
        if (interrupted_within(interrupt, {0})) {
            app.note("job " + id + " goes on; `muster attach " + id + "` joins it");
            return interrupt_code(interrupt);
        }
        if (!answer) {
            if (is_away(answer.error())) continue;
            return app.fail(answer.error()), exit_codes::kMusterFailed;
        }
        if (answer->root()["ended"].truth()) {
            const JobView job = job_view(answer->root()["job"]);
            app.note("job " + id + " " + end_text(job));
            return job_exit_code(job);
        }
        if (answer->root()["reached"].truth()) return attach_to(app, id, 0, true);
    }
}

int after_submit(App& app, Client& client, const Invocation& invocation, const std::string& id,
                 bool pty) {
    if (pty && !invocation.has("detach")) return wait_and_attach(app, client, id);
    if (invocation.has("follow")) return follow_job(app, {.job = id, .exists = true});
    if (invocation.has("wait"))
        return follow_job(app, {.job = id,
                                .logs = false,
                                .progress = false,
                                .timeline = false,
                                .quiet = invocation.has("quiet"),
                                .exists = true});
    return exit_codes::kOk;
}

}  // namespace
}  // namespace muster::cli::verbs

namespace muster::cli {

int fail_with_problems(App& app, const spec::Problems& problems, const std::string& what,
                       int number, const std::string& fix) {
    const bool color = app.err_color();
    app.out().flush();
    app.err().write(spec::render(problems));
    const auto count = static_cast<std::int64_t>(problems.size());
    app.err().write(paint("error:", Tone::Bad, color) + " " + what + " is not valid: " +
                    counted(count, "problem") + "\n  " + paint("fix:", Tone::Dim, color) + " " +
                    fix + "\n  " + paint("code:", Tone::Dim, color) + " " + error_name(number) +
                    " (muster explain " + error_name(number) + ")\n");
    app.err().flush();
    return exit_codes::kRejected;
}

std::variant<model::JobSpec, int> read_job(App& app, const Invocation& invocation,
                                           const std::string& file) {
    auto source = verbs::source_of(app, invocation, file);
    if (!source) return app.fail(source.error());
    std::vector<std::string> command = invocation.rest;
    const bool has_run = std::ranges::any_of(
        source->flags, [](const spec::FlagText& flag) { return flag.field == "run"; });
    if (command.size() == 1 && !has_run && verbs::is_shell_line(command.front())) {
        source->flags.push_back({"run", command.front()});
        command.clear();
    }
    auto parsed = spec::parse_job(source->text, source->flags, command, source->options);
    if (const auto* problems = std::get_if<spec::Problems>(&parsed))
        return fail_with_problems(app, *problems, "the job", errors::kJobInvalid,
                                  "see docs/job-reference.md, or `muster run --help`");
    return std::move(std::get<model::JobSpec>(parsed));
}

}  // namespace muster::cli

namespace muster::cli::verbs {

int run(App& app, const Invocation& invocation) {
    const bool stays = invocation.has("wait") || invocation.has("follow") || invocation.has("pty");
    const auto form = output_form(app, invocation);
    if (!form) return app.fail(form.error()), exit_codes::kUsage;
    // Whoever waits for the job's own code must be able to tell it from ours.
    const auto failed = [&](int code) { return stays ? exit_codes::kMusterFailed : code; };
    const auto read = read_job(app, invocation, invocation.argument(0));
    if (const int* code = std::get_if<int>(&read)) return failed(*code);
    const auto& job = std::get<model::JobSpec>(read);
    const std::string body = spec::to_json(job);
    const auto client = app.client();
    if (!client) return failed(app.fail(client.error()));
    if (invocation.has("dry-run")) return dry_run(app, **client, *form, body);
    const std::string key = invocation.value_or("idempotency-key", fresh_key());
    const auto reply = (*client)->call({.method = "POST",
                                        .target = "/v1/jobs",
                                        .headers = {{"Idempotency-Key", key}},
                                        .body = body});
    if (!reply) return failed(app.fail(reply.error()));
    const auto answer = JsonDocument::parse(reply->body);
    if (!answer) return app.fail(answer.error());
    const Json made = answer->root();
    for (Json w = made["warnings"].first(); w.exists(); w = w.next())
        app.note("warning: " + w.text());
    const std::string id = made["id"].text();
    if (!form->is_table()) {
        show_object(app, *form, made, {}, "id");
    } else if (stays) {
        app.note("job " + id + " " + printable(made["name"].text()) + " submitted");
    } else {
        app.out().write("job " + id + " " + printable(made["name"].text()) + " submitted\n");
        if (app.world().err_tty) {
            app.out().flush();
            app.note("follow it with `muster logs -f " + id + "`, see `muster status " + id + "`");
            warn_if_never(app, **client, id);
        }
    }
    app.out().flush();
    return after_submit(app, **client, invocation, id, job.pty);
}

}  // namespace muster::cli::verbs
