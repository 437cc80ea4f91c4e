// Log readings and tunnels into tasks. All on the loop's thread, but for their handles.
#pragma once

#include <memory>
#include <string>

#include "os/task.h"

namespace muster::os {

/// Something that runs on the loop until it says that it is over.
class Stream {
public:
    virtual ~Stream() = default;
    virtual void input(const protocol::TunnelInput&) {}
    bool over() const { return over_; }

protected:
    bool over_ = false;
};

using StreamOut = ports::Runtime::Sink;

/// `task`: null when only the kept log in `folder` is left.
std::shared_ptr<Stream> read_log(EventLoop& loop, Task* task, std::string folder,
                                 const protocol::ReadLog& ask, StreamOut out);
std::shared_ptr<Stream> open_exec(EventLoop& loop, Task& task, const protocol::OpenTunnel& ask,
                                  StreamOut out);
std::shared_ptr<Stream> open_attach(EventLoop& loop, Task& task, const protocol::OpenTunnel& ask,
                                    StreamOut out);

}  // namespace muster::os
