// The Unix socket on which a task tells its progress; api/task-protocol.md.
//
// All on the loop's thread. Nothing a task does here can block or grow the agent: lines, rates and
// connections are bounded, and answers that do not fit are dropped.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "os/event_loop.h"
#include "os/posix.h"
#include "os/task_protocol.h"

namespace muster::os {

/// Listens at a name in a folder, and goes where the folder goes.
struct ListeningSocket {
    Fd fd;
    std::uint64_t inode = 0;  // Of the name, which another file can be given.
    std::uint32_t uid = 0;    // The only user whose connections are taken, besides root.
};

class TaskSocket {
public:
    /// Answers a line: "" is "ok", else the text after "error ". May be called later, once.
    using Answer = std::function<void(std::string)>;
    using OnLine = std::function<void(TaskLine, Answer)>;

    /// Binds anew at `name` in `folder` (a descriptor); the file is `uid`'s.
    static Result<ListeningSocket> listen(int folder, const char* name, std::uint32_t uid);
    /// What came before is not heard.
    TaskSocket(EventLoop& loop, ListeningSocket listening, OnLine on_line);
    ~TaskSocket();
    /// Hangs up, and gives the socket to the next.
    ListeningSocket release();
    TaskSocket(const TaskSocket&) = delete;
    TaskSocket& operator=(const TaskSocket&) = delete;

private:
    struct Connection;
    void stop();
    void accept();
    void read(Connection& connection);
    void take_lines(Connection& connection);
    bool take_line(Connection& connection, std::string_view line);
    void pause_for_rate();
    void close(int fd);
    static void answer(Connection& connection, const std::string& text);

    EventLoop& loop_;
    ListeningSocket listening_;
    OnLine on_line_;
    std::map<int, std::shared_ptr<Connection>> connections_;
    TokenBucket lines_, others_;
    EventLoop::Timer rate_timer_ = 0;
};

}  // namespace muster::os
