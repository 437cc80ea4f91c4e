#include "agent/agent.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>

#include <fcntl.h>

#include "agent/inbox.h"
#include "agent/kept_lease.h"
#include "base/text.h"
#include "node/state.h"
#include "node/step.h"
#include "os/posix.h"
#include "os/runtime.h"
#include "os/task_files.h"

namespace muster::agent {
namespace {

constexpr Duration kPeerTimeout{1'000};
constexpr Duration kWaitMax{60'000};
constexpr Duration kRenewCheck{std::int64_t{6} * 3600 * 1000};

struct StreamEnded {
    std::uint64_t request = 0;
};
struct Reload {
    Config config;
};
struct Stop {};
struct LinkFailed {
    Error error;
};
struct Renewed {
    Identity identity;
};
using Item = std::variant<node::Event, std::vector<protocol::ControllerMessage>, StreamEnded,
                          Reload, Stop, LinkFailed, Renewed>;

class Loop : public Agent {
public:
    Loop(Config config, Identity identity, AgentHooks hooks)
        : config_(std::move(config)), identity_(std::move(identity)), hooks_(std::move(hooks)) {}
    ~Loop() override {
        inbox_->put(Stop{});
        if (thread_.joinable()) thread_.join();
        if (renewer_.joinable()) renewer_.join();
        if (link_) link_->stop();
        peers_.reset();
        streams_.clear();
        runtime_.reset();
    }

    Status open();

    void reload(const Config& config) override { inbox_->put(Reload{config}); }
    const std::string& name() const override { return identity_.name; }
    bool linked() const override { return linked_.load(); }
    int peer_port() const override { return peers_ ? peers_->port() : 0; }

private:
    Status open_peers();
    Result<protocol::PeerWord> word_for_peer();
    void tell_lease();
    Status open_link();
    model::NodeFacts read_facts();
    void run();
    bool handle(Item item);
    void step(node::Event event);
    void execute(node::Command command);
    void handle_messages(std::vector<protocol::ControllerMessage> messages);
    void open_log(const protocol::ReadLog& ask);
    void open_tunnel(const protocol::OpenTunnel& ask);
    ports::Runtime::Sink stream_sink();
    void ask_peer(const protocol::PeerAddress& peer);
    void keep_lease(const node::KeptLease& lease);
    std::optional<node::KeptLease> read_kept_lease() const;
    void check_renewal();
    void flush();

    Config config_;
    Identity identity_;
    AgentHooks hooks_;
    SteadyWallClock clock_;
    std::shared_ptr<Inbox<Item>> inbox_ =
        std::make_shared<Inbox<Item>>();  // Late answers outlive this.
    std::unique_ptr<os::TaskRuntime> runtime_;
    /// What a peer is told until then; later, that there is no controller.
    std::mutex word_mutex_;
    std::optional<protocol::PeerWord> leased_word_;
    Time leased_until_ = kNever;
    std::unique_ptr<net::PeerServer> peers_;
    std::unique_ptr<net::AgentLinkClient> link_;
    node::State state_;
    std::vector<protocol::AgentMessage> outgoing_;
    std::map<std::uint64_t, std::unique_ptr<ports::RuntimeStream>> streams_;
    std::atomic<bool> linked_ = false;
    bool linked_once_ = false;
    std::string last_failure_;
    Duration fence_;  // As the runtime was told, and the lease.
    Duration redial_pause_ = protocol::redial_pause_max({});  // As the link was told.
    std::pair<Time, node::Lease> lease_told_;
    Time renew_check_;
    std::atomic<bool> renewing_ = false;
    std::thread renewer_;
    std::thread thread_;
};

// ---- opening ----------------------------------------------------------------------------------

Status Loop::open() {
    if (!config_.controller.empty()) identity_.controller = config_.controller;
    if (config_.address.empty()) config_.address = address_towards(identity_.controller);
    if (config_.address.empty())
        return Error{.code = Code::Unavailable,
                     .message = "no address of this node is known towards the controller " +
                                identity_.controller,
                     .fix = "set `address` in agent.yaml"};
    MUSTER_LET(runtime,
               os::TaskRuntime::open({.state_dir = config_.state_dir,
                                      .supervisor = config_.supervisor.empty()
                                                        ? hooks_.program_dir + "/muster-task"
                                                        : config_.supervisor,
                                      .node_name = identity_.name,
                                      .address = config_.address,
                                      .devices = config_.devices,
                                      .numa = config_.numa,
                                      .common_files = config_.common_files,
                                      .log_max = config_.log_max,
                                      .kept_logs_max = config_.kept_logs_max,
                                      .kept_logs_for = config_.kept_logs_for,
                                      .pids_max = config_.pids_max,
                                      .pull_timeout = config_.pull_timeout,
                                      .insecure_registries = config_.insecure_registries}));
    runtime_ = std::move(runtime);
    MUSTER_TRY(open_peers());
    node::Started started{.facts = read_facts(), .found = {}, .kept = read_kept_lease()};
    for (ports::FoundTask& task : runtime_->list())
        started.found.push_back({.order = std::move(task.order),
                                 .status = std::move(task.status),
                                 .released = task.released});
    if (!started.found.empty())
        hooks_.log("adopted " + std::to_string(started.found.size()) +
                   (started.found.size() == 1 ? " task" : " tasks"));
    if (!started.facts.limits_enforced)
        hooks_.log("limits unenforced: " + started.facts.unenforced_why);
    step(std::move(started));
    runtime_->set_sink([this](protocol::AgentMessage message) {
        inbox_->put(node::Event(node::FromRuntime{std::move(message)}));
    });
    MUSTER_TRY(open_link());
    thread_ = std::thread([this] { run(); });
    return Ok{};
}

Status Loop::open_peers() {
    if (config_.peers.empty()) return Ok{};
    MUSTER_LET(server, net::PeerServer::start(
                           config_.peers, identity_.tls,
                           [this](const protocol::PeerAsk&) { return word_for_peer(); }));
    peers_ = std::move(server);
    return Ok{};
}

Result<protocol::PeerWord> Loop::word_for_peer() {
    const std::lock_guard lock(word_mutex_);
    if (leased_until_ <= clock_.now()) return protocol::PeerWord{.has_controller = false};
    if (leased_word_) return *leased_word_;
    return Error{.code = Code::Unavailable, .message = "this agent has only just started"};
}

/// Gangs must not outlive the lease because their agent did not: their supervisors are told of it.
void Loop::tell_lease() {
    const std::pair now{state_.lease_until, state_.lease};
    if (now == lease_told_) return;
    lease_told_ = now;
    runtime_->set_lease(node::absence_allowed(state_), state_.lease_until - clock_.now());
}

Status Loop::open_link() {
    net::AgentLinkClientCallbacks callbacks;
    callbacks.on_open = [this] { inbox_->put(node::Event(node::LinkOpened{})); };
    callbacks.on_messages = [this](std::vector<protocol::ControllerMessage> messages) {
        inbox_->put(std::move(messages));
    };
    callbacks.on_close = [this](Error error) {
        inbox_->put(node::Event(node::LinkClosed{}));
        inbox_->put(LinkFailed{std::move(error)});
    };
    callbacks.on_failed = [this](Error error) { inbox_->put(LinkFailed{std::move(error)}); };
    MUSTER_LET(link, net::AgentLinkClient::start({.address = identity_.controller,
                                                  .tls = identity_.tls,
                                                  .backoff_max = redial_pause_},
                                                 std::move(callbacks)));
    link_ = std::move(link);
    return Ok{};
}

model::NodeFacts Loop::read_facts() {
    model::NodeFacts facts;
    runtime_->describe(facts);
    facts.name = identity_.name;
    facts.addresses = {config_.address};
    facts.peer_port = peer_port();
    facts.version = hooks_.version;
    facts.labels = config_.labels;
    if (!config_.numa.empty()) facts.numa = config_.numa;
    if (config_.cpus.value > 0) facts.cpus = config_.cpus;
    if (config_.memory.value > 0) facts.memory = config_.memory;
    return facts;
}

// ---- the loop ---------------------------------------------------------------------------------

void Loop::run() {
    while (true) {
        const Time now = clock_.now();
        const Time wake = std::min(node::next_wake(state_), now + kWaitMax);
        std::vector<Item> items = inbox_->take(std::max(wake - now, Duration{0}));
        for (Item& item : items)
            if (!handle(std::move(item))) return;
        if (clock_.now() >= node::next_wake(state_)) step(node::Tick{});
        flush();
        check_renewal();
    }
}

bool Loop::handle(Item item) {
    if (std::holds_alternative<Stop>(item)) return false;
    if (auto* event = std::get_if<node::Event>(&item)) {
        if (std::holds_alternative<node::LinkOpened>(*event)) {
            // A third of an agent's resident memory was code that only its start runs.
            if (!std::exchange(linked_once_, true)) os::unmap_code();
            linked_ = true;
            last_failure_.clear();
            hooks_.log("linked to the controller at " + identity_.controller);
        }
        if (std::holds_alternative<node::LinkClosed>(*event)) {
            linked_ = false;
            streams_.clear();
        }
        step(std::move(*event));
    } else if (auto* messages = std::get_if<std::vector<protocol::ControllerMessage>>(&item)) {
        handle_messages(std::move(*messages));
    } else if (auto* ended = std::get_if<StreamEnded>(&item)) {
        streams_.erase(ended->request);
    } else if (auto* failed = std::get_if<LinkFailed>(&item)) {
        // Said once, not with every try.
        if (failed->error.message != last_failure_)
            hooks_.log("no link to the controller at " + identity_.controller + ": " +
                       failed->error.message);
        last_failure_ = failed->error.message;
    } else if (auto* renewed = std::get_if<Renewed>(&item)) {
        identity_.tls = std::move(renewed->identity.tls);
        if (Status set = link_->set_target(identity_.controller, identity_.tls); !set)
            hooks_.log("the renewed certificate is not used: " + set.error().message);
    } else if (auto* reload = std::get_if<Reload>(&item)) {
        config_.labels = std::move(reload->config.labels);
        config_.devices = std::move(reload->config.devices);
        config_.numa = std::move(reload->config.numa);
        config_.cpus = reload->config.cpus;
        config_.memory = reload->config.memory;
        runtime_->set_devices(config_.devices);
        runtime_->set_numa(config_.numa);
        step(node::FactsRead{read_facts()});
    }
    return true;
}

void Loop::step(node::Event event) {
    node::Step done = node::step(state_, {.at = clock_.now(), .event = std::move(event)});
    {
        const std::lock_guard lock(word_mutex_);
        leased_until_ = state_.lease_until;
        leased_word_ = node::word_for_peer(state_, leased_until_ - Duration{1});
    }
    if (fence_ != state_.rules.fence) runtime_->set_fence(fence_ = state_.rules.fence);
    if (const Duration pause = protocol::redial_pause_max(state_.rules); redial_pause_ != pause) {
        redial_pause_ = pause;
        if (link_) link_->set_backoff_max(pause);
    }
    tell_lease();
    for (const std::string& note : done.notes) hooks_.log(note);
    for (node::Command& command : done.commands) execute(std::move(command));
}

void Loop::execute(node::Command command) {
    std::visit(
        [this](auto&& each) {
            using T = std::decay_t<decltype(each)>;
            if constexpr (std::is_same_v<T, node::SendUp>)
                outgoing_.push_back(std::move(each.message));
            else if constexpr (std::is_same_v<T, node::StartRun>)
                runtime_->start(each.order);
            else if constexpr (std::is_same_v<T, node::ReleaseRun>)
                runtime_->release(each.go);
            else if constexpr (std::is_same_v<T, node::NoticeRun>)
                runtime_->notice(each.notice);
            else if constexpr (std::is_same_v<T, node::StopRun>)
                runtime_->stop(each.key, each.cause, each.grace);
            else if constexpr (std::is_same_v<T, node::CleanRun>)
                runtime_->clean(each.key);
            else if constexpr (std::is_same_v<T, node::AskPeer>)
                ask_peer(each.peer);
            else if constexpr (std::is_same_v<T, node::DropLink>)
                link_->redial();
            else if constexpr (std::is_same_v<T, node::KeepLease>)
                keep_lease(each.lease);
        },
        std::move(command));
}

void Loop::flush() {
    if (outgoing_.empty()) return;
    // What does not go out is told again with the next Hello.
    if (link_) (void)link_->send(std::exchange(outgoing_, {}));
    outgoing_.clear();
}

// ---- the controller's words -------------------------------------------------------------------

void Loop::handle_messages(std::vector<protocol::ControllerMessage> messages) {
    for (protocol::ControllerMessage& message : messages) {
        if (const auto* log = std::get_if<protocol::ReadLog>(&message)) {
            open_log(*log);
        } else if (const auto* tunnel = std::get_if<protocol::OpenTunnel>(&message)) {
            open_tunnel(*tunnel);
        } else if (const auto* input = std::get_if<protocol::TunnelInput>(&message)) {
            if (const auto found = streams_.find(input->request); found != streams_.end())
                found->second->input(*input);
        } else if (const auto* cancel = std::get_if<protocol::CancelRequest>(&message)) {
            streams_.erase(cancel->request);
        } else {
            step(node::FromController{std::move(message)});
        }
    }
}

ports::Runtime::Sink Loop::stream_sink() {
    return [this](protocol::AgentMessage message) {
        std::uint64_t ended = 0;
        if (const auto* chunk = std::get_if<protocol::LogChunk>(&message))
            ended = chunk->end ? chunk->request : 0;
        if (const auto* output = std::get_if<protocol::TunnelOutput>(&message))
            ended = output->end ? output->request : 0;
        (void)link_->send(std::move(message));
        if (ended != 0) inbox_->put(StreamEnded{ended});
    };
}

void Loop::open_log(const protocol::ReadLog& ask) {
    streams_.insert_or_assign(ask.request, runtime_->read_log(ask, stream_sink()));
}

void Loop::open_tunnel(const protocol::OpenTunnel& ask) {
    streams_.insert_or_assign(ask.request, runtime_->open_tunnel(ask, stream_sink()));
}

// ---- peers, lease, certificate ----------------------------------------------------------------

void Loop::ask_peer(const protocol::PeerAddress& peer) {
    net::ask_peer(peer, identity_.tls, kPeerTimeout,
                  [inbox = inbox_, name = peer.name](Result<protocol::PeerWord> word) {
                      node::PeerAnswered answered{.peer = name, .word = std::nullopt};
                      if (word) answered.word = *word;
                      inbox->put(node::Event(std::move(answered)));
                  });
}

void Loop::keep_lease(const node::KeptLease& lease) {
    const os::Fd dir(::open(config_.state_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (dir)
        (void)os::write_small_file(dir.get(), "lease", encode(lease, state_.facts.boot_id), false);
}

std::optional<node::KeptLease> Loop::read_kept_lease() const {
    model::NodeFacts facts;
    runtime_->describe(facts);
    const auto bytes = os::read_file(config_.state_dir + "/lease");
    return bytes ? decode_kept_lease(*bytes, facts.boot_id) : std::nullopt;
}

void Loop::check_renewal() {
    const Time now = clock_.now();
    if (now < renew_check_ || renewing_ || !linked_) return;
    renew_check_ = now + kRenewCheck;
    if (!renewal_due(identity_, now)) return;
    if (renewer_.joinable()) renewer_.join();
    renewing_ = true;
    renewer_ = std::thread([this, identity = identity_, dir = config_.state_dir] {
        if (auto fresh = renew(dir, identity)) {
            inbox_->put(Renewed{*std::move(fresh)});
        } else {
            hooks_.log("the certificate could not be renewed: " + fresh.error().message);
        }
        renewing_ = false;
    });
}

}  // namespace

Result<std::unique_ptr<Agent>> Agent::start(const Config& config, const Identity& identity,
                                            AgentHooks hooks) {
    auto loop = std::make_unique<Loop>(config, identity, std::move(hooks));
    MUSTER_TRY(loop->open());
    return std::unique_ptr<Agent>(std::move(loop));
}

}  // namespace muster::agent
