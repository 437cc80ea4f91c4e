// The agent's core, row by row: what comes in, and everything that goes out, as text.
#include "node/step.h"

#include <cstdlib>
#include <fstream>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/text.h"

namespace muster::node {
namespace {

using protocol::TaskKey;
using protocol::TaskState;

constexpr const char* kStates[] = {"accepted", "pulling",  "preparing", "ready",
                                   "running",  "stopping", "ended"};
constexpr std::pair<model::Cause, const char*> kCauses[] = {
    {model::Cause::None, "none"},           {model::Cause::Success, "success"},
    {model::Cause::UserError, "user"},      {model::Cause::Preempted, "preempted"},
    {model::Cause::Cancelled, "cancelled"}, {model::Cause::Fenced, "fenced"},
    {model::Cause::Vanished, "vanished"}};

std::string text(model::Cause cause) {
    for (const auto& [value, name] : kCauses)
        if (value == cause) return name;
    return "?";
}
model::Cause cause_of(const std::string& name) {
    for (const auto& [value, known] : kCauses)
        if (known == name) return value;
    ADD_FAILURE() << "no cause " << name;
    return model::Cause::None;
}
TaskState state_of(const std::string& name) {
    for (std::size_t i = 0; i < std::size(kStates); ++i)
        if (kStates[i] == name) return static_cast<TaskState>(i);
    ADD_FAILURE() << "no state " << name;
    return TaskState::Accepted;
}
std::string text(const TaskKey& key) {
    return std::to_string(key.job.value) + "." + std::to_string(key.epoch) + "." +
           std::to_string(key.rank);
}
TaskKey key_of(const std::string& written) {
    const auto parts = split(written, '.');
    const auto number = [&](std::size_t i) { return std::stoull(std::string(parts.at(i))); };
    return {
        {number(0)}, static_cast<std::uint32_t>(number(1)), static_cast<std::uint32_t>(number(2))};
}

struct Printer {
    std::string operator()(const protocol::Hello& m) const {
        std::string out = "hello term=" + std::to_string(m.last_term);
        for (const auto& task : m.tasks) out += " " + text(task.key) + "=" + name(task);
        return out;
    }
    std::string operator()(const protocol::Heartbeat& m) const {
        return "heartbeat " + std::to_string(m.sequence);
    }
    std::string operator()(const protocol::FactsChanged&) const { return "facts"; }
    std::string operator()(const protocol::TaskStatus& m) const {
        return "status " + text(m.key) + " " + name(m);
    }
    std::string operator()(const protocol::Progress& m) const {
        return "progress " + text(m.key) + " " + std::to_string(m.step);
    }
    std::string operator()(const protocol::CheckpointDone& m) const {
        return "checkpoint " + text(m.key) + " " + std::to_string(m.step);
    }
    std::string operator()(const protocol::LogTail& m) const { return "tail " + text(m.key); }
    std::string operator()(const protocol::LogMatch& m) const { return "match " + text(m.key); }
    std::string operator()(const protocol::LogChunk&) const { return "chunk"; }
    std::string operator()(const protocol::TunnelOutput&) const { return "tunnel"; }

    std::string operator()(const SendUp& c) const { return std::visit(*this, c.message); }
    std::string operator()(const StartRun& c) const { return "START " + text(c.order.key); }
    std::string operator()(const ReleaseRun& c) const { return "RELEASE " + text(c.go.key); }
    std::string operator()(const NoticeRun& c) const { return "NOTICE " + text(c.notice.key); }
    std::string operator()(const StopRun& c) const {
        return "STOP " + text(c.key) + " " + text(c.cause) + " " + std::to_string(c.grace.ms);
    }
    std::string operator()(const CleanRun& c) const { return "CLEAN " + text(c.key); }
    std::string operator()(const AskPeer& c) const { return "ASK " + c.peer.name; }
    std::string operator()(const DropLink&) const { return "DROP"; }
    std::string operator()(const KeepLease& c) const {
        return "keep " + std::to_string(c.lease.until.ms);
    }

private:
    static std::string name(const protocol::TaskStatus& status) {
        std::string out = kStates[static_cast<std::size_t>(status.state)];
        if (status.state == TaskState::Ended) out += ":" + text(status.end.cause);
        return out;
    }
};

/// Reads "TIME verb words…" lines, and writes what came out after each.
class Player {
public:
    std::string play(const std::string& script) {
        std::istringstream lines(script);
        for (std::string line; std::getline(lines, line);) {
            const std::string_view trimmed = trim(line);
            if (trimmed.empty() || trimmed.front() == '>') continue;
            out_ += std::string(trimmed) + "\n";
            std::istringstream in{std::string(trimmed)};
            in >> now_.ms >> verb_;
            words_.clear();
            for (std::string word; in >> word;) words_.push_back(word);
            perform();
        }
        return out_;
    }

private:
    void perform() {
        if (verb_ == "until") return run_until(now_);
        if (verb_ == "lease") {
            static constexpr const char* kLeases[] = {"live", "asking", "outage", "cut-off"};
            out_ += std::string("> ") + kLeases[static_cast<std::size_t>(state_.lease)] + "\n";
            return;
        }
        if (verb_ == "word") {
            const auto word = word_for_peer(state_, now_);
            out_ += !word ? "> nothing\n" : word->has_controller ? "> has\n" : "> lost\n";
            return;
        }
        if (verb_ == "granting") {
            granting_ = words_.at(0) == "on";
            return;
        }
        if (verb_ == "peers") {
            answers_ = words_;
            return;
        }
        feed(now_, event());
    }
    Event event() {
        if (verb_ == "start") return started();
        if (verb_ == "link") return LinkOpened{};
        if (verb_ == "unlink") return LinkClosed{};
        if (verb_ == "saw") {
            protocol::TaskStatus status{.key = key_of(words_.at(0)),
                                        .state = state_of(words_.at(1))};
            if (words_.size() > 2) status.end.cause = cause_of(words_.at(2));
            return FromRuntime{status};
        }
        if (verb_ == "progress") {
            return FromRuntime{protocol::Progress{.key = key_of(words_.at(0)),
                                                  .local_rank = std::stoi(words_.at(1)),
                                                  .step = std::stoll(words_.at(2)),
                                                  .metrics = {}}};
        }
        if (verb_ == "saved") {
            return FromRuntime{
                protocol::CheckpointDone{key_of(words_.at(0)), std::stoll(words_.at(1)), "/ckpt"}};
        }
        if (verb_ == "matched")
            return FromRuntime{protocol::LogMatch{key_of(words_.at(0)), 0, "x"}};
        if (verb_ == "facts") {
            model::NodeFacts facts = state_.facts;
            facts.version = words_.at(0);
            return FactsRead{facts};
        }
        if (verb_ == "tick") return Tick{};
        return FromController{order()};
    }
    Started started() {
        Started event;
        event.facts.name = "n1";
        for (const std::string& word : words_) {
            const auto parts = split(word, '=');
            const std::string key(parts.at(0)), value(parts.at(1));
            if (key == "kept") {
                event.kept = KeptLease{
                    .term = 3, .until = {std::stoll(value)}, .rules = {}, .peers = peers("a,b,c")};
                continue;
            }
            Started::Found found;
            found.order = start_order(key_of(key), "gang");
            found.status.state = state_of(value);
            event.found.push_back(std::move(found));
        }
        return event;
    }
    static protocol::StartTask start_order(TaskKey key, const std::string& kind) {
        protocol::StartTask order;
        order.term = 3;
        order.key = key;
        protocol::Gang gang{{.name = "n1", .address = ""}};
        if (kind == "gang") gang.push_back({.name = "n2", .address = ""});
        if (kind == "local") gang.push_back({.name = "n1", .address = ""});
        order.gang = std::make_shared<const protocol::Gang>(gang);
        return order;
    }
    static std::vector<protocol::PeerAddress> peers(const std::string& names) {
        std::vector<protocol::PeerAddress> out;
        for (const auto name : split(names, ',')) out.push_back({std::string(name), "", 1});
        return out;
    }
    protocol::ControllerMessage order() {
        const protocol::Term term = std::stoull(words_.at(0));
        if (verb_ == "welcome") {
            protocol::Welcome welcome{.term = term, .node = {1}, .rules = {}, .wanted = {}};
            for (std::size_t i = 1; i < words_.size(); ++i) {
                if (words_[i] == "adopt")
                    welcome.adopt_all = true;
                else
                    welcome.wanted.push_back(key_of(words_[i]));
            }
            return welcome;
        }
        if (verb_ == "grant") {
            protocol::LeaseGrant grant{term, std::stoull(words_.at(1)), {}};
            if (words_.size() > 2) grant.peers = peers(words_[2]);
            return grant;
        }
        const TaskKey key = key_of(words_.at(1));
        if (verb_ == "run") {
            protocol::StartTask start = start_order(key, words_.at(2));
            start.term = term;
            return start;
        }
        if (verb_ == "go") return protocol::Go{term, key, "n1", 29500};
        if (verb_ == "notice") return protocol::NoticeTask{term, key, {}, seconds(60), ""};
        if (verb_ == "stop")
            return protocol::StopTask{term, key, model::Cause::Cancelled, seconds(10)};
        EXPECT_EQ(verb_, "forget");
        return protocol::ForgetTask{term, key};
    }

    void run_until(Time end) {
        while (next_wake(state_) <= end) {
            const Time at = std::max(next_wake(state_), last_);
            feed(at, Tick{});
        }
    }
    void feed(Time at, Event event) {
        last_ = at;
        const Step made = step(state_, {at, std::move(event)});
        check(state_);
        for (const Command& command : made.commands) {
            const auto* up = std::get_if<SendUp>(&command);
            const auto* beat = up ? std::get_if<protocol::Heartbeat>(&up->message) : nullptr;
            if (granting_ && beat) {
                granted_ = beat->sequence;
                continue;
            }
            out_ += "> " + std::to_string(at.ms) + " " + std::visit(Printer{}, command) + "\n";
        }
        if (granted_ != 0) {
            const std::uint64_t sequence = std::exchange(granted_, 0);
            feed(at, FromController{protocol::LeaseGrant{state_.term, sequence, {}}});
        }
        for (const Command& command : made.commands) {
            const auto* ask = std::get_if<AskPeer>(&command);
            if (!ask) continue;
            for (const std::string& answer : answers_) {
                const auto parts = split(answer, '=');
                if (parts.at(0) != ask->peer.name) continue;
                feed(at, PeerAnswered{ask->peer.name, protocol::PeerWord{parts.at(1) == "has"}});
            }
        }
    }

    State state_;
    Time now_, last_;
    std::string verb_;
    std::vector<std::string> words_, answers_;
    bool granting_ = false;
    std::uint64_t granted_ = 0;
    std::string out_;
};

struct Row {
    std::string name;
    std::string script;
};

/// "== name" opens a row; lines that begin with ">" are what is expected to come out.
/// UPDATE=1 writes what came out instead: read the difference before it is committed.
std::vector<Row> read_rows(const std::string& path) {
    std::ifstream file(path);
    EXPECT_TRUE(file) << path;
    std::vector<Row> rows;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("== "))
            rows.push_back({line.substr(3), ""});
        else if (!line.empty() && !rows.empty())
            rows.back().script += line + "\n";
    }
    return rows;
}

class Agent : public testing::TestWithParam<const char*> {};

TEST_P(Agent, answers_each_row) {
    const std::string path =
        std::string(MUSTER_SOURCE_DIR) + "/src/node/rows/" + GetParam() + ".txt";
    std::string played;
    const std::vector<Row> rows = read_rows(path);
    EXPECT_GT(rows.size(), 5u);
    for (const Row& row : rows) {
        const std::string out = Player().play(row.script);
        EXPECT_EQ(row.script, out) << row.name;
        played += (played.empty() ? "== " : "\n== ") + row.name + "\n" + out;
    }
    if (std::getenv("UPDATE") != nullptr) std::ofstream(path) << played;
}

INSTANTIATE_TEST_SUITE_P(Rows, Agent, testing::Values("orders", "leases"),
                         [](const auto& row) { return std::string(row.param); });

}  // namespace
}  // namespace muster::node
