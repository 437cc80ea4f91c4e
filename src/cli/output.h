// The forms of output of every command that lists or shows: table, wide, json, yaml, ndjson, csv,
// name, custom=…, jsonpath=….
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/app.h"
#include "cli/json.h"
#include "cli/table.h"

namespace muster::cli {

enum class Form { Table, Wide, Json, Yaml, Ndjson, Csv, Name, Custom, JsonPath };

struct OutputForm {
    Form form = Form::Table;
    std::string argument;  // Of custom= and jsonpath=.
    bool header = true;
    std::string sort;  // A field, or "-field"; "" = as the server sends.

    /// For people: columns with relative times and colours.
    bool is_table() const { return form == Form::Table || form == Form::Wide; }
};

/// From -o, -q, --no-headers and --sort. Invalid when -o is not known.
Result<OutputForm> output_form(const App& app, const Invocation& invocation);
/// The flags that output_form() reads, and those of a list that may be watched.
std::vector<Flag> output_flags();
std::vector<Flag> list_flags(bool watch);

struct CellText {
    std::string text;
    Tone tone = Tone::Plain;
};
struct Look {
    Time now;
    bool wide = false;
    Duration age;  // Since the values were told.
};
/// `values` are the column's fields, in order.
using CellOf = CellText (*)(std::span<const Json> values, const Look& look);

struct Column {
    std::string head;
    std::vector<std::string> fields;  // Of the API; may be paths ("progress.step").
    CellOf cell = nullptr;            // nullptr: the first field as text.
    bool right = false;
    bool flexible = false;
    bool wide = false;  // With -o wide only.
};

/// One kind of thing to list, and how.
struct Listing {
    std::string path;  // "/v1/jobs"
    std::vector<std::pair<std::string, std::string>> query = {};
    std::vector<Column> columns;
    std::string items = "items";  // The array in the answer.
    std::string name_field = "id";
    std::string none = "";    // Said on stderr when there is nothing.
    bool has_fields = false;  // Takes ?fields=.
    bool has_rows = false;    // Takes ?layout=rows.
    bool paged = false;
    bool newest_first = false;  // Where a new item goes while watching.
};

/// Asks, and writes all of it in the form the user wants; or watches. Returns the exit code.
int show_list(App& app, const Invocation& invocation, const Listing& listing);
int watch_list(App& app, const OutputForm& form, const Listing& listing);
/// One object in json, yaml, ndjson, csv, name, custom or jsonpath. Not for tables.
int show_object(App& app, const OutputForm& form, const Json& object,
                std::span<const Column> columns, std::string_view name_field);

/// The members of the answer that paths ("progress.step") begin with, each once.
std::vector<std::string> root_fields(const std::vector<std::string>& paths);

/// What both lists and watches build a table from.
class ListTable {
public:
    ListTable(std::span<const Column> columns, bool wide, Time now);
    /// The fields of the shown columns; duplicates once.
    const std::vector<std::string>& fields() const { return fields_; }
    void add(const Json& object, Duration age = {});  // {"id": …}
    void add_row(std::span<const Json> values);       // In the order of fields().
    Table& table() { return table_; }

private:
    void put(const Column& column, std::span<const std::size_t> indexes,
             std::span<const Json> values);
    std::vector<const Column*> shown_;
    std::vector<std::string> fields_;
    std::vector<std::vector<std::size_t>> indexes_;  // Into fields_, a list for each column.
    Look look_;
    Table table_;
};

}  // namespace muster::cli
