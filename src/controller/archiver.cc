#include "controller/archiver.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/thread_name.h"
#include "rest/archive.h"

namespace muster::controller {

struct Archiver::Impl {
    ports::History& history;
    std::function<void(std::vector<JobId>)> archived;
    std::function<void(const std::string&)> log;
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::pair<std::vector<JobId>, std::shared_ptr<const core::View>>> waiting;
    bool stopping = false;
    std::thread thread;

    void run() {
        name_thread("archiver");
        for (;;) {
            decltype(waiting) taken;
            {
                std::unique_lock lock(mutex);
                changed.wait(lock, [&] { return stopping || !waiting.empty(); });
                if (stopping)
                    return;  // What is not archived yet is asked for again after the restart.
                taken.swap(waiting);
            }
            std::vector<ports::EndedJob> rows;
            std::vector<JobId> ids;
            for (const auto& [jobs, view] : taken) {
                for (const JobId job : jobs) {
                    if (auto row = rest::ended_job(*view, job)) rows.push_back(*std::move(row));
                    ids.push_back(job);
                }
            }
            if (!append(rows)) return;
            archived(std::move(ids));
        }
    }

    // Tries until it is done; false: stop.
    bool append(const std::vector<ports::EndedJob>& rows) {
        for (bool told = false;; told = true) {
            const Status done = history.append(rows);
            if (done) return true;
            if (!told)
                log("history: " + done.error().message + ": " + done.error().cause +
                    "; trying again");
            std::unique_lock lock(mutex);
            if (changed.wait_for(lock, std::chrono::seconds(1), [&] { return stopping; }))
                return false;
        }
    }
};

Archiver::Archiver(ports::History& history, std::function<void(std::vector<JobId>)> archived,
                   std::function<void(const std::string&)> log)
    : impl_(new Impl{history, std::move(archived), std::move(log), {}, {}, {}, false, {}}) {
    impl_->thread = std::thread([this] { impl_->run(); });
}

Archiver::~Archiver() {
    {
        const std::lock_guard lock(impl_->mutex);
        impl_->stopping = true;
    }
    impl_->changed.notify_all();
    impl_->thread.join();
}

void Archiver::add(std::vector<JobId> jobs, std::shared_ptr<const core::View> view) {
    {
        const std::lock_guard lock(impl_->mutex);
        impl_->waiting.emplace_back(std::move(jobs), std::move(view));
    }
    impl_->changed.notify_one();
}

}  // namespace muster::controller
