// The agent's end of a supervisor's control socket.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "os/event_loop.h"
#include "os/posix.h"

namespace muster::os {

class SupervisorLink {
public:
    /// On the loop's thread. After on_gone nothing comes any more.
    struct Callbacks {
        std::function<void(char kind, std::string_view text, std::vector<Fd> fds)> on_packet;
        std::function<void()> on_gone;
    };
    SupervisorLink(EventLoop& loop, Fd socket, Callbacks callbacks);
    ~SupervisorLink();
    SupervisorLink(const SupervisorLink&) = delete;
    SupervisorLink& operator=(const SupervisorLink&) = delete;

    void send(char kind, std::string_view text);
    /// One more connection to the same supervisor.
    Result<Fd> connect_again();

private:
    void read();

    EventLoop& loop_;
    Fd socket_;
    Callbacks callbacks_;
};

/// To the supervisor of the task in `folder` (a descriptor of it).
Result<Fd> connect_supervisor(int folder);
/// Starts supervisors through one `muster-task --spawn`, which it starts (again) when needed. They
/// have sessions of their own and none of our descriptors.
class Spawner {
public:
    explicit Spawner(std::string program) : program_(std::move(program)) {}
    ~Spawner();
    Spawner(const Spawner&) = delete;
    Spawner& operator=(const Spawner&) = delete;

    /// The connection to the supervisor of the task in `folder`.
    Result<Fd> start(const std::string& folder);

private:
    Status open();
    void close();

    std::string program_;
    Fd socket_;
    pid_t pid_ = -1;
};
/// No process holds the launch file's lock.
bool supervisor_gone(int folder);
/// A supervisor has been there: the task may have run.
bool supervisor_began(int folder);

}  // namespace muster::os
