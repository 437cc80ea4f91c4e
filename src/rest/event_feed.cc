#include "rest/event_feed.h"

#include <algorithm>
#include <atomic>
#include <deque>

#include "base/error_codes.h"
#include "base/json_writer.h"
#include "rest/body.h"

namespace muster::rest {
namespace {

constexpr std::size_t kRing = 4096;
constexpr std::size_t kReadAtOnce = 512;

std::string_view unquoted(std::string_view value) {
    if (value.size() >= 2 && value.front() == '"') return value.substr(1, value.size() - 2);
    return value;
}

bool type_accepted(const std::vector<std::string>& types, std::string_view type) {
    if (types.empty()) return true;
    return std::ranges::any_of(types, [&](const std::string& wanted) {
        if (!wanted.empty() && wanted.back() == '*') {
            return type.substr(0, wanted.size() - 1) ==
                   std::string_view(wanted).substr(0, wanted.size() - 1);
        }
        return type == wanted;
    });
}

}  // namespace

bool EventFilter::accepts(std::string_view json) const {
    if (types.empty() && job == 0 && node.empty()) return true;
    if (!type_accepted(types, unquoted(member_of(json, "type")))) return false;
    if (job != 0) {
        const std::string number = std::to_string(job);
        const bool own = unquoted(member_of(json, "job")) == number;
        const bool of_array = unquoted(member_of(json, "array_job")) == number;
        if (element < 0
                ? !own && !of_array
                : !of_array || member_of(json, "array_element") != std::to_string(element)) {
            return false;
        }
    }
    return node.empty() || unquoted(member_of(json, "node")) == node;
}

std::string to_sse(const ports::LoggedEvent& event) {
    std::string out = "id: " + std::to_string(event.sequence);
    const std::string_view type = unquoted(member_of(event.json, "type"));
    if (!type.empty()) out.append("\nevent: ").append(type);
    out.append("\ndata: ").append(event.json).append("\n\n");
    return out;
}

struct EventFeed::Shared : std::enable_shared_from_this<EventFeed::Shared> {
    Shared(Backend& the_backend, std::shared_ptr<Worker> the_worker)
        : backend(the_backend), worker(std::move(the_worker)) {}

    struct Item {
        std::uint64_t sequence;
        std::string json;
        std::shared_ptr<const std::string> sse;
    };
    struct Watcher {
        std::shared_ptr<Stream> stream;
        EventFilter filter;
        std::uint64_t last;
        bool waits_for_drain = false;
        bool done = false;
    };
    Backend& backend;
    const std::shared_ptr<Worker> worker;
    std::atomic<bool> closed{false};
    std::deque<Item> ring;  // Without gaps; its last is the newest read.
    std::uint64_t newest = 0;
    std::vector<std::shared_ptr<Watcher>> watchers;
    std::shared_ptr<void> waiting;

    void start(std::shared_ptr<Watcher> watcher) {
        if (watchers.empty()) {  // Nobody watched: the ring may have gaps by now.
            ring.clear();
            newest = backend.last_event();
        }
        watchers.push_back(watcher);
        const std::weak_ptr<Watcher> weak = watcher;
        watcher->stream->on_drain(later([weak](Shared& self) {
            const auto awake = weak.lock();
            if (awake == nullptr) return;
            awake->waits_for_drain = false;
            self.pump(*awake);
        }));
        watcher->stream->on_closed(later([weak](Shared& self) {
            if (const auto gone = weak.lock()) gone->done = true;
            self.sweep();
        }));
        pump(*watcher);
        arm();
    }
    template <class Work>
    std::function<void()> later(Work work) {
        return [weak = weak_from_this(), work] {
            const auto self = weak.lock();
            if (self == nullptr) return;
            self->worker->post([weak, work] {
                if (const auto alive = weak.lock()) work(*alive);
            });
        };
    }
    void arm() {
        if (waiting || closed || watchers.empty()) return;
        waiting = backend.on_event(newest, later([](Shared& self) {
                                       self.waiting.reset();
                                       self.read();
                                       self.arm();
                                   }));
    }
    void read() {
        for (;;) {
            auto events = backend.events_after(newest, kReadAtOnce);
            if (!events) {  // Compacted past us: those behind find out in catch_up().
                ring.clear();
                newest = backend.last_event();
                break;
            }
            for (ports::LoggedEvent& event : *events) {
                newest = event.sequence;
                auto sse = std::make_shared<const std::string>(to_sse(event));
                ring.push_back({event.sequence, std::move(event.json), std::move(sse)});
            }
            while (ring.size() > kRing) ring.pop_front();
            if (events->size() < kReadAtOnce) break;
        }
        const auto present = watchers;
        for (const auto& watcher : present) pump(*watcher);
        sweep();
    }
    void pump(Watcher& watcher) {
        while (!watcher.done && !watcher.waits_for_drain && watcher.last < newest) {
            if (ring.empty() || watcher.last + 1 < ring.front().sequence) {
                catch_up(watcher);
                continue;
            }
            const std::size_t at = watcher.last + 1 - ring.front().sequence;
            const Item& item = ring[at];
            if (watcher.filter.accepts(item.json) && !write(watcher, item.sse)) return;
            watcher.last = item.sequence;
        }
    }
    /// From the log, for what is older than the ring.
    void catch_up(Watcher& watcher) {
        auto events = backend.events_after(watcher.last, kReadAtOnce);
        if (!events || events->empty()) {
            const Error error = events ? numbered(errors::kCompacted, "the next event is not there")
                                       : events.error();
            JsonWriter json;
            json.begin_object().field("code", error_name(number_of(error)));
            json.field("detail", error.message).end_object();
            watcher.stream->write("event: gone\ndata: " + json.text() + "\n\n");
            watcher.stream->close();
            watcher.done = true;
            return;
        }
        for (const ports::LoggedEvent& event : *events) {
            if (watcher.filter.accepts(event.json) &&
                !write(watcher, std::make_shared<const std::string>(to_sse(event)))) {
                return;
            }
            watcher.last = event.sequence;
        }
    }
    bool write(Watcher& watcher, std::shared_ptr<const std::string> chunk) {
        switch (watcher.stream->write(std::move(chunk))) {
            case net::Write::Accepted: return true;
            case net::Write::Full: watcher.waits_for_drain = true; break;
            case net::Write::Closed: watcher.done = true; break;
        }
        return false;
    }
    void sweep() {
        std::erase_if(watchers, [](const auto& watcher) { return watcher->done; });
        if (watchers.empty()) waiting.reset(), ring.clear();
    }
};

EventFeed::EventFeed(Backend& backend, std::shared_ptr<Worker> worker)
    : shared_(std::make_shared<Shared>(backend, std::move(worker))) {}
EventFeed::~EventFeed() {
    shared_->closed = true;
}

void EventFeed::watch(std::uint64_t after, EventFilter filter, std::shared_ptr<Stream> stream) {
    auto watcher = std::make_shared<Shared::Watcher>();
    watcher->stream = std::move(stream);
    watcher->filter = std::move(filter);
    watcher->last = after;
    shared_->start(std::move(watcher));
}

}  // namespace muster::rest
