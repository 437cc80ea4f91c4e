// What is wrong in a job file or a flag, with its place: made for people first, and for programs.
// All problems of a file are told at once.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster::spec {

constexpr std::size_t kProblemsMax = 100;  // More are counted, not listed.

/// One thing to correct. `message` stands alone: field, value, limit, remedy.
struct Problem {
    int number = 0;          // Of base/error_codes.h: what kind of problem.
    std::string file;        // "" for a flag.
    std::string flag;        // "--gpus", or "" for a file.
    int line = 0;            // 1-based; 0: the whole file.
    int column = 0;          // 1-based, in characters.
    std::string pointer;     // JSON pointer to the value, as "/roles/ps/gpus". "": the document.
    std::string message;     // "memry: unknown key; did you mean memory?"
    std::string value;       // The offending text, shortened; "" if there is none.
    std::string limit;       // What would be accepted: "0..100". "" if that is not a limit.
    std::string suggestion;  // The nearest valid name. "" if none is near.
    std::string source;      // The source line, for the caret; "" if it is not known.
    int skipped = 0;         // Characters left out at the front of a very long `source`.
    friend bool operator==(const Problem&, const Problem&) = default;
};
using Problems = std::vector<Problem>;

/// "job.yaml:3:1: error: memry: unknown key; did you mean memory?", or without a file name
/// "3:1: error: …", or for a flag "--gpus: …". No source line.
std::string render_line(const Problem& problem);
/// As render_line(), then the source line and a caret under the column; wide characters count two
/// columns. Ends with a line break.
std::string render(const Problem& problem);
std::string render(std::span<const Problem> problems);

/// One Error for all of them: its message is the first problem's and the number of the rest, its
/// cause every line. A single problem gives its own number, several kJobInvalid.
Error to_error(std::span<const Problem> problems);
/// The same of what is no job, always with that number: errors::kQueueTree of a queue file,
/// kTopologyInvalid, kReservationInvalid.
Error to_error(std::span<const Problem> problems, int number);

}  // namespace muster::spec
