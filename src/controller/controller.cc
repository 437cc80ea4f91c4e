#include "controller/controller.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "controller/agents.h"
#include "controller/archiver.h"
#include "controller/authority.h"
#include "controller/backend.h"
#include "controller/cluster_config.h"
#include "controller/joining.h"
#include "controller/loop.h"
#include "controller/planner.h"
#include "controller/recurring.h"
#include "controller/watchdog.h"
#include "core/records.h"
#include "net/http.h"
#include "rest/handler.h"
#include "store/sqlite_history.h"
#include "store/sqlite_store.h"

namespace muster::controller {
namespace {

Time wall_now() {
    using namespace std::chrono;
    return {duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count()};
}

/// Held while this controller runs: two on one state folder would be two truths.
class FolderLock {
public:
    static Result<FolderLock> take(const std::string& folder) {
        const std::string path = folder + "/lock";
        const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0) {
            return Error{Code::Denied, "cannot open " + path, std::strerror(errno),
                         "check the owner and mode of the state folder"};
        }
        if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
            char owner[32] = {};
            (void)!::pread(fd, owner, sizeof owner - 1, 0);
            ::close(fd);
            return Error{Code::Conflict,
                         "another controller (pid " + std::string(owner) + ") runs on " + folder,
                         "", "stop it first, or give this one another state_dir"};
        }
        const std::string pid = std::to_string(::getpid());
        (void)!::ftruncate(fd, 0);
        (void)!::pwrite(fd, pid.data(), pid.size(), 0);
        return FolderLock(fd);
    }
    FolderLock(FolderLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    FolderLock& operator=(FolderLock&&) = delete;
    ~FolderLock() {
        if (fd_ >= 0) ::close(fd_);
    }

private:
    explicit FolderLock(int fd) : fd_(fd) {}
    int fd_;
};

Result<core::State> recover(ports::Store& store, const core::Settings& settings) {
    core::State state;
    state.settings = settings;
    std::size_t records = 0;
    MUSTER_TRY(store.load([&](ports::Record record) -> Status {
        const core::RecordName name{static_cast<core::RecordKind>(record.key.kind), record.key.id};
        MUSTER_LET(change, core::decode_record(name, record.bytes));
        core::apply_change(state, change);
        ++records;
        return Ok{};
    }));
    MUSTER_TRY(core::finish_load(state));
    return state;
}

std::string host_name() {
    char name[256] = {};
    return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

class Running final : public Controller {
public:
    Running(const Config& config, ControllerHooks hooks, FolderLock lock)
        : config_(config), hooks_(std::move(hooks)), lock_(std::move(lock)) {}

    ~Running() override {
        if (rest_) rest_->stop(seconds(1));
        watchdog_.reset();
        recurring_.reset();
        rest_.reset();
        // Links, planner and archiver are there to the last command; what they post then is
        // forgotten.
        if (loop_) loop_->stop();
        agents_.reset();
        planner_.reset();
        archiver_.reset();
        loop_.reset();
    }

    Status run() {
        MUSTER_TRY(open_stores());
        MUSTER_LET(state, recover(*store_, config_.settings));
        MUSTER_TRY(store_->take_term(store_->term() + 1));
        planner_ = std::make_unique<Planner>(
            core::feed_all(state),
            Planner::Hooks{
                [this](scheduler::Plan plan) { loop_->post(core::PlanProposed{std::move(plan)}); },
                wall_now});
        loop_ = std::make_unique<Loop>(std::move(state), *store_, LoopOptions{}, loop_hooks());
        archiver_ = std::make_unique<Archiver>(
            *history_,
            [this](std::vector<JobId> jobs) { loop_->post(core::Archived{std::move(jobs)}); },
            hooks_.log);
        loop_->post(core::BecomeLeader{store_->term()});
        apply_cluster(config_.cluster);
        loop_->start();
        planner_->start();
        MUSTER_TRY(serve());
        recurring_ = std::make_unique<Recurring>(
            Recurring::Hooks{[this] { return loop_->view(); },
                             [this](core::RefreshWindows event) { loop_->post(std::move(event)); },
                             hooks_.log, wall_now});
        watchdog_ = std::make_unique<Watchdog>(
            std::vector<Watchdog::Watched>{{"loop", [this] { return loop_->stats().lag_ms; }},
                                           {"planner", [this] { return planner_->lag_ms(); }}},
            Watchdog::Options{}, hooks_.log);
        return Ok{};
    }

    std::uint16_t rest_port() const override { return rest_ ? rest_->port() : std::uint16_t{0}; }
    std::uint16_t agent_port() const override {
        return agents_ ? agents_->port() : std::uint16_t{0};
    }

    Result<net::LinkTls> admit_local_node(const std::string& name) override {
        MUSTER_REQUIRE(authority_);
        MUSTER_TRY(admit(*loop_, {0, name, name}));
        return authority_->issue_node(name, wall_now());
    }

    bool node_ready(const std::string& name) const override {
        bool ready = false;
        const auto view = loop_->view();
        view->nodes.for_each([&](std::uint64_t id, const core::Node& node) {
            const core::NodeLive* live = view->node_live.find(id);
            if (node.facts && node.facts->name == name && live != nullptr)
                ready = live->health == model::NodeHealth::Ready;
        });
        return ready;
    }

    void reload(const Config& config) override {
        loop_->post(core::SettingsChanged{config.settings});
        apply_cluster(config.cluster);
    }

private:
    void apply_cluster(const spec::ClusterParts& cluster) {
        for (const std::string& note : cluster.notes) hooks_.log("topology: " + note);
        for (core::Event& event : cluster_events(cluster))
            loop_->post(std::move(event), [log = hooks_.log](const Result<Answered>& answer) {
                if (!answer) log("controller.yaml: not taken over: " + answer.error().message);
            });
    }

    Status open_stores() {
        store::SqliteStoreOptions options;
        options.path = config_.state_dir + "/state.db";
        options.events_kept = static_cast<std::size_t>(config_.events_kept);
        options.watermark_bytes = config_.watermark.value;
        MUSTER_LET(opened, store::SqliteStore::open(options));
        store_ = std::move(opened);
        MUSTER_LET(history, store::open_sqlite_history(config_.state_dir + "/history.db"));
        history_ = std::move(history);
        return Ok{};
    }

    LoopHooks loop_hooks() {
        LoopHooks hooks;
        hooks.carry_out = [this](std::vector<core::Command> commands,
                                 const std::shared_ptr<const core::View>& view) {
            carry_out(std::move(commands), view);
        };
        hooks.on_events = [this](std::uint64_t last) { watch_.reached(last); };
        hooks.feed_planner = [this](std::vector<scheduler::Change> changes, bool plan_done) {
            planner_->feed(std::move(changes), plan_done);
        };
        hooks.fatal = hooks_.fatal;
        hooks.log = hooks_.log;
        hooks.now = wall_now;
        return hooks;
    }

    // Commands to links that are gone are lost on purpose: the next Hello reconciles.
    void carry_out(std::vector<core::Command> commands,
                   const std::shared_ptr<const core::View>& view) {
        std::vector<core::Send> sends;
        std::vector<JobId> archive;
        Agents* agents = agents_view_;
        for (core::Command& command : commands) {
            if (auto* send = std::get_if<core::Send>(&command)) sends.push_back(std::move(*send));
            if (const auto* ended = std::get_if<core::Archive>(&command))
                archive.push_back(ended->job);
            if (const auto* close = std::get_if<core::CloseLink>(&command);
                close != nullptr && agents != nullptr) {
                agents->send(std::exchange(sends, {}));
                hooks_.log("link " + std::to_string(close->session) + " closed: " + close->reason);
                agents->close(close->session, close->reason);
            }
        }
        if (agents != nullptr && !sends.empty()) agents->send(std::move(sends));
        if (!archive.empty()) archiver_->add(std::move(archive), view);
    }

    Status serve() {
        rest::Backend::Health fixed;
        fixed.version = hooks_.version;
        fixed.state_dir = config_.state_dir;
        fixed.store = "sqlite";
        const std::string host = config_.advertise.empty() ? host_name() : config_.advertise;
        if (!config_.agents.empty() || !config_.listen.empty()) {
            std::vector<std::string> hosts = config_.hosts;
            for (const char* own : {"localhost", "127.0.0.1"}) hosts.emplace_back(own);
            hosts.push_back(host);
            MUSTER_LET(authority,
                       Authority::load_or_make(config_.state_dir + "/pki", hosts, wall_now()));
            authority_ = std::move(authority);
            fixed.ca_pem = authority_->ca.certificate_pem;
            fixed.ca_sha256 = authority_->ca_sha256;
        }
        if (!config_.agents.empty()) {
            MUSTER_LET(agents, Agents::start({config_.agents, authority_->own}, agents_hooks()));
            agents_ = std::move(agents);
            agents_view_ = agents_.get();
            fixed.agent_address = host + ":" + std::to_string(agents_->port());
        }
        backend_ =
            make_backend({loop_.get(), planner_.get(), [this] { return agents_view_.load(); },
                          store_.get(), history_.get(), &watch_, fixed, wall_now(), wall_now});
        return serve_rest();
    }

    AgentsHooks agents_hooks() {
        AgentsHooks hooks;
        hooks.post = [this](core::Event event) { loop_->post(std::move(event)); };
        hooks.join = [this](net::JoinAsk ask, net::JoinReply reply) {
            answer_join(*loop_, *authority_, std::move(ask), std::move(reply), wall_now());
        };
        hooks.log = hooks_.log;
        return hooks;
    }

    Status serve_rest() {
        net::HttpServerOptions options;
        options.unix_path = config_.socket;
        options.tcp_address = config_.listen;
        // With the CA in the chain, a client that pins only its hash can follow.
        if (!config_.listen.empty())
            options.tls =
                net::ServerTls{authority_->own.certificate_pem + authority_->ca.certificate_pem,
                               authority_->own.key_pem};
        if (!config_.socket.empty()) {
            std::error_code ignored;
            std::filesystem::create_directories(std::filesystem::path(config_.socket).parent_path(),
                                                ignored);
        }
        rest::Options rest_options;
        rest_options.own_uid = ::getuid();
        MUSTER_LET(server,
                   net::HttpServer::start(options, rest::make_handler(*backend_, rest_options)));
        rest_ = std::move(server);
        return Ok{};
    }

    const Config config_;
    const ControllerHooks hooks_;
    FolderLock lock_;
    std::unique_ptr<store::SqliteStore> store_;
    std::unique_ptr<ports::History> history_;
    std::optional<Authority> authority_;
    EventWatch watch_;
    std::atomic<Agents*> agents_view_ = nullptr;
    std::unique_ptr<Loop> loop_;
    std::unique_ptr<Archiver> archiver_;
    std::unique_ptr<Planner> planner_;
    std::unique_ptr<Agents> agents_;
    std::unique_ptr<rest::Backend> backend_;
    std::unique_ptr<net::HttpServer> rest_;
    std::unique_ptr<Recurring> recurring_;
    std::unique_ptr<Watchdog> watchdog_;
};

}  // namespace

Result<std::unique_ptr<Controller>> Controller::start(const Config& config, ControllerHooks hooks) {
    std::error_code failed;
    std::filesystem::create_directories(config.state_dir, failed);
    if (failed) {
        return Error{Code::Denied, "cannot make the state folder " + config.state_dir,
                     failed.message(), "create it, or set state_dir in controller.yaml"};
    }
    (void)::chmod(config.state_dir.c_str(), 0700);
    MUSTER_LET(lock, FolderLock::take(config.state_dir));
    auto running = std::make_unique<Running>(config, std::move(hooks), std::move(lock));
    MUSTER_TRY(running->run());
    return std::unique_ptr<Controller>(std::move(running));
}

}  // namespace muster::controller
