// muster config view|set|path.
#include <algorithm>

#include "base/json_writer.h"
#include "base/text.h"
#include "cli/verbs.h"

namespace muster::cli::verbs {

int config_view(App& app, const Invocation& invocation) {
    const auto form = output_form(app, invocation);
    if (!form) return app.fail(form.error()), exit_codes::kUsage;
    std::vector<Setting> all = app.config().settings();
    const auto token = find_token(app.world(), app.config());
    all.push_back({"token", token ? (token->token.empty() ? "" : "(set)") : "(not usable)",
                   token ? (token->token.empty() ? "default" : token->origin) : "error"});
    for (const RunDefault& each : app.config().run_defaults())
        all.push_back({"run." + each.field, each.text, each.origin});
    if (!form->is_table()) {
        JsonWriter out;
        out.begin_object();
        for (const Setting& setting : all) {
            out.key(setting.key);
            if (!invocation.has("origin")) {
                out.value(setting.value);
                continue;
            }
            out.begin_object().field("value", setting.value).field("origin", setting.origin);
            out.end_object();
        }
        out.end_object();
        const auto document = JsonDocument::parse(std::move(out).text());
        return document ? show_object(app, *form, document->root(), {}, "context")
                        : app.fail(document.error());
    }
    std::vector<TableColumn> heads{{"SETTING"}, {"VALUE", false, true}};
    if (invocation.has("origin")) heads.push_back({"FROM"});
    Table table(std::move(heads));
    for (const Setting& setting : all) {
        table.add(setting.key);
        table.add(setting.value.empty() ? "-" : setting.value);
        if (invocation.has("origin"))
            table.add(setting.origin, setting.origin == "default" ? Tone::Dim : Tone::Plain);
    }
    app.out().write(
        table.render({.width = app.out_width(), .header = form->header, .color = app.out_color()}));
    if (app.config().get("server").empty()) {
        const std::vector<std::string> tried = default_endpoints(app.world());
        app.note("no server is set: the first socket of " + join(tried, ", ") + " is used");
    }
    if (!token) app.fail(token.error());
    return exit_codes::kOk;
}

int config_set(App& app, const Invocation& invocation) {
    const std::string key = invocation.argument(0), value = invocation.argument(1);
    std::vector<std::string> known;
    const SettingKey* found = nullptr;
    const std::vector<SettingKey> keys = setting_keys();
    for (const SettingKey& each : keys) {
        known.emplace_back(each.key);
        if (each.key == key) found = &each;
    }
    if (found == nullptr) {
        const std::string near = nearest(key, known);
        app.fail({Code::Invalid,
                  key + ": unknown setting" + (near.empty() ? "" : "; did you mean " + near + "?"),
                  "there are " + join(known, ", "), ""});
        return exit_codes::kUsage;
    }
    std::string context;
    if (found->of_context) {
        context = app.config().get("context");
        if (context.empty()) context = "default";
    }
    if (const Status set = set_user_config(app.world(), context, key, value); !set)
        return app.fail(set.error());
    if (found->of_context && app.config().get("context").empty()) {
        if (const Status set = set_user_config(app.world(), "", "context", context); !set)
            return app.fail(set.error());
    }
    app.note(user_config_path(app.world()) + ": " +
             (context.empty() ? "" : "contexts." + context + ".") + key + " is now " + value);
    return exit_codes::kOk;
}

int config_path(App& app, const Invocation&) {
    app.out().write(user_config_path(app.world()) + "\n");
    return exit_codes::kOk;
}

}  // namespace muster::cli::verbs
