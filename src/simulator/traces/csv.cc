#include "simulator/traces/csv.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <memory>

#include <zlib.h>

namespace muster::simulator::traces {
namespace {

constexpr std::size_t kBytesMax = std::size_t{2} << 30;
constexpr std::size_t kValueShown = 80;  // Of a bad value, in messages.

struct Close {
    void operator()(gzFile file) const { gzclose(file); }
};

/// A gzipped file, or a plain one as it is.
Result<std::string> contents(const std::string& path) {
    errno = 0;
    const std::unique_ptr<gzFile_s, Close> file(gzopen(path.c_str(), "rb"));
    if (file == nullptr)
        return Error{.code = Code::NotFound,
                     .message = "cannot open " + path + ": " + std::strerror(errno),
                     .fix = "check the path"};
    gzbuffer(file.get(), 1 << 17);
    std::string text;
    std::array<char, 1 << 16> chunk{};
    while (true) {
        const int got = gzread(file.get(), chunk.data(), static_cast<unsigned>(chunk.size()));
        int fault = Z_OK;
        const char* what = gzerror(file.get(), &fault);
        if (got < 0 || (fault != Z_OK && fault != Z_STREAM_END))
            return Error{.code = Code::Corrupt,
                         .message = path + ": cannot be read after " + std::to_string(text.size()) +
                                    " bytes: " + (fault == Z_ERRNO ? std::strerror(errno) : what),
                         .fix = "get the file again"};
        if (got == 0) return text;
        text.append(chunk.data(), static_cast<std::size_t>(got));
        if (text.size() > kBytesMax)
            return Error{.code = Code::TooLarge,
                         .message = path + ": larger than " + std::to_string(kBytesMax) + " bytes",
                         .fix = "split the file"};
    }
}

std::string_view trimmed(std::string_view text) {
    const auto blank = [](char c) { return c == ' ' || c == '\t'; };
    while (!text.empty() && blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && blank(text.back())) text.remove_suffix(1);
    return text;
}

}  // namespace

std::string text_of(const BadRows& bad) {
    std::string out;
    for (const BadRow& row : bad.first) {
        out += bad.file + ":" + std::to_string(row.line) + ": ";
        if (!row.column.empty()) out += row.column + " is '" + row.value + "': ";
        out += row.reason + "\n";
    }
    const auto more = bad.count - static_cast<std::int64_t>(bad.first.size());
    if (more > 0) out += bad.file + ": " + std::to_string(more) + " more bad rows\n";
    return out;
}

// ---- rows -------------------------------------------------------------------------------------

void CsvRow::refuse(std::size_t column, std::string reason) {
    if (bad_) return;
    bad_ = BadRow{.line = line_,
                  .column = (*names_)[column],
                  .value = fields_[column].substr(0, kValueShown),
                  .reason = std::move(reason)};
}

std::int64_t CsvRow::integer(std::size_t column, std::int64_t least, std::int64_t most) {
    const std::string_view text = trimmed(fields_[column]);
    std::int64_t value = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty())
        refuse(column, "a whole number is missing");
    else if (fault == std::errc::result_out_of_range)
        refuse(column, "too large a number");
    else if (fault != std::errc{} || end != text.data() + text.size())
        refuse(column, "not a whole number");
    else if (value < least)
        refuse(column, "below " + std::to_string(least));
    else if (value > most)
        refuse(column, "above " + std::to_string(most));
    else
        return value;
    return 0;
}

double CsvRow::decimal(std::size_t column, double least) {
    const std::string_view text = trimmed(fields_[column]);
    double value = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty())
        refuse(column, "a number is missing");
    else if (fault != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
        refuse(column, "not a number");
    else if (value < least)
        refuse(column, least == 0 ? std::string("below 0") : "below " + std::to_string(least));
    else
        return value;
    return 0;
}

std::int64_t CsvRow::thousandths(std::size_t column, std::int64_t most) {
    const double value = decimal(column);
    if (bad_) return 0;
    if (value * 1000 > static_cast<double>(most) || value * 1000 > 9e18) {
        refuse(column, "above " + std::to_string(most / 1000));
        return 0;
    }
    return static_cast<std::int64_t>(std::llround(value * 1000));
}

// ---- files ------------------------------------------------------------------------------------

Result<CsvFile> CsvFile::open(const std::string& path, CsvOptions options) {
    MUSTER_LET(text, contents(path));
    return of_text(path, std::move(text), std::move(options));
}

Result<CsvFile> CsvFile::of_text(std::string name, std::string text, CsvOptions options) {
    CsvFile file;
    file.options_ = std::move(options);
    file.bad_.file = std::move(name);
    CsvRow row;
    if (!file.options_.header.empty()) {
        file.text_ = file.options_.header;
        file.next(row);
        file.at_ = 0, file.line_ = 0;
    }
    file.text_ = std::move(text);
    if (file.text_.starts_with("\xef\xbb\xbf")) file.at_ = 3;
    if (file.options_.header.empty() && !file.next(row))
        return Error{.code = Code::Invalid,
                     .message = file.bad_.file + ": empty, without a header",
                     .fix = "give a file whose first line names its columns"};
    for (const std::string& field : row.fields_) file.names_.emplace_back(trimmed(field));
    return file;
}

bool CsvFile::next(CsvRow& row) {
    row.bad_.reset();
    row.fields_.clear();
    row.names_ = &names_;
    const bool runs = options_.separator == ' ';
    while (at_ < text_.size() && row.fields_.empty()) {
        row.line_ = ++line_;
        if (options_.comment != 0 && text_[at_] == options_.comment) {
            at_ = std::min(text_.find('\n', at_), text_.size() - 1) + 1;
            continue;
        }
        std::string field;
        bool quoted = false, any = false;
        for (bool done = false; !done; ++at_) {
            const char c = at_ < text_.size() ? text_[at_] : '\n';
            if (quoted) {
                if (at_ >= text_.size()) {
                    row.bad_ = BadRow{row.line_, {}, {}, "a quote is not closed"};
                    done = true;
                } else if (c != '"') {
                    line_ += c == '\n' ? 1 : 0;
                    field += c;
                } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
                    field += '"', ++at_;
                } else {
                    quoted = false;
                }
            } else if (c == '"' && options_.quotes && field.empty()) {
                quoted = any = true;
            } else if (c == '\n') {
                if (!field.empty() && field.back() == '\r') field.pop_back();
                done = true;
            } else if (c == options_.separator || (runs && c == '\t')) {
                if (!runs || !field.empty()) row.fields_.push_back(std::move(field));
                field.clear();
                any = any || !runs;
            } else {
                field += c;
            }
        }
        if (!field.empty() || any) row.fields_.push_back(std::move(field));
        if (row.fields_.size() == 1 && !any && trimmed(row.fields_[0]).empty()) row.fields_.clear();
    }
    return !row.fields_.empty();
}

std::optional<std::size_t> CsvFile::find(std::string_view name) const {
    const auto at = std::ranges::find(names_, name);
    if (at == names_.end()) return std::nullopt;
    return static_cast<std::size_t>(at - names_.begin());
}

Result<std::size_t> CsvFile::column(std::string_view name) const {
    if (const auto at = find(name)) return *at;
    std::string there;
    for (const std::string& known : names_) there += (there.empty() ? "" : ", ") + known;
    return Error{.code = Code::Invalid,
                 .message = bad_.file + ": no column '" + std::string(name) +
                            "'; there are: " + there.substr(0, 500),
                 .fix = "give a file with this column, named in its first line"};
}

Status CsvFile::each(const std::function<void(CsvRow&)>& take) {
    CsvRow row;
    while (next(row)) {
        const std::size_t got = row.fields_.size(), wanted = names_.size();
        if (!row.bad_ && (got > wanted || (got < wanted && !options_.may_be_cut)))
            row.bad_ =
                BadRow{row.line_,
                       {},
                       {},
                       std::to_string(got) + " fields, the header has " + std::to_string(wanted)};
        row.fields_.resize(wanted);
        if (!row.bad_) take(row);
        if (!row.bad_) continue;
        ++bad_.count;
        if (bad_.first.size() < BadRows::kKept) bad_.first.push_back(*row.bad_);
        if (!options_.strict) continue;
        std::string message = text_of(bad_);
        message.pop_back();
        return Error{.code = Code::Invalid,
                     .message = std::move(message),
                     .fix = "mend the row, or read without strict: bad rows are then counted"};
    }
    return Ok{};
}

}  // namespace muster::simulator::traces
