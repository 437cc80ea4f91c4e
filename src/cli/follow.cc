#include "cli/follow.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <thread>
#include <variant>

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error_codes.h"
#include "base/text.h"
#include "cli/format.h"
#include "cli/job_view.h"
#include "cli/log_printer.h"
#include "cli/mailbox.h"
#include "cli/panel.h"
#include "cli/width.h"

namespace muster::cli {
namespace {

constexpr Duration kTick{200};
constexpr Duration kProgressEvery{5000};
constexpr Duration kStreamWait{60'000};
/// How long the last lines of output may take after the job has ended.
constexpr Duration kDrainMax{10'000};
/// How long an ended job may take to appear in the history.
constexpr Duration kHistoryMax{10'000};

struct JobNews {
    std::shared_ptr<JsonDocument> row;  // nullptr: it left the live state.
};
struct LogNews {
    std::int64_t attempt = 0;
    std::int64_t rank = 0;
    std::string text;
};
struct LogEnd {
    std::int64_t attempt = 0;
};
struct Told {
    std::string line;
};
struct Broken {
    Error error;
};

using News = std::variant<JobNews, LogNews, LogEnd, Told, Broken>;

/// The threads that read, each its own stream. The main thread takes what they put.
class Readers {
public:
    Readers(const Client& client, std::string job)
        : client_(client), job_(std::move(job)), stop_fd_(::eventfd(0, EFD_CLOEXEC)) {
        threads_.emplace_back([this] { read_job(); });
    }
    ~Readers() {
        stop_ = true;
        box_.close();
        const std::uint64_t one = 1;
        [[maybe_unused]] const ssize_t woken = ::write(stop_fd_, &one, sizeof one);
        for (std::thread& thread : threads_) thread.join();
        ::close(stop_fd_);
    }
    Readers(const Readers&) = delete;
    Readers& operator=(const Readers&) = delete;
    void read_logs(std::int64_t attempt) {
        threads_.emplace_back([this, attempt] { read_log(attempt); });
    }
    std::optional<News> take(Duration wait) { return box_.take(wait); }

private:
    void read_job() {
        const std::string target =
            "/v1/jobs" +
            Query().add("id", job_).add("fields", kJobViewFields).add("watch", "1").text();
        EventStream stream(client_, {.target = target, .interrupt_fd = stop_fd_});
        bool seen = false;
        while (!stop_) {
            auto next = stream.next(kStreamWait);
            if (!next) {
                box_.put(Broken{next.error()});
                return;
            }
            switch (next->got) {
                case EventStream::Got::Event: {
                    const std::string& name = next->event.name;
                    // Nothing live of that name: it has ended, or never was.
                    if (name == "delete" || (name == "bookmark" && !seen)) box_.put(JobNews{});
                    if (name != "put" && name != "snapshot") break;
                    auto document = JsonDocument::parse(std::move(next->event.data));
                    if (!document) break;
                    seen = true;
                    box_.put(JobNews{std::make_shared<JsonDocument>(*std::move(document))});
                    break;
                }
                case EventStream::Got::Away:
                    box_.put(Told{"the controller is away; waiting for it (the job goes on)"});
                    break;
                case EventStream::Got::Back: box_.put(Told{"the controller is back"}); break;
                case EventStream::Got::Interrupted: return;
                case EventStream::Got::Restarted: seen = false; break;
                case EventStream::Got::TimedOut:
                case EventStream::Got::Ended: break;
            }
        }
    }
    void read_log(std::int64_t attempt) {
        const std::string target =
            "/v1/jobs/" + job_ + "/logs" +
            Query().add("follow", "1").add("attempt", std::to_string(attempt)).text();
        EventStream stream(client_, {.target = target, .ends_at = "end", .interrupt_fd = stop_fd_});
        while (!stop_) {
            auto next = stream.next(kStreamWait);
            if (!next) {
                box_.put(Told{"output: " + next.error().message});
                break;
            }
            if (next->got == EventStream::Got::Interrupted) return;
            if (next->got == EventStream::Got::Ended) break;
            if (next->got != EventStream::Got::Event) continue;
            const auto data = JsonDocument::parse(std::move(next->event.data));
            if (!data) continue;
            if (next->event.name == "log")
                box_.put(
                    LogNews{attempt, data->root()["rank"].integer(), data->root()["text"].text()});
            if (next->event.name == "note")
                box_.put(Told{"output of rank " + data->root()["rank"].text() + ": " +
                              data->root()["message"].text()});
        }
        box_.put(LogEnd{attempt});
    }

    const Client& client_;
    std::string job_;
    Mailbox<News> box_{1024};
    const int stop_fd_;  // Readable from the end on.
    std::atomic<bool> stop_ = false;
    std::vector<std::thread> threads_;
};

/// Steps a second over the last half minute of one attempt.
class Pace {
public:
    void seen(std::int64_t attempt, std::int64_t step, Time now) {
        if (attempt != attempt_ || (!seen_.empty() && step < seen_.back().step)) seen_.clear();
        attempt_ = attempt;
        if (!seen_.empty() && seen_.back().step == step) return;
        seen_.push_back({now, step});
        while (seen_.size() > 2 && seen_.front().at + Duration{30'000} < now) seen_.pop_front();
    }
    double steps_per_s() const {
        if (seen_.size() < 2) return 0;
        const double ms = static_cast<double>((seen_.back().at - seen_.front().at).ms);
        return ms < 500 ? 0
                        : static_cast<double>(seen_.back().step - seen_.front().step) * 1000 / ms;
    }

private:
    struct Seen {
        Time at;
        std::int64_t step;
    };
    std::int64_t attempt_ = -1;
    std::deque<Seen> seen_;
};

class Follower {
public:
    Follower(App& app, Client& client, const FollowOptions& options)
        : app_(app),
          client_(client),
          options_(options),
          panel_(app.out(), app.err(), app.world().err_tty && options.progress && !options.quiet),
          printer_({.color = app.out_color()}),
          interrupt_fd_(app.catch_interrupts()),
          readers_(client, options.job) {}

    int run() {
        while (!over()) {
            auto news = readers_.take(kTick);
            if (news) std::visit([this](auto& each) { take(each); }, *news);
            if (gone_ && !ended_) look_in_history();
            if (broken_) {
                panel_.close();
                app_.fail(*broken_);
                return exit_codes::kMusterFailed;
            }
            if (interrupted_within(interrupt_fd_, {0})) return leave();
            show();
            if (!app_.out().good()) return leave();
        }
        panel_.print(printer_.rest());
        panel_.close();
        if (options_.timeline && !options_.quiet) {
            const bool color = app_.err_color();
            app_.note("\n" + paint("Timeline of job " + job_.id + " " + printable(job_.name),
                                   Tone::Bold, color));
            app_.err().write(timeline_text(job_, app_.now(), color, err_width()) +
                             result_line(job_, color));
            app_.err().flush();
        }
        return job_exit_code(job_);
    }

private:
    bool over() const {
        if (!ended_) return false;
        if (!options_.logs || log_attempt_ < 0 || log_ended_ == log_attempt_) return true;
        return app_.now() > drain_until_;
    }
    int leave() {
        panel_.print(printer_.rest());
        panel_.close();
        if (!options_.quiet)
            app_.note("job " + options_.job + " goes on; `muster status " + options_.job +
                      " -w` shows it, `muster cancel " + options_.job + "` ends it");
        return interrupt_code(interrupt_fd_);
    }

    void take(JobNews& news) {
        if (news.row)
            update(job_view(news.row->root()));
        else
            gone_ = true;
    }
    /// It left the live state: the history has the whole of it. Asked again while nobody answers.
    void look_in_history() {
        auto whole = client_.get(target("/v1/jobs/", options_.job));
        if (!whole && is_away(whole.error())) return;
        // Between the live state and the history there may be a moment.
        if (!whole && whole.error().code == Code::NotFound &&
            (!job_.id.empty() || options_.exists)) {
            if (gone_at_.ms == 0) gone_at_ = app_.now();
            if (app_.now() < gone_at_ + kHistoryMax) return;
        }
        gone_ = false;
        if (!whole)
            broken_ = whole.error();
        else
            update(job_view(whole->root()));
    }
    void take(LogNews& news) { panel_.print(printer_.take(news.rank, news.text)); }
    void take(LogEnd& end) {
        log_ended_ = std::max(log_ended_, end.attempt);
        panel_.print(printer_.rest());
    }
    void take(Told& told) { tell(told.line, Tone::Dim); }
    void take(Broken& broken) { broken_ = broken.error; }

    void tell(const std::string& line, Tone tone = Tone::Plain) {
        if (options_.quiet) return;
        const bool color = app_.err_color();
        panel_.note(paint(clock_text(app_.now(), app_.now()) + " ", Tone::Dim, color) +
                    paint(line, tone, color));
    }

    void update(JobView fresh) {
        if (!fresh.progress.known()) fresh.progress = job_.progress;
        if (fresh.ranks.empty() && fresh.attempt == job_.attempt) fresh.ranks = job_.ranks;
        const JobView before = std::exchange(job_, std::move(fresh));
        if (job_.progress.known()) pace_.seen(job_.attempt, job_.progress.step, app_.now());
        if (before.state != job_.state || before.attempt != job_.attempt ||
            before.held != job_.held)
            tell_change(before);
        else
            tell_wait(before);
        if (job_.checkpoint_step > before.checkpoint_step && before.checkpoint_step < 0)
            tell("first complete checkpoint: step " + std::to_string(job_.checkpoint_step),
                 Tone::Dim);
        const bool started =
            !job_.node_names.empty() && !has_ended(job_.state) && job_.state != "pending";
        const bool missed = has_ended(job_.state) && log_attempt_ < 0;
        if (options_.logs && job_.array.empty() && job_.attempt > log_attempt_ &&
            (started || missed)) {
            log_attempt_ = job_.attempt;

            printer_.set_ranks(static_cast<std::size_t>(std::max<std::int64_t>(job_.nodes, 1)));
            readers_.read_logs(log_attempt_);
        }
        if (has_ended(job_.state) && !ended_) {
            ended_ = true;
            drain_until_ = app_.now() + kDrainMax;
            finish_view();
        }
    }
    /// Attempts as the history has them, with the last progress that was seen.
    void finish_view() {
        auto whole = client_.get(target("/v1/jobs/", options_.job));
        if (!whole) return;
        JobView last = job_view(whole->root());
        if (!last.progress.known()) last.progress = job_.progress;
        if (last.ranks.empty()) last.ranks = job_.ranks;
        if (last.node_names.empty()) last.node_names = job_.node_names;
        job_ = std::move(last);
    }

    /// The first reason that a plan gave, and each of another kind.
    void tell_wait(const JobView& before) {
        if (before.state != "pending" || job_.state != "pending" || job_.code == before.code ||
            job_.reason.empty() || not_evaluated())
            return;
        tell("waits: " + job_.reason, Tone::Warn);
    }
    bool not_evaluated() const { return job_.code == error_name(errors::kNotEvaluated); }

    void tell_change(const JobView& before) {
        const std::string where =
            job_.node_names.empty() ? "" : " on " + host_list(job_.node_names);
        const std::string attempt =
            job_.attempt > 0 ? " (attempt " + std::to_string(job_.attempt) + ")" : "";
        if (job_.attempt > before.attempt && !job_.attempts.empty() && !before.id.empty()) {
            const AttemptView& last = job_.attempts.back();
            std::string line = attempt_end_words(last);
            if (last.last_step >= 0) line += ", at step " + std::to_string(last.last_step);
            tell(line, Tone::Bad);
        }
        if (job_.state == "pending") {
            tell(job_.held ? std::string("held until it is released")
                           : std::string(job_.attempt > 0 ? "queued again" : "queued") +
                                 (job_.reason.empty() || not_evaluated() ? "" : ": " + job_.reason),
                 Tone::Warn);
        } else if (job_.state == "starting") {
            std::string line = "starting" + where + attempt;
            if (job_.attempt > 0 && job_.checkpoint_step >= 0)
                line += " from step " + std::to_string(job_.checkpoint_step);
            tell(line);
        } else if (job_.state == "running") {
            if (job_.lost_ms > before_lost_) {
                std::string line = "recovered: running" + where + ", " +
                                   length_text(job_.lost_ms - before_lost_) + " lost";
                if (job_.steps_repeated > before_repeated_)
                    line += ", " + counted(job_.steps_repeated - before_repeated_, "step") +
                            " to repeat";
                tell(line, Tone::Good);
            } else {
                tell("running" + where + attempt, Tone::Good);
            }
            before_lost_ = job_.lost_ms;
            before_repeated_ = job_.steps_repeated;
        } else if (job_.state == "fencing") {
            tell(job_.reason.empty() ? "a node of it is silent" : job_.reason, Tone::Bad);
        } else if (job_.state == "stopping") {
            tell(job_.reason.starts_with("stopping") ? job_.reason : "stopping", Tone::Warn);
        } else {
            tell(end_text(job_), job_.state == "succeeded" ? Tone::Good : Tone::Bad);
        }
        said_at_ = app_.now();
    }

    void show() {
        if (options_.quiet || !options_.progress || job_.id.empty() || ended_) return;
        if (panel_.live()) {
            draw();
            return;
        }
        if (job_.state != "running" || !job_.progress.known() ||
            app_.now() < said_at_ + kProgressEvery || job_.progress.step == said_step_)
            return;
        said_at_ = app_.now();
        said_step_ = job_.progress.step;
        tell(progress_words(job_, pace_.steps_per_s()));
    }
    std::size_t err_width() const {
        int columns = app_.world().columns, rows = app_.world().rows;
        terminal_size(app_.err().fd(), columns, rows);
        return app_.world().err_tty ? static_cast<std::size_t>(columns) : 0;
    }
    void draw() {
        int columns = app_.world().columns, rows = app_.world().rows;
        terminal_size(app_.err().fd(), columns, rows);
        const auto width = static_cast<std::size_t>(std::max(columns - 1, 20));
        const bool color = app_.err_color();
        std::vector<std::string> lines;
        lines.push_back(header_line(job_, app_.now(), color));
        const std::string progress = progress_line(job_, pace_.steps_per_s(), width, color);
        if (!job_.array.empty()) {
            lines.push_back(job_.array);
        } else if (!progress.empty()) {
            lines.push_back(progress);
        } else if (!job_.reason.empty()) {
            lines.push_back(paint(fit(printable(job_.reason), width), Tone::Dim, color));
        }
        if (const std::string ranks = rank_line(job_, width, color); !ranks.empty())
            lines.push_back(ranks);
        if (job_.checkpoint_step >= 0)
            lines.push_back(paint("checkpoint step " + std::to_string(job_.checkpoint_step) + ", " +
                                      ago(job_.checkpoint_at, app_.now()) + " ago",
                                  Tone::Dim, color));
        for (std::string& line : lines) line = fit_painted(line, width);
        panel_.draw(std::move(lines));
    }

    App& app_;
    Client& client_;
    const FollowOptions& options_;
    Panel panel_;
    LogPrinter printer_;
    JobView job_;
    Pace pace_;
    std::optional<Error> broken_;
    bool ended_ = false, gone_ = false;
    std::int64_t log_attempt_ = -1, log_ended_ = -1, said_step_ = -1;
    std::int64_t before_lost_ = 0, before_repeated_ = 0;

    Time said_at_, drain_until_, gone_at_;
    int interrupt_fd_;
    Readers readers_;  // Last: its threads end before anything they touch does.
};

}  // namespace

int follow_job(App& app, const FollowOptions& options) {
    app.catch_interrupts();
    const auto client = app.client();
    if (!client) {
        app.fail(client.error());
        return exit_codes::kMusterFailed;
    }
    return Follower(app, **client, options).run();
}

}  // namespace muster::cli
