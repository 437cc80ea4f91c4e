// What a task says of itself: progress, checkpoints, and that it is safe or done.
#include <algorithm>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/checkpoints.h"
#include "os/environment.h"
#include "os/supervisor/log_writer.h"
#include "os/task.h"

namespace muster::os {
namespace {

constexpr std::int64_t kProgressMs = 1'000;  // Of one rank.

}  // namespace

Status Task::open_socket(std::uint32_t uid) {
    if (!listening_.fd || listening_.uid != uid) {
        const Fd run(
            ::openat(dir_.get(), files::kRun, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
        if (!run) return system_error("open", folder_ + "/" + files::kRun);
        MUSTER_LET(listening, TaskSocket::listen(run.get(), "sock", uid));
        listening_ = std::move(listening);
    }
    socket_ = std::make_unique<TaskSocket>(*context_.loop, std::move(listening_),
                                           [this](TaskLine line, TaskSocket::Answer answer) {
                                               on_line(std::move(line), std::move(answer));
                                           });
    return Ok{};
}

void Task::reopen_socket() {
    struct stat about {};
    if (::fstatat(dir_.get(), files::kRun, &about, AT_SYMLINK_NOFOLLOW) == 0)
        (void)open_socket(about.st_uid);
}

void Task::on_line(TaskLine line, TaskSocket::Answer answer) {
    if (const auto* progress = std::get_if<ProgressLine>(&line)) {
        on_progress(*progress);
        return answer("");
    }
    if (const auto* checkpoint = std::get_if<CheckpointLine>(&line))
        return on_checkpoint(*checkpoint, std::move(answer));
    if (std::holds_alternative<DoneLine>(line)) {
        if (!told_.done) (void)write(files::kDone, "");
        told_.done = true;
        return answer("");
    }
    answer("");
    // Of a gang only the controller knows whether the others are safe too.
    const bool alone = !order_.gang || order_.gang->size() <= 1;
    if (told_.notice != model::Cause::None && alone && link_)
        link_->send(packet::kStop,
                    std::to_string(std::max<std::int64_t>(notice_until_ms_ - steady_ms(), 1)));
}

void Task::on_progress(const ProgressLine& line) {
    const int slots = std::max(local_ranks(order_, spec_), 1);
    int local = 0;
    if (line.rank >= 0 && order_.gang) {
        int first = 0;
        for (std::uint32_t rank = 0; rank < order_.key.rank && rank < order_.gang->size(); ++rank)
            first += static_cast<int>(std::max<std::uint32_t>((*order_.gang)[rank].slots, 1));
        local = line.rank - first;
        const int own = order_.key.rank < order_.gang->size()
                            ? static_cast<int>((*order_.gang)[order_.key.rank].slots)
                            : slots;
        if (local < 0 || local >= std::max(slots, own)) local = 0;
    }
    Spoken& spoken = progress_[local];
    spoken.line = line;
    spoken.waiting = true;
    const std::int64_t now = steady_ms();
    if (now - spoken.sent_ms >= kProgressMs) return send_progress(local, spoken);
    if (progress_timer_ == 0)
        progress_timer_ = context_.loop->after(kProgressMs - (now - spoken.sent_ms), [this] {
            progress_timer_ = 0;
            send_all_progress();
        });
}

void Task::send_progress(int local_rank, Spoken& spoken) {
    spoken.waiting = false;
    spoken.sent_ms = steady_ms();
    context_.tell(protocol::Progress{.key = order_.key,
                                     .local_rank = local_rank,
                                     .step = spoken.line.step,
                                     .total = spoken.line.total,
                                     .metrics = spoken.line.metrics});
}

void Task::send_all_progress() {
    for (auto& [rank, spoken] : progress_)
        if (spoken.waiting) send_progress(rank, spoken);
}

void Task::on_checkpoint(const CheckpointLine& line, TaskSocket::Answer answer) {
    context_.slow->post([this, line, answer = std::move(answer), seen = checkpoint_dir_,
                         dir = checkpoint_dir_on_node_, alive = alive_, loop = context_.loop] {
        const Status checked = check_announced(dir, seen, line.path);
        std::string said = checked ? std::string() : checked.error().message;
        loop->post([this, line, answer, alive, said = std::move(said)] {
            if (!*alive) return;
            // Equal steps: the later line.
            if (said.empty() && line.step >= checkpoint_step_) {
                checkpoint_step_ = line.step;
                context_.tell(protocol::CheckpointDone{
                    .key = order_.key, .step = line.step, .path = line.path});
            }
            answer(said);
        });
    });
}

}  // namespace muster::os
