// The one table against everything made from it: docs/cli.md, the man page, help, completions; and
// configuration with its origins.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "base/text.h"
#include "cli/files.h"
#include "cli/test_cluster.h"

namespace muster::cli::test {
namespace {

std::string longest_name(const Flag& flag) {
    return "--" + flag.name();
}

TEST(Docs, cli_page_is_what_the_table_says) {
    const std::string path = std::string(MUSTER_SOURCE_DIR) + "/docs/cli.md";
    const std::string want = reference_markdown();
    if (std::getenv("UPDATE") != nullptr) std::ofstream(path) << want;
    std::ifstream file(path);
    std::stringstream have;
    have << file.rdbuf();
    EXPECT_EQ(have.str(), want) << "run the test with UPDATE=1";
}

TEST(Docs, every_flag_is_in_help_docs_man_page_and_completion) {
    Cluster cluster;
    const std::string page = reference_markdown(), man = man_page();
    for (const Command& command : commands()) {
        if (command.hidden) continue;
        EXPECT_NE(page.find("### muster " + command.name + "\n"), std::string::npos);
        EXPECT_FALSE(command.summary.ends_with('.')) << command.name;
        if (command.raw) continue;
        const std::string help = help_text(command, 80);
        std::vector<std::string> words{"__complete"};
        for (const std::string_view word : split(command.name, ' ')) words.emplace_back(word);
        words.emplace_back("--");
        const std::string offered = "\n" + cluster.run(words).out;
        for (const Flag& flag : command.flags) {
            const std::string name = longest_name(flag);
            EXPECT_NE(help.find(name), std::string::npos) << command.name << " " << name;
            EXPECT_NE(page.find(name), std::string::npos) << command.name << " " << name;
            EXPECT_NE(offered.find("\n" + name + "\t"), std::string::npos)
                << command.name << " " << name;
            std::string escaped;
            for (const char c : name) escaped += c == '-' ? "\\-" : std::string(1, c);
            EXPECT_NE(man.find(escaped), std::string::npos) << command.name << " " << name;
            EXPECT_FALSE(flag.help.empty());
        }
    }
}

TEST(Docs, no_flag_twice_in_a_command) {
    for (const Command& command : commands()) {
        std::vector<std::string> names;
        for (const std::vector<Flag>* flags : {&command.flags, &global_flags()})
            for (const Flag& flag : *flags)
                for (const std::string_view name : split(flag.names, ','))
                    names.emplace_back(trim(name));
        std::sort(names.begin(), names.end());
        EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end()) << command.name;
    }
}

TEST(Docs, lines_of_help_fit) {
    for (const Command& command : commands())
        for (const std::string_view line : split(help_text(command, 80), '\n'))
            EXPECT_LE(line.size(), 100u) << line;
}

TEST(Completion, scripts_are_valid_bash) {
    Cluster cluster;
    const Ran bash = cluster.run({"completion", "bash"});
    const std::string path = cluster.folder().file("complete.bash", bash.out);
    EXPECT_EQ(std::system(("bash -n " + path).c_str()), 0);
    EXPECT_NE(cluster.run({"completion", "zsh"}).out.find("#compdef muster"), std::string::npos);
    EXPECT_NE(cluster.run({"completion", "fish"}).out.find("complete -c muster"),
              std::string::npos);
    EXPECT_EQ(cluster.run({"completion", "tcsh"}).code, 2);
}

TEST(Completion, bash_calls_the_program_and_offers_its_words) {
    Cluster cluster;
    const std::string path =
        cluster.folder().file("complete.bash", cluster.run({"completion", "bash"}).out);
    // A stand-in for the program: prints what the real one would.
    const std::string program = cluster.folder().file(
        "muster", "#!/bin/sh\nprintf 'status\\tShow\\nsubmit\\tSubmit a job\\n'\n", 0755);
    const std::string out = cluster.folder().path() + "/out";
    const std::string script = cluster.folder().file(
        "ask.bash", ". " + path + "; COMP_WORDS=(" + program +
                        " s); COMP_CWORD=1; _muster; printf '%s|' \"${COMPREPLY[@]}\" >" + out);
    EXPECT_EQ(std::system(("bash " + script + " 2>/dev/null").c_str()), 0);
    const auto offered = read_file(out);
    ASSERT_TRUE(offered);
    EXPECT_EQ(*offered, "status|submit|");
}

struct CompleteRow {
    const char* name;
    std::vector<std::string> words;
    const char* want;
    friend void PrintTo(const CompleteRow& row, std::ostream* out) { *out << row.name; }
};
class Complete : public testing::TestWithParam<CompleteRow> {};
TEST_P(Complete, offers) {
    Cluster cluster;
    cluster.answer("GET /v1/jobs",
                   R"({"items":[{"id":"12","name":"训练"},{"id":"7","name":"x"}]})");
    cluster.answer("GET /v1/nodes", R"({"items":[{"name":"n1","state":"ready"}]})");
    cluster.answer("GET /v1/queues", R"({"items":[{"name":"prod"},{"name":"vision"}]})");
    std::vector<std::string> words{"__complete"};
    words.insert(words.end(), GetParam().words.begin(), GetParam().words.end());
    EXPECT_EQ(cluster.run(words).out, GetParam().want);
}
INSTANTIATE_TEST_SUITE_P(
    Rows, Complete,
    testing::Values(CompleteRow{"verb", {"rele"}, "release\tLet held jobs start\n"},
                    CompleteRow{"second word",
                                {"node", "re"},
                                "resume\tTake off the holds that keep nodes from new work\n"},
                    CompleteRow{"flag", {"exec", "--no"}, "--no-tty\twithout a terminal\n"},
                    CompleteRow{"choices", {"ps", "--color", "a"}, "auto\nalways\n"},
                    CompleteRow{"after equals", {"ps", "--color=n"}, "--color=never\n"},
                    CompleteRow{
                        "after equals as bash breaks it", {"ps", "--color", "=", "n"}, "never\n"},
                    CompleteRow{"jobs", {"why", "1"}, "12\t训练\n"},
                    CompleteRow{"jobs again", {"cancel", "12", ""}, "12\t训练\n7\tx\n"},
                    CompleteRow{"nodes", {"node", "drain", ""}, "n1\tready\n"},
                    CompleteRow{"queues", {"run", "--queue", "v"}, "vision\n"},
                    CompleteRow{"file", {"run", "jo"}, ":files\n"},
                    CompleteRow{"nothing", {"version", ""}, ""}));

TEST(Completion, is_cached_and_silent_without_a_controller) {
    Cluster cluster;
    cluster.world().now = [] { return Time{static_cast<std::int64_t>(std::time(nullptr)) * 1000}; };
    cluster.answer("GET /v1/queues", R"({"items":[{"name":"prod"}]})");
    EXPECT_EQ(cluster.run({"__complete", "run", "--queue", ""}).out, "prod\n");
    cluster.run({"__complete", "run", "--queue", ""});
    EXPECT_EQ(cluster.asked().size(), 1u);
    Cluster none;
    none.world().environment["MUSTER_SOCKET_PATH"] = "/nowhere";
    const Ran ran = none.run({"__complete", "why", ""});
    EXPECT_EQ(ran.out + ran.err, "");
}

TEST(Config, later_layers_win_and_tell_whence) {
    Cluster cluster;
    const std::string home = cluster.folder().path();
    const std::string file = cluster.folder().file(
        ".config/muster/config.yaml",
        "context: prod\ncolor: never\ncontexts:\n  prod:\n    server: https://head:7070\n"
        "    ca_sha256: abcd\n  lab: {server: 'https://lab:7070'}\n");
    const std::string project = cluster.folder().file(
        ".muster.yaml", "defaults:\n  queue: vision\n  gpus: [h100:8, a100:8]\n");
    cluster.world().environment["MUSTER_COLOR"] = "always";
    const Ran ran =
        cluster.run({"config", "view", "--origin", "--color=never", "--server", "unix:/x"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.out,
              "SETTING     VALUE             FROM\n"
              "context     prod              " +
                  file +
                  ":1\n"
                  "server      unix:/x           flag --server\n"
                  "ca          -                 default\n"
                  "ca_sha256   abcd              " +
                  file +
                  ":6\n"
                  "token_file  -                 default\n"
                  "color       never             flag --color\n"
                  "output      table             default\n"
                  "timeout     30s               default\n"
                  "token       -                 default\n"
                  "run.queue   vision            " +
                  project +
                  ":2\n"
                  "run.gpus    [h100:8, a100:8]  " +
                  project + ":3\n");
    EXPECT_EQ(cluster.run({"config", "view", "--context", "lab", "-o", "jsonpath={.server}"}).out,
              "https://lab:7070\n");
    const Ran wrong = cluster.run({"config", "view", "--context", "labb"});
    EXPECT_EQ(wrong.code, 2);
    EXPECT_NE(wrong.err.find("did you mean lab?"), std::string::npos) << wrong.err;
    EXPECT_EQ(cluster.run({"config", "path"}).out, file + "\n");
}

TEST(Config, problems_name_file_line_and_column) {
    Cluster cluster;
    const std::string file =
        cluster.folder().file(".config/muster/config.yaml", "colour: never\nserver: [a]\n");
    const Ran ran = cluster.run({"ps"});
    EXPECT_EQ(ran.code, 2);
    EXPECT_NE(ran.err.find(file + ":1:1: colour: unknown key; did you mean color?"),
              std::string::npos)
        << ran.err;
    EXPECT_NE(ran.err.find(file + ":2:9: server must be one word"), std::string::npos) << ran.err;
    EXPECT_EQ(cluster.run({"explain", "E9104"}).code, 0);
}

TEST(Config, set_keeps_comments_and_others) {
    Cluster cluster;
    const std::string file = cluster.folder().file(
        ".config/muster/config.yaml",
        "# mine\ncontext: prod\ncontexts:\n  prod:\n    server: unix:/a  # here\n");
    EXPECT_EQ(cluster.run({"config", "set", "color", "never"}).code, 0);
    EXPECT_EQ(cluster.run({"config", "set", "server", "unix:/b"}).code, 0);
    EXPECT_EQ(cluster.run({"config", "set", "timeout", "5s"}).code, 0);
    EXPECT_EQ(*read_file(file),
              "# mine\ncontext: prod\ncontexts:\n  prod:\n    server: unix:/b\n"
              "color: never\ntimeout: 5s\n");
    EXPECT_EQ(cluster.run({"config", "set", "servr", "x"}).code, 2);
}

TEST(Token, file_of_a_context_goes_nowhere_else_and_must_be_private) {
    Cluster cluster;
    cluster.answer("GET /v1/queues", R"({"items":[]})");
    const std::string socket = "unix:" + cluster.folder().path() + "/api.sock";
    cluster.folder().file(".config/muster/config.yaml",
                          "context: prod\ncontexts:\n  prod: {server: '" + socket + "'}\n");
    const std::string token = cluster.folder().file(".config/muster/token-prod", "MUSTER_pat_a\n");
    cluster.run({"queues"});
    EXPECT_EQ(cluster.requests().back().header("authorization"), "Bearer MUSTER_pat_a");
    cluster.run({"queues", "--server", socket});
    EXPECT_EQ(cluster.requests().back().header("authorization"), "");
    cluster.world().environment["MUSTER_TOKEN"] = "MUSTER_pat_b";
    cluster.run({"queues", "--server", socket});
    EXPECT_EQ(cluster.requests().back().header("authorization"), "Bearer MUSTER_pat_b");
    cluster.world().environment.erase("MUSTER_TOKEN");
    ::chmod(token.c_str(), 0644);
    const Ran ran = cluster.run({"queues"});
    EXPECT_EQ(ran.code, 2);
    EXPECT_NE(ran.err.find("may be read by others"), std::string::npos) << ran.err;
}

TEST(Login, keeps_server_and_token) {
    Cluster cluster;
    cluster.answer("GET /v1/whoami", R"({"user":"wei","admin":true,"by":"token"})");
    cluster.world().environment["MUSTER_TOKEN"] = "MUSTER_pat_a";
    const std::string url = "unix:" + cluster.folder().path() + "/api.sock";
    const Ran ran = cluster.run({"login", url});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.out, "signed in to " + url + " as wei (administrator); context default\n");
    EXPECT_EQ(*read_file(cluster.folder().path() + "/.config/muster/token"), "MUSTER_pat_a\n");
    cluster.world().environment.erase("MUSTER_TOKEN");
    cluster.run({"api", "GET", "/v1/whoami"});
    EXPECT_EQ(cluster.requests().back().header("authorization"), "Bearer MUSTER_pat_a");
}

}  // namespace
}  // namespace muster::cli::test
