#include <algorithm>

#include "os/streams.h"

namespace muster::os {
namespace {

constexpr std::size_t kChunk = 64 * 1024;

class LogStream : public Stream, public std::enable_shared_from_this<LogStream> {
public:
    LogStream(EventLoop& loop, Task* task, std::string folder, const protocol::ReadLog& ask,
              StreamOut out)
        : loop_(loop),
          task_(task),
          ask_(ask),
          out_(std::move(out)),
          left_(ask.limit > 0 ? ask.limit : std::int64_t{1} << 20),
          reader_(std::move(folder),
                  {.offset = ask.offset, .local_rank = ask.local_rank, .since = ask.since}) {
        if (task_ != nullptr) alive_ = task_->alive();
    }

    ~LogStream() override {
        if (task_alive() && watch_ != 0) task_->forget_watch(watch_);
    }

    void pump() {
        watch_ = 0;
        if (over_) return;
        const bool ended = !task_alive() || task_->ended();
        const std::int64_t known = task_alive() ? task_->log_end() : 0;
        const auto size = static_cast<std::size_t>(
            std::min<std::int64_t>(left_, static_cast<std::int64_t>(kChunk)));
        LogPiece piece = size == 0 ? LogPiece{} : reader_.next(size);
        if (!piece.bytes.empty()) {
            left_ -= static_cast<std::int64_t>(piece.bytes.size());
            out_(protocol::LogChunk{
                .request = ask_.request, .offset = piece.offset, .bytes = std::move(piece.bytes)});
            if (left_ > 0) return again();
        }
        // Who follows asks again from here: what is under way to him is bounded.
        if (!ask_.follow || ended || left_ <= 0) {
            over_ = true;
            out_(protocol::LogChunk{
                .request = ask_.request, .offset = piece.offset, .bytes = {}, .end = true});
            return;
        }
        watch_ = task_->watch_log(known, [weak = weak_from_this()] {
            if (const auto self = weak.lock()) self->pump();
        });
    }

private:
    bool task_alive() const { return task_ != nullptr && *alive_; }
    void again() {
        loop_.post([weak = weak_from_this()] {
            if (const auto self = weak.lock()) self->pump();
        });
    }

    EventLoop& loop_;
    Task* task_;
    std::shared_ptr<bool> alive_;
    protocol::ReadLog ask_;
    StreamOut out_;
    std::int64_t left_;
    LogReader reader_;
    Task::WatchId watch_ = 0;
};

}  // namespace

std::shared_ptr<Stream> read_log(EventLoop& loop, Task* task, std::string folder,
                                 const protocol::ReadLog& ask, StreamOut out) {
    auto stream = std::make_shared<LogStream>(loop, task, std::move(folder), ask, std::move(out));
    stream->pump();
    return stream;
}

}  // namespace muster::os
