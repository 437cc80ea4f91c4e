#include "rest/watch.h"

#include <charconv>
#include <map>

namespace muster::rest {
namespace {

constexpr std::size_t kChunk = 64 * 1024;

struct Watch : std::enable_shared_from_this<Watch> {
    CallPtr call;
    std::shared_ptr<Subject> subject;
    std::shared_ptr<Stream> stream;
    std::shared_ptr<void> handle;
    ViewPtr view;  // The newest; `dirty` is what it has and the client has not.
    // Value: the row as it was named when it left, for rows that the client may
    // have.
    std::map<std::uint64_t, std::string> dirty;
    std::uint64_t snapshot_below = 0;  // Not 0: the snapshot goes on below it.
    bool bookmark_due = false;
    bool blocked = false, closed = false;
    std::string refused;  // The chunk that was Full.

    void hear(const Round& round) {
        for (const std::uint64_t id : subject->changed(round)) {
            const bool had = subject->shown(*round.before, id);
            if (!had && !subject->shown(*round.after, id)) continue;
            std::string& key = dirty[id];
            if (had) key = key_of(*round.before, id);
        }
        if (snapshot_below == 0) bookmark_due = bookmark_due || !dirty.empty();
        view = round.after;
        pump();
    }
    std::string key_of(const core::View& from, std::uint64_t id) {
        JsonWriter json;
        subject->write_key(json, from, id);
        return std::move(json).text();
    }
    void pump() {
        while (!closed && !blocked) {
            if (refused.empty()) refused = next_chunk();
            if (refused.empty()) return;
            switch (stream->write(refused)) {
                case net::Write::Accepted: refused.clear(); break;
                case net::Write::Full: blocked = true; break;
                case net::Write::Closed: close(); break;
            }
        }
    }
    std::string next_chunk() {
        std::string out;
        while (snapshot_below != 0 && out.size() < kChunk) {
            const std::uint64_t id = subject->below(*view, snapshot_below);
            snapshot_below = id;
            if (id == 0) {
                bookmark_due = true;
            } else {
                append(out, "snapshot", id);
                dirty.erase(id);
            }
        }
        if (snapshot_below != 0) return out;
        while (!dirty.empty() && out.size() < kChunk) {
            const auto next = dirty.extract(dirty.begin());
            if (subject->shown(*view, next.key()))
                append(out, "put", next.key());
            else if (!next.mapped().empty())
                out += "event: delete\ndata: " + next.mapped() + "\n\n";
        }
        if (dirty.empty() && bookmark_due) {
            bookmark_due = false;
            const std::string revision = revision_text(*view);
            out += "id: " + revision + "\nevent: bookmark\ndata: {\"revision\":\"" + revision +
                   "\"}\n\n";
        }
        return out;
    }
    void append(std::string& out, std::string_view event, std::uint64_t id) {
        JsonWriter json;
        subject->write(json, *view, id);
        out.append("event: ").append(event).append("\ndata: ").append(json.text()).append("\n\n");
    }
    void close() {
        closed = true;
        handle.reset();
    }
};

/// "TERM-REVISION", or nothing.
std::optional<std::pair<std::uint64_t, std::uint64_t>> parse_id(std::string_view text) {
    std::uint64_t term = 0, revision = 0;
    const char* const last = text.data() + text.size();
    const auto first = std::from_chars(text.data(), last, term);
    if (first.ec != std::errc{} || first.ptr == last || *first.ptr != '-') return std::nullopt;
    const auto second = std::from_chars(first.ptr + 1, last, revision);
    if (second.ec != std::errc{} || second.ptr != last) return std::nullopt;
    return std::pair(term, revision);
}

void begin(const std::shared_ptr<Watch>& watch) {
    Api& api = *watch->call->api;
    const std::weak_ptr<Watch> weak = watch;
    auto joined = api.hub.listen([weak](const Round& round) {
        if (const auto awake = weak.lock()) awake->hear(round);
    });
    watch->handle = std::move(joined.handle);
    watch->view = joined.view;
    const std::string_view last = watch->call->request.header("last-event-id");
    if (last.empty()) {
        watch->snapshot_below = ~std::uint64_t{0};
    } else {
        const auto id = parse_id(last);
        const auto missed = id ? api.hub.since(id->first, id->second) : std::nullopt;
        if (!missed) {
            return watch->call->fail(numbered(
                errors::kCompacted,
                "what changed since " + std::string(last.substr(0, 64)) + " is not known any more",
                {}, "watch without Last-Event-ID: a snapshot comes first"));
        }
        for (const std::uint64_t gone : watch->subject->missed(*missed)) {
            watch->dirty[gone] = watch->key_of(*watch->view, gone);
        }
        watch->bookmark_due = true;
    }
    watch->stream = watch->call->reply->stream({.headers = watch->call->stream_headers()});
    if (watch->stream == nullptr) return;
    // The stream keeps the watch: it lives as long as the client stays.
    watch->stream->on_closed([watch, worker = api.watches] {
        worker->post([watch] {
            watch->close();
            watch->stream.reset();
        });
    });
    watch->stream->on_drain([weak, worker = api.watches] {
        worker->post([weak] {
            const auto awake = weak.lock();
            if (awake == nullptr) return;
            awake->blocked = false;
            awake->pump();
        });
    });
    watch->pump();
}

}  // namespace

void start_watch(const CallPtr& call, std::shared_ptr<Subject> subject) {
    auto watch = std::make_shared<Watch>();
    watch->call = call;
    watch->subject = std::move(subject);
    with_view(call, [watch](const CallPtr& ready, const ViewPtr&) {
        ready->api->watches->post([watch] { begin(watch); });
    });
}

}  // namespace muster::rest
