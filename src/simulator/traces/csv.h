// Reads tables of text: CSV, by column name, plain or gzipped. A row that cannot be read is never
// guessed: it is counted and told with file, line, column, value and reason, or (strict) ends the
// reading.
//
//     MUSTER_LET(csv, CsvFile::open(path));
//     MUSTER_LET(gpus, csv.column("num_gpu"));
//     MUSTER_TRY(csv.each([&](CsvRow& row) {
//         const Pod pod{.gpus = row.integer(gpus, 0, 8)};
//         if (row.ok()) pods.push_back(pod);
//     }));
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::simulator::traces {

struct CsvOptions {
    bool strict = false;   // The first bad row is an error.
    char separator = ',';  // ' ': any run of blanks.
    char comment = 0;      // Lines that begin with it are skipped.
    bool quotes = true;    // "a,b" is one field, "" in it a quote.
    std::string header;    // The names, as the file's first line would have them, if it has none.
    bool may_be_cut = false;  // A row may have fewer fields than the header: the rest is empty.
};

struct BadRow {
    std::int64_t line = 0;  // From 1.
    std::string column;     // Empty: the row as a whole.
    std::string value;
    std::string reason;
    friend bool operator==(const BadRow&, const BadRow&) = default;
};
struct BadRows {
    static constexpr std::size_t kKept = 20;

    std::string file;
    std::int64_t count = 0;
    std::vector<BadRow> first;  // At most kKept.
};
/// "FILE:LINE: COLUMN is 'VALUE': REASON", a line each, and how many more there are. Empty: none.
std::string text_of(const BadRows& bad);

class CsvFile;

/// One row while it is looked at. A getter that fails marks the row bad and gives back 0.
class CsvRow {
public:
    std::string_view text(std::size_t column) const { return fields_[column]; }
    bool empty(std::size_t column) const { return fields_[column].empty(); }
    /// A whole number within the bounds.
    std::int64_t integer(std::size_t column, std::int64_t least = 0,
                         std::int64_t most = std::numeric_limits<std::int64_t>::max());
    /// A decimal number in thousandths ("1.5" is 1500; seconds to milliseconds), rounded half away
    /// from 0; 0 to `most` thousandths.
    std::int64_t thousandths(std::size_t column,
                             std::int64_t most = std::numeric_limits<std::int64_t>::max());
    /// A decimal number that is finite and not below `least`.
    double decimal(std::size_t column, double least = 0);
    /// The row is bad for another reason.
    void refuse(std::size_t column, std::string reason);
    bool ok() const { return !bad_; }
    std::int64_t line() const { return line_; }

private:
    friend class CsvFile;
    const std::vector<std::string>* names_ = nullptr;
    std::vector<std::string> fields_;
    std::int64_t line_ = 0;
    std::optional<BadRow> bad_;  // Its first fault.
};

class CsvFile {
public:
    /// Reads the file and its header. Errors: no such file, empty, a damaged archive, over 2 GiB.
    static Result<CsvFile> open(const std::string& path, CsvOptions options = {});
    /// The same of a text that is there already; `name` is what messages call it.
    static Result<CsvFile> of_text(std::string name, std::string text, CsvOptions options = {});

    /// The column of that name; or an error that lists those there are.
    Result<std::size_t> column(std::string_view name) const;
    std::optional<std::size_t> find(std::string_view name) const;
    const std::vector<std::string>& columns() const { return names_; }

    /// Every row in order. Fails in strict mode alone.
    Status each(const std::function<void(CsvRow&)>& take);
    const BadRows& bad() const { return bad_; }

private:
    /// Splits the next row that is not blank. False: no more.
    bool next(CsvRow& row);

    CsvOptions options_;
    std::string text_;
    std::size_t at_ = 0;
    std::int64_t line_ = 0;
    std::vector<std::string> names_;
    BadRows bad_;
};

}  // namespace muster::simulator::traces
