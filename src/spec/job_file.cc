// Reads a file that people wrote, and never more of it than it may have.
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_codes.h"
#include "base/units.h"
#include "spec/parse.h"

namespace muster::spec {
namespace {

class Descriptor {
public:
    explicit Descriptor(int number) : number_(number) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (number_ > 2) ::close(number_);
    }
    int number() const { return number_; }

private:
    int number_;
};

Error system_error(const std::string& path, int number) {
    const Code code = number == ENOENT || number == ENOTDIR ? Code::NotFound
                      : number == EACCES || number == EPERM ? Code::Denied
                                                            : Code::Invalid;
    Error error =
        numbered(errors::kJobUnreadable, path + ": cannot be read: " + std::strerror(number));
    error.code = code;
    return error;
}

Error too_large(const std::string& path, const std::string& size, std::size_t max,
                const std::string& what) {
    return numbered(errors::kJobTooLarge, path + ": " + size + ", over the limit of " +
                                              format_bytes({static_cast<std::int64_t>(max)}) +
                                              " for " + what);
}

}  // namespace

Result<std::string> read_job_file(const std::string& path) {
    return read_text_file(path, kJobFileMax, "a job file");
}

Result<std::string> read_text_file(const std::string& path, std::size_t max,
                                   const std::string& what) {
    const Descriptor file(path == "-" ? 0 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.number() < 0) return system_error(path, errno);
    struct stat facts {};
    if (::fstat(file.number(), &facts) != 0) return system_error(path, errno);
    if (S_ISDIR(facts.st_mode))
        return numbered(errors::kJobUnreadable, path + ": is a directory, not " + what);
    if (S_ISREG(facts.st_mode) && facts.st_size > static_cast<off_t>(max))
        return too_large(path, format_bytes({facts.st_size}), max, what);
    std::string out;
    char chunk[16'384];
    for (;;) {
        const ssize_t n = ::read(file.number(), chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return system_error(path, errno);
        if (n == 0) return out;
        out.append(chunk, static_cast<std::size_t>(n));
        if (out.size() > max) return too_large(path, "longer", max, what);
    }
}

}  // namespace muster::spec
