#include "cli/app.h"

#include <signal.h>
#include <sys/signalfd.h>

#include "base/error_codes.h"
#include "base/text.h"
#include "cli/width.h"

namespace muster::cli {
namespace {

ColorChoice choice_of(std::string_view word) {
    return word == "always"  ? ColorChoice::Always
           : word == "never" ? ColorChoice::Never
                             : ColorChoice::Auto;
}

/// Multi-line causes are indented as a block.
std::string indented(std::string_view text) {
    std::string out;
    for (const std::string_view line : split(text, '\n')) {
        if (!out.empty()) out += "\n         ";
        out += printable(line);
    }
    return out;
}

int usage_error(Output& err, const Error& error, bool color) {
    err.write(render_error(error, color));
    return exit_codes::kUsage;
}

}  // namespace

int exit_code_of(const Error& error) {
    switch (error.number) {
        case errors::kNeverFits: return exit_codes::kNoPlace;
        case errors::kBadConfig: return exit_codes::kUsage;
        case errors::kUnreachable:
        case errors::kNodeUnreachable:
        case errors::kRateLimit: return exit_codes::kUnreachable;
        case errors::kJobUnreadable: return exit_codes::kNotFound;
        default: break;
    }
    switch (error.code) {
        case Code::NotFound:
        case Code::Gone: return exit_codes::kNotFound;
        case Code::Unauthenticated:
        case Code::Denied: return exit_codes::kDenied;
        case Code::Conflict:
        case Code::Precondition: return exit_codes::kConflict;
        case Code::Invalid:
        case Code::TooLarge:
        case Code::Exhausted: return exit_codes::kRejected;
        case Code::Unavailable:
        case Code::NoSpace: return exit_codes::kUnreachable;
        case Code::Corrupt:
        case Code::Internal: break;
    }
    return exit_codes::kError;
}

std::string render_error(const Error& error, bool color) {
    std::string out = paint("error:", Tone::Bad, color) + " " + printable(error.message) + "\n";
    const auto line = [&](std::string_view head, const std::string& text) {
        if (!text.empty()) out += "  " + paint(head, Tone::Dim, color) + " " + text + "\n";
    };
    line("cause:", indented(error.cause));
    line("fix:", indented(error.fix));
    if (error.number != 0) {
        const std::string code = error_name(error.number);
        line("code:", code + " (muster explain " + code + ")");
    }
    return out;
}

Status App::prepare(const Invocation& invocation) {
    const std::string_view variable = world_.variable("MUSTER_COLOR");
    ColorChoice choice = choice_of(invocation.value_or("color", variable));
    out_color_ = use_color(world_, choice, world_.out_tty);
    err_color_ = use_color(world_, choice, world_.err_tty);
    config_ = std::make_unique<Config>(Config::defaults());
    MUSTER_LET(config, Config::load(world_, invocation));
    config_ = std::make_unique<Config>(std::move(config));
    choice = choice_of(config_->get("color"));
    out_color_ = use_color(world_, choice, world_.out_tty);
    err_color_ = use_color(world_, choice, world_.err_tty);
    return Ok{};
}

std::size_t App::out_width() const {
    return world_.out_tty ? static_cast<std::size_t>(world_.columns) : 0;
}

Result<Client*> App::client() {
    if (!client_) {
        MUSTER_LET(made, Client::make(world_, *config_, err_));
        client_ = std::move(made);
        if (interrupt_fd_ >= 0) client_->set_interrupt(interrupt_fd_);
    }
    return client_.get();
}

int App::catch_interrupts() {
    if (interrupt_fd_ >= 0) return interrupt_fd_;
    interrupt_fd_ = world_.interrupt_fd;
    if (interrupt_fd_ < 0) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGTERM);
        ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
        interrupt_fd_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    }
    if (client_) client_->set_interrupt(interrupt_fd_);
    return interrupt_fd_;
}

void App::note(std::string_view line) {
    out_.flush();
    err_.write(std::string(line) + "\n");
    err_.flush();
}

int App::fail(const Error& error) {
    out_.flush();
    err_.write(render_error(error, err_color_));
    err_.flush();
    return exit_code_of(error);
}

int run_muster(const World& world, std::span<const std::string> words, Output& out, Output& err) {
    const bool color = use_color(world, ColorChoice::Auto, world.err_tty);
    const std::size_t width =
        world.out_tty ? std::min<std::size_t>(static_cast<std::size_t>(world.columns), 100) : 80;
    auto parsed = parse_command_line(words);
    if (!parsed) return usage_error(err, parsed.error(), color);
    const Invocation& invocation = parsed->invocation;
    if (parsed->help) {
        out.write(invocation.command == nullptr ? overview_text(width)
                                                : help_text(*invocation.command, width));
        return exit_codes::kOk;
    }
    App app(world, out, err);
    if (const Status ready = app.prepare(invocation); !ready) {
        // What repairs or explains a broken configuration must not need a whole one.
        if (!invocation.command->raw && !invocation.command->tolerant)
            return app.fail(ready.error());
    }
    const int code = invocation.command->run(app, invocation);
    out.flush();
    if (out.error() == EPIPE) return 128 + SIGPIPE;
    if (!out.good() && code == 0) return exit_codes::kError;
    return code;
}

}  // namespace muster::cli
