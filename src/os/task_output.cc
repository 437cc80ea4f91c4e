// A task's log on its way up: its newest words, the lines that match rules, and whoever follows.
#include <algorithm>

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "os/checkpoints.h"
#include "os/task.h"
#include "os/task_signals.h"

namespace muster::os {
namespace {

constexpr std::int64_t kTailMs = 1'000;
constexpr std::size_t kTailBytes = 64 * 1024;
constexpr std::int64_t kRuleBytesMax = 4 << 20;  // Looked at in one go, or after a restart.
constexpr std::size_t kLineMax = 16 * 1024;

}  // namespace

void Task::watch_supervisor_log() {
    if (!link_) return;
    asked_log_ = log_end_;
    link_->send(packet::kWatchLog, std::to_string(log_end_));
}

void Task::on_log(std::int64_t end) {
    log_end_ = std::max(log_end_, end);
    asked_log_ = -1;
    std::vector<std::function<void()>> due;
    std::erase_if(watches_, [&](auto& entry) {
        if (entry.second.known >= log_end_) return false;
        due.push_back(std::move(entry.second.then));
        return true;
    });
    for (const auto& then : due) then();
    if (tail_timer_ != 0) {
        if (!watches_.empty()) watch_supervisor_log();
        return;
    }
    send_tail();
    // From now on at most once a second; the supervisor stays silent until it is asked again.
    tail_timer_ = context_.loop->after(kTailMs, [this] {
        tail_timer_ = 0;
        send_tail();
        if (asked_log_ < 0) watch_supervisor_log();
    });
    if (!watches_.empty()) watch_supervisor_log();
}

Task::WatchId Task::watch_log(std::int64_t known, std::function<void()> then) {
    const WatchId id = ++last_watch_;
    watches_.emplace(id, Watch{.known = known, .then = std::move(then)});
    if (known < log_end_ || ended()) {
        context_.loop->after(0, [this, alive = alive_, id] {
            if (!*alive) return;
            const auto found = watches_.find(id);
            if (found == watches_.end()) return;
            const auto due = std::move(found->second.then);
            watches_.erase(found);
            due();
        });
    } else if (asked_log_ < 0) {
        watch_supervisor_log();
    }
    return id;
}

void Task::forget_watch(WatchId id) {
    watches_.erase(id);
}

void Task::send_tail() {
    if (!tail_) {
        if (log_end_ == 0 && (log_told_ || log_size(folder_) == 0)) return;
        const std::int64_t back =
            spec_.log_rules.empty() ? static_cast<std::int64_t>(kTailBytes) : kRuleBytesMax;
        tail_ = std::make_unique<LogReader>(
            folder_, LogReader::Ask{.offset = std::max<std::int64_t>(log_end_ - back, 0)});
        for (const model::LogRule& rule : spec_.log_rules)
            rules_.emplace_back(LineRule(rule.match));
    }
    protocol::LogTail tail{.key = order_.key, .offset = 0, .bytes = {}};
    for (std::int64_t taken = 0; taken < kRuleBytesMax;) {
        LogPiece piece = tail_->next(kTailBytes);
        if (piece.bytes.empty()) break;
        taken += static_cast<std::int64_t>(piece.bytes.size());
        match_rules(piece.bytes);
        if (tail.offset + static_cast<std::int64_t>(tail.bytes.size()) != piece.offset)
            tail.bytes.clear();
        if (tail.bytes.empty()) tail.offset = piece.offset;
        tail.bytes += piece.bytes;
        if (tail.bytes.size() > kTailBytes) {
            const std::size_t extra = tail.bytes.size() - kTailBytes;
            tail.bytes.erase(0, extra);
            tail.offset += static_cast<std::int64_t>(extra);
        }
    }
    if (tail.bytes.empty()) return;
    log_end_ = std::max(log_end_, tail.offset + static_cast<std::int64_t>(tail.bytes.size()));
    context_.tell(std::move(tail));
}

void Task::match_rules(std::string_view bytes) {
    if (std::none_of(rules_.begin(), rules_.end(),
                     [](const auto& rule) { return rule.has_value(); }))
        return;
    rule_line_.append(bytes);
    std::size_t at = 0;
    while (true) {
        const std::size_t end = rule_line_.find('\n', at);
        if (end == std::string::npos && rule_line_.size() - at < kLineMax) break;
        const std::string_view line = std::string_view(rule_line_).substr(at, end - at);
        for (std::size_t i = 0; i < rules_.size(); ++i) {
            if (!rules_[i] || !rules_[i]->matches(line)) continue;
            rules_[i].reset();  // Once is enough to act on.
            context_.tell(protocol::LogMatch{.key = order_.key,
                                             .rule = static_cast<std::uint32_t>(i),
                                             .line = std::string(line.substr(0, 1024))});
        }
        if (end == std::string::npos) {
            at = rule_line_.size();
            break;
        }
        at = end + 1;
    }
    rule_line_.erase(0, at);
}

void Task::write_notice(const protocol::NoticeTask& notice) {
    const std::int64_t seconds = notice.grace.ms / 1000;
    const std::string line =
        "preempt reason=" +
        escape_value(notice.reason.empty() ? std::string(model::to_text(notice.cause))
                                           : notice.reason) +
        " deadline=" + std::to_string(::time(nullptr) + seconds) +
        " seconds=" + std::to_string(seconds) + "\n";
    const Fd run(
        ::openat(dir_.get(), files::kRun, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (!run) return;
    (void)write_small_file(run.get(), "notice", line, false, 0644);
}

}  // namespace muster::os
