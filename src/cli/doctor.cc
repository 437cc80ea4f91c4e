// muster doctor: one check a line, from this terminal to the nodes, each with its remedy.
#include <chrono>

#include <sys/stat.h>
#include <unistd.h>

#include "base/error_codes.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "cli/format.h"
#include "cli/verbs.h"

namespace muster::cli::verbs {
namespace {

enum class Verdict { Good, Warn, Bad };

struct Finding {
    Verdict verdict;
    std::string check;
    std::string text;
    std::string fix;
};

std::string_view word_of(Verdict verdict) {
    return verdict == Verdict::Good ? "ok" : verdict == Verdict::Warn ? "warning" : "problem";
}

class Doctor {
public:
    explicit Doctor(App& app) : app_(app) {}

    std::vector<Finding> examine() {
        program();
        if (!controller()) return std::move(findings_);
        identity();
        clock();
        cluster_health();
        nodes();
        return std::move(findings_);
    }

private:
    void add(Verdict verdict, std::string check, std::string text, std::string fix = "") {
        findings_.push_back({verdict, std::move(check), std::move(text), std::move(fix)});
    }
    void add(const std::string& check, const Error& error) {
        add(Verdict::Bad, check, error.message + (error.cause.empty() ? "" : ": " + error.cause),
            error.fix);
    }

    void program() {
        const std::string folder =
            app_.world().program.substr(0, app_.world().program.rfind('/') + 1);
        const auto here = [&](const std::string& name) {
            return ::access((folder + name).c_str(), X_OK) == 0 ||
                   ::access((folder + "../" + name + "/" + name).c_str(), X_OK) == 0;
        };
        if (here("musterd"))
            add(Verdict::Good, "programs", "muster " MUSTER_VERSION ", musterd beside it");
        else
            add(Verdict::Good, "programs",
                "muster " MUSTER_VERSION "; no musterd beside it (a client only)");
        const Setting& server = app_.config().setting("server");
        add(Verdict::Good, "configuration",
            server.value.empty() ? "no server set: the local socket is used"
                                 : "server " + server.value + " from " + server.origin);
    }
    bool controller() {
        const auto found = app_.client();
        if (!found) {
            add("controller", found.error());
            return false;
        }
        client_ = *found;
        client_->set_patience({0}, {0});
        const auto begin = std::chrono::steady_clock::now();
        const auto answer = client_->get("/v1/health");
        const auto took = std::chrono::duration_cast<std::chrono::microseconds>(
                              std::chrono::steady_clock::now() - begin)
                              .count();
        if (!answer) {
            add("controller", answer.error());
            return false;
        }
        const Json health = answer->root();
        const double ms = static_cast<double>(took) / 1000;
        const std::string where = client_->where() + " answers in " + metric_text(ms) + " ms";
        add(ms > 500 ? Verdict::Warn : Verdict::Good, "controller", where,
            ms > 500 ? "the network or the controller is slow" : "");
        const std::string version = health["version"].text();
        if (!version.empty() && version != MUSTER_VERSION)
            add(Verdict::Warn, "versions",
                "this is " MUSTER_VERSION ", the controller is " + version,
                "install the same version on both");
        else if (!version.empty())
            add(Verdict::Good, "versions", "client and controller are both " + version);
        return true;
    }
    void identity() {
        const auto answer = client_->get("/v1/whoami");
        if (!answer) {
            add("identity", answer.error());
            return;
        }
        const Json who = answer->root();
        std::string text = who["user"].text() + (who["admin"].truth() ? ", administrator" : "") +
                           ", by " + who["by"].text();
        const Time expires = moment_of(who["token_expires"]);
        if (expires.ms != 0) {
            const std::int64_t left = (expires - app_.now()).ms;
            text += "; the token expires in " + length_text(left);
            if (left < 7 * 86'400'000LL) {
                add(Verdict::Warn, "identity", text, "make a new one: `muster token create`");
                return;
            }
        }
        add(Verdict::Good, "identity", text);
        const auto& endpoint = client_->endpoint();
        if (!endpoint.unix_path.empty())
            add(Verdict::Good, "trust", "Unix socket: the kernel vouches for both ends");
        else if (!endpoint.tls)
            add(Verdict::Warn, "trust", "plain HTTP on this machine only",
                "use https:// from other machines");
        else if (endpoint.ca_pem.empty() && endpoint.ca_sha256.empty())
            add(Verdict::Good, "trust", "TLS, by this machine's certificate authorities");
        else
            add(Verdict::Good, "trust", "TLS, by the pinned certificate authority");
    }
    void clock() {
        const Time before = app_.now();
        const auto answer = client_->get("/v1/cluster");
        const Time after = app_.now();
        if (!answer) {
            add("clock", answer.error());
            return;
        }
        cluster_ = answer->root()["frozen"].truth();
        const Time theirs = moment_of(answer->root()["at"]);
        if (theirs.ms == 0) return;
        // The view may be a moment old: only a clear difference counts.
        const std::int64_t apart = theirs < before  ? (theirs - before).ms
                                   : after < theirs ? (theirs - after).ms
                                                    : 0;
        const bool bad = apart > 2000 || apart < -30'000;
        add(bad ? Verdict::Warn : Verdict::Good, "clock",
            bad ? "the controller's clock is " + length_text(std::abs(apart)) +
                      (apart > 0 ? " ahead" : " behind")
                : "agrees with the controller's",
            bad ? "keep both by NTP: ages and deadlines are off" : "");
    }
    void cluster_health() {
        const auto answer = client_->get("/v1/health");
        if (!answer) return;
        const Json health = answer->root();
        for (Json problem = health["problems"].first(); problem.exists(); problem = problem.next())
            add(Verdict::Bad, "health", problem.text(), "see the controller's log");
        if (health["disk_full"].truth())
            add(Verdict::Bad, "disk", "the controller's disk is nearly full: new work is refused",
                "make room in " + health["state_dir"].text());
        else if (health["disk_full"].exists())
            add(Verdict::Good, "disk", "the controller has room in " + health["state_dir"].text());
        if (cluster_)
            add(Verdict::Bad, "freeze", "too many nodes fell silent at once; nothing is evicted",
                "look at the network; `muster nodes`");
        const std::int64_t lag = health["loop_lag_ms"].integer();
        if (lag > 1000)
            add(Verdict::Warn, "load", "the controller is " + length_text(lag) + " behind",
                "look at its disk and CPU");
    }
    void nodes() {
        const auto answer = client_->get(
            "/v1/nodes?limit=100000&fields=name,state,version,runtime,limits_enforced,"
            "unenforced_why");
        if (!answer) {
            add("nodes", answer.error());
            return;
        }
        std::int64_t total = 0;
        std::vector<std::string> silent, old, bare, unlimited;
        std::string why;
        for (Json node = answer->root()["items"].first(); node.exists(); node = node.next()) {
            ++total;
            const std::string name = node["name"].text(), state = node["state"].text();
            if (state == "lost" || state == "suspect" || state == "unknown") silent.push_back(name);
            if (!node["version"].empty() && node["version"].text() != MUSTER_VERSION)
                old.push_back(name);
            if (node["runtime"].empty()) bare.push_back(name);
            if (!node["limits_enforced"].truth(true)) {
                unlimited.push_back(name);
                why = node["unenforced_why"].text();
            }
        }
        if (total == 0) {
            add(Verdict::Bad, "nodes", "no node has joined",
                "`muster token create --join`, then `musterd agent --join TOKEN` on each");
            return;
        }
        const bool all_well = silent.empty();
        add(all_well ? Verdict::Good : Verdict::Bad, "nodes",
            counted(total, "node") + (all_well ? ", all heard" : "; silent: " + host_list(silent)),
            all_well ? "" : "is musterd agent running there?");
        if (!old.empty())
            add(Verdict::Warn, "agents", "another version than this: " + host_list(old),
                "upgrade them; running tasks are not harmed");
        if (!bare.empty())
            add(Verdict::Warn, "runtime", "no container runtime: " + host_list(bare),
                "install crun or runc; jobs without `image` run as they are");
        if (!unlimited.empty())
            add(Verdict::Warn, "limits",
                "unenforced on " + host_list(unlimited) + (why.empty() ? "" : ": " + why),
                "run the agent as root, or delegate a cgroup to it");
    }

    App& app_;
    Client* client_ = nullptr;
    bool cluster_ = false;
    std::vector<Finding> findings_;
};

}  // namespace

int doctor(App& app, const Invocation& invocation) {
    const auto form = output_form(app, invocation);
    if (!form) return app.fail(form.error()), exit_codes::kUsage;
    const std::vector<Finding> findings = Doctor(app).examine();
    bool bad = false;
    for (const Finding& finding : findings) bad = bad || finding.verdict == Verdict::Bad;
    if (!form->is_table()) {
        JsonWriter out;
        out.begin_object().field("ok", !bad).key("checks").begin_array();
        for (const Finding& finding : findings)
            out.begin_object()
                .field("check", finding.check)
                .field("verdict", word_of(finding.verdict))
                .field("text", finding.text)
                .field("fix", finding.fix)
                .end_object();
        out.end_array().end_object();
        const auto document = JsonDocument::parse(std::move(out).text());
        if (!document) return app.fail(document.error());
        show_object(app, *form, document->root(), {}, "ok");
        return bad ? exit_codes::kError : exit_codes::kOk;
    }
    std::string out;
    for (const Finding& finding : findings) {
        const Tone tone = finding.verdict == Verdict::Good   ? Tone::Good
                          : finding.verdict == Verdict::Warn ? Tone::Warn
                                                             : Tone::Bad;
        std::string head(word_of(finding.verdict));
        head.append(9 - head.size(), ' ');
        std::string check = finding.check;
        check.append(check.size() < 15 ? 15 - check.size() : 1, ' ');
        out += paint(head, tone, app.out_color()) + check + finding.text + "\n";
        if (!finding.fix.empty())
            out += std::string(24, ' ') + paint("fix: ", Tone::Dim, app.out_color()) + finding.fix +
                   "\n";
    }
    app.out().write(out);
    return bad ? exit_codes::kError : exit_codes::kOk;
}

}  // namespace muster::cli::verbs
