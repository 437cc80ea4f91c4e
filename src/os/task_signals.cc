#include "os/task_signals.h"

#include <cstring>

#include <signal.h>

#include "base/units.h"

namespace muster::os {

int signal_number(std::string_view name) {
    if (name.starts_with("SIG")) name.remove_prefix(3);
    if (const auto number = parse_integer(name, 1, NSIG - 1)) return static_cast<int>(*number);
    for (int signo = 1; signo < NSIG; ++signo)
        if (const char* known = ::sigabbrev_np(signo); known != nullptr && name == known)
            return signo;
    return SIGUSR1;
}

std::string escape_value(std::string_view text) {
    static constexpr char kHex[] = "0123456789ABCDEF";
    std::string out;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte > 0x20 && byte != '%' && byte != 0x7f) {
            out.push_back(c);
        } else {
            out.push_back('%');
            out.push_back(kHex[byte >> 4]);
            out.push_back(kHex[byte & 15]);
        }
    }
    return out;
}

}  // namespace muster::os
