// One run of `muster`: its world, its streams, its settings and its controller, for the verbs.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/config.h"
#include "cli/terminal.h"

namespace muster::cli {

/// faces.md, part 2: what a shell sees.
namespace exit_codes {
constexpr int kOk = 0, kError = 1, kUsage = 2, kNotFound = 3, kDenied = 4, kConflict = 5,
              kRejected = 6, kUnreachable = 7, kNoPlace = 8, kMusterFailed = 125;
}
int exit_code_of(const Error& error);

/// "error: … / cause: … / fix: … / code: E1203 (muster explain E1203)".
std::string render_error(const Error& error, bool color);

class App {
public:
    App(const World& world, Output& out, Output& err) : world_(world), out_(out), err_(err) {}

    /// Settings and colours; before any verb.
    Status prepare(const Invocation& invocation);

    const World& world() const { return world_; }
    Output& out() { return out_; }
    Output& err() { return err_; }
    const Config& config() const { return *config_; }
    bool out_color() const { return out_color_; }
    bool err_color() const { return err_color_; }
    /// Columns of the terminal on stdout; 0 when piped.
    std::size_t out_width() const;
    Time now() const { return world_.now(); }

    /// The controller, found at the first call.
    Result<Client*> client();
    /// From now on SIGINT and SIGTERM end waits instead of the program.
    int catch_interrupts();

    /// A line for people, on stderr.
    void note(std::string_view line);
    /// Tells the error and gives the exit code that belongs to it.
    int fail(const Error& error);

private:
    const World& world_;
    Output& out_;
    Output& err_;
    std::unique_ptr<Config> config_;
    std::unique_ptr<Client> client_;
    bool out_color_ = false, err_color_ = false;
    int interrupt_fd_ = -1;
};

/// The whole program but for its process: `words` are argv without the program's name.
int run_muster(const World& world, std::span<const std::string> words, Output& out, Output& err);

}  // namespace muster::cli
