// attach and exec: frames of net/tty_frame.h between a client and a task,
// through its agent.
#include <charconv>
#include <mutex>

#include "base/text.h"
#include "net/tty_frame.h"
#include "rest/body.h"
#include "rest/find_job.h"
#include "rest/ids.h"

namespace muster::rest {
namespace {

/// Output that a node may send before the client takes it: the process waits, nothing is lost.
constexpr std::int64_t kWindow = 1024 * 1024;
/// What a node that keeps to no window may leave here before the tunnel ends.
constexpr std::size_t kUnsentMax = 16 * 1024 * 1024;

/// Both ends are thread-safe; its own state is behind the mutex, which is never
/// held in calls out.
class TtySession : public std::enable_shared_from_this<TtySession> {
public:
    void set_agent(std::unique_ptr<AgentStream> agent) {
        std::unique_ptr<AgentStream> unwanted;
        const std::lock_guard lock(mutex_);
        if (closed_)
            unwanted = std::move(agent);
        else
            agent_ = std::move(agent);
    }
    void set_client(std::shared_ptr<Tunnel> client) {
        {
            const std::lock_guard lock(mutex_);
            client_ = std::move(client);
            if (paused_) client_->pause_reading(true);
        }
        flush();
    }
    /// From the agent, on the controller's threads.
    void output(const protocol::TunnelOutput& output) {
        std::string frames;
        if (!output.bytes.empty()) {
            const auto kind = output.is_stderr ? net::TtyKind::ErrorOutput : net::TtyKind::Output;
            std::string_view left = output.bytes;
            while (!left.empty()) {
                const std::size_t size = std::min(left.size(), net::kTtyFrameMax);
                frames += net::tty_frame(kind, left.substr(0, size));
                left.remove_prefix(size);
            }
        }
        if (output.end) {
            if (!output.error.empty())
                frames += net::tty_frame(net::TtyKind::Failure, output.error);
            frames += net::tty_frame(net::TtyKind::Exit, std::to_string(output.exit_code));
        }
        if (output.taken > 0) input_taken(output.taken);
        queue(std::move(frames), output.end, static_cast<std::int64_t>(output.bytes.size()));
    }
    /// From the client, on its I/O thread.
    void input(std::string_view bytes) {
        decoder_.feed(bytes);
        for (;;) {
            const auto more = decoder_.next();
            if (!more) return break_off(more.error().message);
            if (!*more) return;
            if (!forward(decoder_.frame())) return;
        }
    }
    void drained() { flush(); }
    void client_gone() { end(); }

private:
    bool forward(const net::TtyFrame& frame) {
        protocol::TunnelInput input;
        switch (frame.kind) {
            case net::TtyKind::Input: input.bytes = frame.bytes; break;
            case net::TtyKind::InputEnd: input.end = true; break;
            case net::TtyKind::Resize: {
                const std::size_t by = frame.bytes.find('x');
                const auto columns = size_in(frame.bytes.substr(0, by));
                const auto rows = by == std::string::npos ? std::uint16_t{0}
                                                          : size_in(frame.bytes.substr(by + 1));
                if (columns == 0 || rows == 0) {
                    break_off("a resize frame is COLUMNSxROWS");
                    return false;
                }
                input.columns = columns;
                input.rows = rows;
                break;
            }
            default: break_off("a frame of that kind is the server's to send"); return false;
        }
        const std::lock_guard lock(mutex_);
        if (agent_ == nullptr) return false;
        agent_->input(input);
        input_under_way_ += static_cast<std::int64_t>(input.bytes.size());
        if (input_under_way_ > kWindow) pause(true);
        return true;
    }
    void input_taken(std::int64_t bytes) {
        const std::lock_guard lock(mutex_);
        input_under_way_ -= bytes;
        if (input_under_way_ <= kWindow / 2) pause(false);
    }
    /// The client's input waits in its socket, and so with the client. With the mutex held.
    void pause(bool on) {
        if (paused_ == on) return;
        paused_ = on;
        if (client_ != nullptr) client_->pause_reading(on);
    }
    static std::uint16_t size_in(std::string_view text) {
        std::uint16_t number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        return error == std::errc{} && end == text.data() + text.size() ? number : std::uint16_t{0};
    }
    void break_off(const std::string& why) {
        queue(
            net::tty_frame(net::TtyKind::Failure, why) + net::tty_frame(net::TtyKind::Exit, "125"),
            true);
    }
    void queue(std::string frames, bool last, std::int64_t output = 0) {
        {
            const std::lock_guard lock(mutex_);
            if (closed_ || last_queued_) return;
            if (unsent_.size() + frames.size() > kUnsentMax) {
                unsent_.clear();
                frames = net::tty_frame(net::TtyKind::Failure,
                                        "the client reads too slowly: over 16 MiB wait for it") +
                         net::tty_frame(net::TtyKind::Exit, "125");
                last = true;
            }
            unsent_ += frames;
            unsent_output_ += output;
            last_queued_ = last;
        }
        flush();
    }
    void flush() {
        const std::lock_guard sending(send_mutex_);  // Keeps the order of frames.
        for (;;) {
            std::shared_ptr<Tunnel> client;
            std::string frames;
            bool last = false;
            std::int64_t output = 0;
            {
                const std::lock_guard lock(mutex_);
                if (client_ == nullptr || (unsent_.empty() && !last_queued_)) return;
                client = client_;
                frames.swap(unsent_);
                output = std::exchange(unsent_output_, 0);
                last = last_queued_;
            }
            const net::Write written =
                frames.empty() ? net::Write::Accepted : client->write(frames);
            if (written == net::Write::Full) {
                const std::lock_guard lock(mutex_);
                unsent_.insert(0, frames);
                unsent_output_ += output;
                return;
            }
            if (written == net::Write::Closed || last) {
                client->close();
                end();
                return;
            }
            const std::lock_guard lock(mutex_);
            if (agent_ != nullptr && output > 0) agent_->input({.bytes = {}, .taken = output});
        }
    }
    void end() {
        std::unique_ptr<AgentStream> agent;  // Cancelled outside of the lock.
        const std::lock_guard lock(mutex_);
        closed_ = true;
        client_.reset();
        unsent_.clear();
        last_queued_ = false;
        agent = std::move(agent_);
    }

    std::mutex send_mutex_;
    std::mutex mutex_;
    std::unique_ptr<AgentStream> agent_;
    std::shared_ptr<Tunnel> client_;
    std::string unsent_;
    std::int64_t unsent_output_ = 0;    // Bytes of output among it.
    std::int64_t input_under_way_ = 0;  // Not yet taken by the process.
    bool paused_ = false;
    bool last_queued_ = false, closed_ = false;
    net::TtyDecoder decoder_;  // Of the I/O thread alone.
};

struct TtyAsk {
    protocol::OpenTunnel tunnel;
    std::uint32_t rank = 0;
};

bool asks_upgrade(const net::HttpRequest& request) {
    for (const std::string_view word : split(request.header("upgrade"), ',')) {
        if (lower(trim(word)) == "muster-tty") return true;
    }
    return false;
}

/// Where the rank runs now; or why nothing can be opened in it.
Result<NodeId> node_of(const core::View& view, const FoundJob& found, const std::string& id,
                       TtyAsk& ask) {
    const core::Job* job = found.waiting_element < 0 ? found.live : nullptr;
    if (job == nullptr || !core::extra_of(*job).allocation) {
        if (found.ended)
            return numbered(errors::kJobEnded, "job " + id + " has ended: " + found.ended->state);
        const std::string state =
            job != nullptr ? std::string(model::to_text(job->state)) : "pending";
        return numbered(errors::kNotRunning, "job " + id + " is " + state + ", not running");
    }
    const core::Allocation& allocation = *core::extra_of(*job).allocation;
    if (ask.rank >= core::ranks_of(allocation)) {
        return numbered(errors::kNoSuchRank, "job " + id + " has ranks 0 to " +
                                                 std::to_string(core::ranks_of(allocation) - 1) +
                                                 ", not " + std::to_string(ask.rank));
    }
    const core::JobLive* live = view.live.find(job->id.value);
    if (live != nullptr && ask.rank < live->tasks.size()) {
        const protocol::TaskState state = live->tasks[ask.rank].state;
        if (state != protocol::TaskState::Running && state != protocol::TaskState::Stopping) {
            return numbered(errors::kNotRunning,
                            "rank " + std::to_string(ask.rank) + " of job " + id + " is " +
                                std::string(protocol::to_text(state)) + ", not running");
        }
    }
    ask.tunnel.key = {.job = job->id, .epoch = allocation.epoch, .rank = ask.rank};
    return allocation.slots[ask.rank].node;
}

void connect(const CallPtr& call, NodeId node, const protocol::OpenTunnel& tunnel) {
    auto session = std::make_shared<TtySession>();
    const std::weak_ptr<TtySession> weak = session;
    auto agent =
        call->api->backend.open_tunnel(node, tunnel, [weak](const protocol::AgentMessage& message) {
            const auto* output = std::get_if<protocol::TunnelOutput>(&message);
            const auto self = weak.lock();
            if (output != nullptr && self != nullptr) self->output(*output);
        });
    if (!agent) return call->fail(agent.error());
    session->set_agent(*std::move(agent));
    // The connection keeps the session.
    net::RawOptions options;
    options.on_data = [session](std::string_view bytes) { session->input(bytes); };
    options.on_drain = [session] { session->drained(); };
    options.on_closed = [session] { session->client_gone(); };
    auto client = call->reply->upgrade(std::move(options));
    if (!client) {
        session->client_gone();
        return call->fail(client.error());
    }
    session->set_client(*std::move(client));
}

void open(const CallPtr& call, TtyAsk ask) {
    if (!asks_upgrade(call->request)) {
        return call->fail(Problem{
            .error = numbered(errors::kUpgradeNeeded, "this route speaks muster-tty frames"),
            .headers = {{"Upgrade", "muster-tty"}, {"Connection", "Upgrade"}}});
    }
    with_job(
        call, [call, ask = std::move(ask)](const ViewPtr& view, const FoundJob& found) mutable {
            const std::string owner =
                found.live != nullptr ? user_name(*view, found.live->user) : found.ended->user;
            if (!call->may_see(owner)) {
                return call->fail(
                    numbered(errors::kNotOwner, "job " + call->args[0] + " belongs to " + owner +
                                                    ", not to " + call->who.caller.user));
            }
            const auto node = node_of(*view, found, call->args[0], ask);
            if (!node) return call->fail(node.error());
            connect(call, *node, ask.tunnel);
        });
}

void read_common(Body& body, TtyAsk& ask) {
    ask.tunnel.window = kWindow;
    ask.rank = static_cast<std::uint32_t>(body.integer("rank", 0, model::kNodesMax).value_or(0));
    ask.tunnel.columns =
        static_cast<std::uint16_t>(body.integer("columns", 1, 65'535).value_or(80));
    ask.tunnel.rows = static_cast<std::uint16_t>(body.integer("rows", 1, 65'535).value_or(24));
}

}  // namespace

void exec_job(const CallPtr& call) {
    TtyAsk ask;
    Body body(call->request, BodyNeed::Required);
    read_common(body, ask);
    ask.tunnel.kind = protocol::OpenTunnel::Kind::Exec;
    ask.tunnel.tty = body.flag("tty").value_or(false);
    ask.tunnel.argv = body.texts("argv", 4096).value_or(std::vector<std::string>());
    auto problem = body.finish();
    if (problem) return call->fail(*std::move(problem));
    if (ask.tunnel.argv.empty() || ask.tunnel.argv.front().empty()) {
        return call->fail(numbered(errors::kBodyMember, "argv: expected a command and its words"));
    }
    open(call, std::move(ask));
}

void attach_job(const CallPtr& call) {
    TtyAsk ask;
    Body body(call->request, BodyNeed::Optional);
    read_common(body, ask);
    ask.tunnel.kind = protocol::OpenTunnel::Kind::Attach;
    if (auto problem = body.finish()) return call->fail(*std::move(problem));
    open(call, std::move(ask));
}

}  // namespace muster::rest
