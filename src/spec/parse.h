// From what people write (YAML, JSON, flags, a command line) to the normal form of a job.
// Either the job is valid in every field, or all that is wrong with it is told at once.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "model/job_spec.h"
#include "spec/problem.h"

namespace muster::spec {

constexpr std::size_t kJobFileMax = std::size_t{1} << 20;
constexpr int kNestingMax = 64;

enum class Format { Auto, Yaml, Json };

/// `field` is a name or a flag of job_fields() without its dashes in front ("expected-time",
/// "mount"), `text` what stood after the flag; "true" for a flag without a value.
struct FlagText {
    std::string field;
    std::string text;
};

struct ParseOptions {
    std::string file;              // For messages only.
    Format format = Format::Auto;  // Auto: by the file's name, else by what it starts with.
    Time now;                      // What "now+2h" counts from; 0: a deadline may have passed.
    std::string base_dir;          // Where relative paths start; "": they are refused.
    std::string flag_dir;          // The same for those in flags; "": base_dir.
    std::string default_workdir;   // Of a job without image that names no workdir. "": its scratch.
    std::vector<FlagText> defaults;  // Used for fields that neither document nor flags set.
};

using ParsedJob = std::variant<model::JobSpec, Problems>;

/// `text` is one YAML or JSON document.
ParsedJob parse_job(std::string_view text, const ParseOptions& options);
/// The same, with flags merged over the document (single values replace, maps override by key,
/// lists grow) and the words after `--` as the command. `text` may be empty if there is a command
/// or a flag.
ParsedJob parse_job(std::string_view text, std::span<const FlagText> flags,
                    std::span<const std::string> command, const ParseOptions& options);

/// The file's bytes, or why not. A file over kJobFileMax is refused by its size, before it is
/// read; a pipe ("-" is standard input) after one byte too many.
Result<std::string> read_job_file(const std::string& path);
/// The same of another file of at most `max` bytes; `what` ("a queue file") is for messages.
Result<std::string> read_text_file(const std::string& path, std::size_t max,
                                   const std::string& what);

/// The words as one shell command, each quoted if it must be.
std::string shell_quote(std::span<const std::string> words);

}  // namespace muster::spec
