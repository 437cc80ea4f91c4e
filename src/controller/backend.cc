#include "controller/backend.h"

#include <mutex>
#include <vector>

namespace muster::controller {
namespace {

class BackendImpl final : public rest::Backend {
public:
    explicit BackendImpl(BackendParts parts) : p_(std::move(parts)) {}

    std::shared_ptr<const core::View> view() override { return p_.loop->view(); }
    void when_published(std::uint64_t revision, std::function<void()> then) override {
        p_.loop->when_published(revision, std::move(then));
    }
    void submit(core::Event event, std::function<void(Result<Answered>)> then) override {
        p_.loop->post(std::move(event),
                      [then = std::move(then)](Result<controller::Answered> answer) {
                          if (!answer) return then(std::move(answer).error());
                          then(Answered{std::move(answer->answer), answer->revision});
                      });
    }
    void ask(Question question) override { p_.planner->ask(std::move(question)); }
    ports::History& history() override { return *p_.history; }
    Result<std::vector<ports::LoggedEvent>> events_after(std::uint64_t after,
                                                         std::size_t limit) override {
        return p_.store->events_after(after, limit);
    }
    std::uint64_t last_event() override { return p_.store->last_event(); }
    std::shared_ptr<void> on_event(std::uint64_t after, std::function<void()> then) override {
        auto handle = p_.watch->add(after, std::move(then));
        p_.watch->reached(last_event());
        return handle;
    }
    Result<std::unique_ptr<rest::AgentStream>> read_log(NodeId node, protocol::ReadLog ask,
                                                        Chunk out) override {
        return open(node, std::move(ask), std::move(out));
    }
    Result<std::unique_ptr<rest::AgentStream>> open_tunnel(NodeId node, protocol::OpenTunnel ask,
                                                           Chunk out) override {
        return open(node, std::move(ask), std::move(out));
    }
    protocol::LogTail tail(const protocol::TaskKey& key) override {
        Agents* agents = p_.agents();
        return agents == nullptr ? protocol::LogTail{key, 0, {}} : agents->tail(key);
    }
    Health health() override {
        Health health = p_.fixed;
        const auto now_view = view();
        health.term = p_.store->term();
        health.uptime_ms = (p_.now() - p_.started).ms;
        health.loop_lag_ms = p_.loop->stats().lag_ms;
        health.planner_lag_ms = p_.planner->lag_ms();
        health.disk_full = p_.loop->stats().store_stuck || p_.store->nearly_full();
        health.frozen = now_view->frozen;
        return health;
    }

private:
    Result<std::unique_ptr<rest::AgentStream>> open(NodeId node, protocol::ControllerMessage ask,
                                                    Chunk out) {
        const auto now_view = view();
        const core::Node* known = now_view->nodes.find(node.value);
        if (known == nullptr)
            return Error{Code::NotFound, "node " + std::to_string(node.value) + " is not known"};
        const core::NodeLive* live = now_view->node_live.find(node.value);
        Agents* agents = p_.agents();
        if (live == nullptr || live->session == 0 || agents == nullptr) {
            return Error{Code::Unavailable,
                         "node " + known->facts->name + " has no link to the controller now", "",
                         "see muster nodes; try again when it is back"};
        }
        return agents->open(live->session, std::move(ask), std::move(out));
    }

    BackendParts p_;
};

}  // namespace

struct EventWatch::Impl {
    struct Watcher {
        std::uint64_t after;
        std::function<void()> then;
    };
    std::mutex mutex;
    std::vector<std::weak_ptr<Watcher>> watchers;
};

EventWatch::EventWatch() : impl_(std::make_unique<Impl>()) {}
EventWatch::~EventWatch() = default;

std::shared_ptr<void> EventWatch::add(std::uint64_t after, std::function<void()> then) {
    auto watcher = std::make_shared<Impl::Watcher>(after, std::move(then));
    const std::lock_guard lock(impl_->mutex);
    impl_->watchers.push_back(watcher);
    return watcher;
}

void EventWatch::reached(std::uint64_t last) {
    std::vector<std::shared_ptr<Impl::Watcher>> due;
    {
        const std::lock_guard lock(impl_->mutex);
        std::erase_if(impl_->watchers, [&](const std::weak_ptr<Impl::Watcher>& weak) {
            auto watcher = weak.lock();
            if (!watcher) return true;
            if (watcher->after >= last) return false;
            due.push_back(std::move(watcher));
            return true;
        });
    }
    for (const auto& watcher : due) watcher->then();
}

std::unique_ptr<rest::Backend> make_backend(BackendParts parts) {
    return std::make_unique<BackendImpl>(std::move(parts));
}

}  // namespace muster::controller
