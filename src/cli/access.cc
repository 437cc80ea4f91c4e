// muster token create|list|revoke, login, version, api, explain, up.
#include <algorithm>
#include <cstring>

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_codes.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/confirm.h"
#include "cli/files.h"
#include "cli/format.h"
#include "cli/verbs.h"

namespace muster::cli::verbs {
namespace {

using Values = std::span<const Json>;

CellText whom_cell(Values v, const Look&) {
    if (!v[0].empty()) return {v[0].text()};
    return {v[1].empty() ? "any node" : "node " + v[1].text()};
}
CellText admin_cell(Values v, const Look&) {
    if (v[1].text() == "join") return {"-", Tone::Dim};
    return {v[0].truth() ? "admin" : "user", v[0].truth() ? Tone::Warn : Tone::Plain};
}
CellText expires_cell(Values v, const Look& look) {
    if (v[1].truth()) return {"expired", Tone::Bad};
    const Time at = moment_of(v[0]);
    if (at.ms == 0) return {"never"};
    return {"in " + ago(look.now, at)};
}
CellText uses_cell(Values v, const Look&) {
    return {v[0].empty() ? "any" : v[0].text()};
}
CellText made_cell(Values v, const Look& look) {
    return {ago(moment_of(v[0]), look.now) + " ago"};
}

std::vector<Column> token_columns() {
    return {{.head = "ID", .fields = {"id"}},
            {.head = "KIND", .fields = {"kind"}},
            {.head = "FOR", .fields = {"user", "node"}, .cell = whom_cell},
            {.head = "ROLE", .fields = {"admin", "kind"}, .cell = admin_cell},
            {.head = "USES-LEFT", .fields = {"uses_left"}, .cell = uses_cell, .right = true},
            {.head = "EXPIRES", .fields = {"expires", "expired"}, .cell = expires_cell},
            {.head = "MADE", .fields = {"created"}, .cell = made_cell},
            {.head = "BY", .fields = {"created_by"}}};
}

/// Beside this program, else wherever PATH has it.
std::string sibling(const World& world, const std::string& name) {
    const std::size_t slash = world.program.rfind('/');
    if (slash != std::string::npos) {
        const std::string beside = world.program.substr(0, slash + 1) + name;
        if (::access(beside.c_str(), X_OK) == 0) return beside;
        // Build trees keep each program in a folder of its own.
        const std::string near = world.program.substr(0, slash) + "/../" + name + "/" + name;
        if (::access(near.c_str(), X_OK) == 0) return near;
    }
    return name;
}

/// Becomes musterd, with the same verb.
int hand_over(App& app, const Invocation& invocation, const std::vector<std::string>& arguments) {
    const std::string program = sibling(app.world(), "musterd");
    std::vector<std::string> words{program, invocation.command->name};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    app.out().flush();
    ::execvp(program.c_str(), argv.data());
    app.fail({Code::NotFound, "musterd cannot be started", std::strerror(errno),
              "install the muster package whole: musterd belongs beside " + app.world().program +
                  " or in PATH"});
    return exit_codes::kMusterFailed;
}

}  // namespace

int token_create(App& app, const Invocation& invocation) {
    const auto form = output_form(app, invocation);
    if (!form) return app.fail(form.error()), exit_codes::kUsage;
    const auto client = app.client();
    if (!client) return app.fail(client.error());
    const bool join = invocation.has("join") || invocation.has("node");
    JsonWriter body;
    body.begin_object().field("kind", join ? "join" : "api");
    if (const auto user = invocation.value("user")) body.field("user", *user);
    if (const auto node = invocation.value("node")) body.field("node", *node);
    if (invocation.has("admin")) body.field("admin", true);
    if (const auto expires = invocation.value("expires")) body.field("expires_in", *expires);
    if (const auto uses = invocation.value("uses")) {
        const auto count = parse_integer(*uses, 1, 1'000'000);
        if (!count) return app.fail(count.error()), exit_codes::kUsage;
        body.field("uses", *count);
    }
    body.end_object();
    const auto made = (*client)->post("/v1/tokens", body.text());
    if (!made) return app.fail(made.error());
    const Json token = made->root();
    if (!form->is_table()) return show_object(app, *form, token, token_columns(), "token");
    app.out().write(token["token"].text() + "\n");
    app.out().flush();
    const std::string until =
        token["expires"].empty() ? "" : ", valid until " + token["expires"].text();
    app.note("token " + token["id"].text() + until + "; it is shown this once");
    if (join) {
        app.note("on the node: musterd agent --join " + token["token"].text());
        return exit_codes::kOk;
    }
    const auto version = (*client)->get("/v1/version");
    if (version && !version->root()["ca_sha256"].empty())
        app.note("elsewhere: muster login https://HOST:PORT --ca-sha256 " +
                 version->root()["ca_sha256"].text());
    return exit_codes::kOk;
}

int token_list(App& app, const Invocation& invocation) {
    return show_list(app, invocation,
                     {.path = "/v1/tokens", .columns = token_columns(), .none = "no tokens"});
}

int token_revoke(App& app, const Invocation& invocation) {
    const auto client = app.client();
    if (!client) return app.fail(client.error());
    int code = exit_codes::kOk;
    for (const std::string& id : invocation.arguments) {
        const auto done =
            (*client)->call({.method = "DELETE", .target = target("/v1/tokens/", id)});
        if (!done) {
            code = app.fail(done.error());
        } else {
            app.out().write("token " + id + " revoked\n");
        }
    }
    return code;
}

int login(App& app, const Invocation& invocation) {
    const World& world = app.world();
    const std::string url = invocation.argument(0);
    const std::string context = invocation.value_or("context", "default");
    auto endpoint = net::parse_endpoint(url);
    if (!endpoint) return app.fail(endpoint.error()), exit_codes::kUsage;
    const std::string sha = lower(invocation.value_or("ca-sha256", app.config().get("ca_sha256")));
    const std::string ca = invocation.value_or("ca", "");
    endpoint->ca_sha256 = sha;
    if (!ca.empty()) {
        const auto pem = read_file(ca);
        if (!pem) return app.fail(pem.error());
        endpoint->ca_pem = *pem;
    }
    std::string token(trim(world.variable("MUSTER_TOKEN")));
    const bool local = !endpoint->unix_path.empty();
    if (token.empty() && !local) {
        token = read_secret(app, "Token for " + net::format_endpoint(*endpoint) + ": ");
        if (token.empty())
            return app.fail(numbered(errors::kNoCredentials, "no token was given", "",
                                     "an administrator makes one: `muster token create --user "
                                     "NAME`; paste it, or pipe it in"));
    }
    net::HttpClientOptions options{.endpoint = *endpoint};
    if (!token.empty()) options.headers.push_back({"Authorization", "Bearer " + token});
    const auto answer = net::HttpClient::make(options)->send({.target = "/v1/whoami"});
    if (!answer) {
        Error error = answer.error();
        if (endpoint->tls && sha.empty() && ca.empty() && error.number != errors::kUnreachable)
            error.fix =
                "give the CA to trust: --ca-sha256 HEX, as `muster token create` or "
                "`muster api GET /v1/version` tells it on the controller";
        return app.fail(error);
    }
    if (answer->status >= 400)
        return app.fail(
            error_of_reply(answer->status, answer->header("content-type"), answer->body));
    const auto who = JsonDocument::parse(answer->body);
    if (!who) return app.fail(numbered(errors::kBadAnswer, url + " is not a Muster controller"));
    const auto keep = [&]() -> Status {
        MUSTER_TRY(set_user_config(world, context, "server", net::format_endpoint(*endpoint)));
        if (!sha.empty()) MUSTER_TRY(set_user_config(world, context, "ca_sha256", sha));
        if (!ca.empty()) {
            const std::string kept = world.config_dir() + "/ca-" + context + ".pem";
            MUSTER_TRY(write_file(kept, endpoint->ca_pem, 0600));
            MUSTER_TRY(set_user_config(world, context, "ca", kept));
        }
        if (!token.empty())
            MUSTER_TRY(write_file(default_token_path(world, context), token + "\n", 0600));
        return set_user_config(world, "", "context", context);
    };
    if (const Status kept = keep(); !kept) return app.fail(kept.error());
    app.out().write(
        "signed in to " + net::format_endpoint(*endpoint) + " as " + who->root()["user"].text() +
        (who->root()["admin"].truth() ? " (administrator)" : "") + "; context " + context + "\n");
    return exit_codes::kOk;
}

int version(App& app, const Invocation& invocation) {
    const auto form = output_form(app, invocation);
    if (!form) return app.fail(form.error()), exit_codes::kUsage;
    std::string server, where;
    if (!invocation.has("client")) {
        if (const auto client = app.client()) {
            (*client)->set_patience({0}, {0});
            (*client)->set_timeout(seconds(2));
            where = (*client)->where();
            if (const auto answer = (*client)->get("/v1/version"))
                server = answer->root()["version"].text();
        }
    }
    if (!form->is_table()) {
        JsonWriter out;
        out.begin_object().field("client", MUSTER_VERSION).key("controller");
        if (server.empty())
            out.null();
        else
            out.value(server);
        out.field("endpoint", where).end_object();
        const auto document = JsonDocument::parse(std::move(out).text());
        return document ? show_object(app, *form, document->root(), {}, "client")
                        : app.fail(document.error());
    }
    app.out().write("muster " MUSTER_VERSION "\n");
    if (!server.empty()) app.out().write("controller " + server + " at " + where + "\n");
    return exit_codes::kOk;
}

int api(App& app, const Invocation& invocation) {
    std::string method = invocation.argument(0);
    std::transform(method.begin(), method.end(), method.begin(),
                   [](char c) { return static_cast<char>(std::toupper(c)); });
    const std::string where = invocation.argument(1);
    if (!where.starts_with('/')) {
        app.fail({Code::Invalid, "the path '" + where + "' must begin with /", "",
                  "for example `muster api GET /v1/jobs`"});
        return exit_codes::kUsage;
    }
    net::HttpCall call{.method = method, .target = where};
    if (const auto data = invocation.value("data")) {
        call.body = *data;
        if (data->starts_with('@')) {
            auto text = read_file(*data == "@-" ? "/dev/stdin" : data->substr(1), 16 << 20);
            if (!text) return app.fail(text.error());
            call.body = *std::move(text);
        }
    }
    for (const std::string& header : invocation.values("header")) {
        const std::size_t colon = header.find(':');
        if (colon == std::string::npos) {
            app.fail({Code::Invalid, "header '" + header + "' has no colon", "",
                      "write it as 'If-Match: *'"});
            return exit_codes::kUsage;
        }
        call.headers.push_back({std::string(trim(header.substr(0, colon))),
                                std::string(trim(header.substr(colon + 1)))});
    }
    const auto client = app.client();
    if (!client) return app.fail(client.error());
    auto answer = (*client)->connection()->open(call);
    if (!answer) {
        Error error = answer.error();
        if (error.number == 0 && is_away(error)) error.number = errors::kUnreachable;
        return app.fail(error);
    }
    net::HttpBodyReader& body = **answer;
    if (invocation.has("include")) {
        app.out().write("HTTP/1.1 " + std::to_string(body.status()) + "\n");
        for (const net::Header& header : body.headers())
            app.out().write(header.name + ": " + header.value + "\n");
        app.out().write("\n");
    }
    if (body.status() >= 400) {
        const auto text = body.read_all({});
        if (!text) return app.fail(text.error());
        app.out().write(*text + (text->ends_with('\n') ? "" : "\n"));
        return exit_code_of(error_of_reply(body.status(), body.header("content-type"), *text));
    }
    bool open_line = false;
    for (;;) {
        auto part = body.read_some({.timeout = kDurationMax});
        if (!part) return app.fail(part.error());
        if (part->end != net::ReadEnd::Data) break;
        app.out().write(part->data);
        app.out().flush();
        open_line = !part->data.ends_with('\n');
        if (!app.out().good()) break;
    }
    if (open_line) app.out().write("\n");
    return exit_codes::kOk;
}

int explain(App& app, const Invocation& invocation) {
    if (invocation.arguments.empty()) {
        Table table({{"CODE"}, {"MEANING", false, true}});
        for (const ErrorCode& entry : error_codes()) {
            table.add(error_name(entry.number));
            table.add(entry.title);
        }
        app.out().write(table.render({.width = app.out_width(), .color = app.out_color()}));
        return exit_codes::kOk;
    }
    int code = exit_codes::kOk;
    for (const std::string& word : invocation.arguments) {
        const int number = parse_error_number(word);
        const ErrorCode* entry = number == 0 ? nullptr : find_error_code(number);
        if (entry == nullptr) {
            code = app.fail({Code::NotFound, "there is no code '" + word + "'", "",
                             "`muster explain` lists all of them"});
            continue;
        }
        app.out().write(muster::explain(*entry));
    }
    return code;
}

int up(App& app, const Invocation& invocation) {
    return hand_over(app, invocation, invocation.arguments);
}

int simulate(App& app, const Invocation& invocation) {
    std::vector<std::string> words;
    for (const auto& [name, value] : invocation.flags) {
        words.push_back("--" + name);
        if (!value.empty()) words.back() += "=" + value;
    }
    return hand_over(app, invocation, words);
}

int tune(App& app, const Invocation& invocation) {
    return simulate(app, invocation);
}

int bench(App& app, const Invocation& invocation) {
    std::vector<std::string> words;
    for (const Flag& flag : invocation.command->flags)
        for (const std::string& value : invocation.values(flag.name())) {
            words.push_back("--" + flag.name());
            if (!flag.metavar.empty()) words.back() += "=" + value;
        }
    return hand_over(app, invocation, words);
}

int manual(App& app, const Invocation& invocation) {
    const std::string what = invocation.argument(0);
    app.out().write(what == "man" ? man_page() : reference_markdown());
    return exit_codes::kOk;
}

}  // namespace muster::cli::verbs
