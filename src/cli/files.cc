#include "cli/files.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::cli {

Result<std::string> read_file(const std::string& path, std::size_t max) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return Error{Code::NotFound, path + " cannot be read", std::strerror(errno)};
    std::string text;
    char part[16384];
    for (;;) {
        const ssize_t got = ::read(fd, part, sizeof part);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            const int why = errno;
            ::close(fd);
            return Error{Code::NotFound, path + " cannot be read", std::strerror(why)};
        }
        if (got == 0) break;
        text.append(part, static_cast<std::size_t>(got));
        if (text.size() > max) {
            ::close(fd);
            return Error{Code::TooLarge,
                         path + " is larger than " + std::to_string(max) + " bytes"};
        }
    }
    ::close(fd);
    return text;
}

Status write_file(const std::string& path, std::string_view bytes, unsigned mode) {
    for (std::size_t slash = path.find('/', 1); slash != std::string::npos;
         slash = path.find('/', slash + 1))
        ::mkdir(path.substr(0, slash).c_str(), 0700);
    const std::string fresh = path + ".new." + std::to_string(::getpid());
    const auto failed = [&](int why) {
        ::unlink(fresh.c_str());
        return Error{Code::Internal, path + " cannot be written", std::strerror(why)};
    };
    const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0) return failed(errno);
    while (!bytes.empty()) {
        const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) {
            const int why = errno;
            ::close(fd);
            return failed(why);
        }
        bytes.remove_prefix(static_cast<std::size_t>(wrote));
    }
    if (::fsync(fd) != 0 || ::close(fd) != 0) return failed(errno);
    if (::rename(fresh.c_str(), path.c_str()) != 0) return failed(errno);
    return Ok{};
}

std::string octal(unsigned mode) {
    char text[8];
    std::snprintf(text, sizeof text, "%04o", mode);
    return text;
}

}  // namespace muster::cli
