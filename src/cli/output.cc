#include "cli/output.h"

#include <algorithm>

#include "base/json_writer.h"
#include "base/text.h"
#include "cli/jsonpath.h"

namespace muster::cli {
namespace {

constexpr std::string_view kForms = "table|wide|json|yaml|ndjson|csv|name|custom=|jsonpath=";
constexpr std::size_t kPageMax = 100'000;

struct FormName {
    std::string_view name;
    Form form;
};
constexpr FormName kFormNames[] = {
    {"table", Form::Table},   {"wide", Form::Wide}, {"json", Form::Json}, {"yaml", Form::Yaml},
    {"ndjson", Form::Ndjson}, {"csv", Form::Csv},   {"name", Form::Name},
};

std::vector<TableColumn> heads_of(std::span<const Column> columns, bool wide) {
    std::vector<TableColumn> heads;
    for (const Column& column : columns)
        if (!column.wide || wide) heads.push_back({column.head, column.right, column.flexible});
    return heads;
}

std::string root_of(std::string_view path) {
    return std::string(path.substr(0, path.find('.')));
}

void add_once(std::vector<std::string>& list, std::string text) {
    if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(std::move(text));
}

std::string csv_word(const Json& value) {
    std::string text =
        value.is_object() || value.is_array() ? std::string(value.raw()) : value.text();
    if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"') out += '"';
        out += c;
    }
    return out + "\"";
}

/// The columns of csv and custom: a head and the path of one value.
struct PlainColumn {
    std::string head;
    std::string path;
};

std::vector<PlainColumn> plain_columns(const OutputForm& form, std::span<const Column> columns) {
    std::vector<PlainColumn> out;
    if (form.form == Form::Csv) {
        for (const Column& column : columns)
            if (std::none_of(out.begin(), out.end(),
                             [&](const auto& seen) { return seen.path == column.fields.front(); }))
                out.push_back({column.fields.front(), column.fields.front()});
        return out;
    }
    for (const std::string_view each : split(form.argument, ',')) {
        std::string_view word = trim(each);
        std::string head(word);
        // kubectl's HEAD:.path is understood too.
        if (const std::size_t colon = word.find(':'); colon != std::string_view::npos) {
            head = word.substr(0, colon);
            word.remove_prefix(colon + 1);
        } else {
            std::transform(head.begin(), head.end(), head.begin(),
                           [](char c) { return static_cast<char>(std::toupper(c)); });
        }
        if (word.starts_with('.')) word.remove_prefix(1);
        std::string path(word);
        for (const Column& column : columns)
            if (lower(column.head) == lower(path)) path = column.fields.front();
        if (!path.empty()) out.push_back({std::move(head), std::move(path)});
    }
    return out;
}

int compare_values(const Json& a, const Json& b) {
    if (a.is_number() && b.is_number())
        return a.number() < b.number() ? -1 : a.number() > b.number() ? 1 : 0;
    if (a.empty() != b.empty()) return a.empty() ? 1 : -1;  // What is not known comes last.
    return a.text().compare(b.text());
}

/// The field that --sort names, by its own name or its column's.
std::string sort_path(std::string_view key, std::span<const Column> columns) {
    if (key.starts_with('-')) key.remove_prefix(1);
    for (const Column& column : columns)
        if (lower(column.head) == lower(key)) return column.fields.front();
    return std::string(key);
}

void sort_items(std::vector<Json>& items, std::string_view key, std::span<const Column> columns) {
    if (key.empty()) return;
    const bool down = key.starts_with('-');
    const std::string path = sort_path(key, columns);
    std::stable_sort(items.begin(), items.end(), [&](const Json& a, const Json& b) {
        const Json left = a.path(path), right = b.path(path);
        const int order = compare_values(left, right);
        return down && !left.empty() && !right.empty() ? order > 0 : order < 0;
    });
}

/// The answer's pages, kept for as long as values of them are shown.
struct Pages {
    std::vector<JsonDocument> documents;
    std::vector<Json> items;
};

std::string query_of(const Listing& listing, const std::string& fields, bool rows,
                     const std::string& cursor) {
    Query query;
    for (const auto& [name, value] : listing.query) query.add(name, value);
    if (!fields.empty()) query.add("fields", fields);
    if (rows) query.add("layout", "rows");
    if (listing.paged) query.add("limit", std::to_string(kPageMax));
    if (!cursor.empty()) query.add("cursor", cursor);
    return query.text();
}

Result<Pages> fetch(Client& client, const Listing& listing, const std::string& fields, bool rows) {
    Pages pages;
    std::string cursor;
    for (;;) {
        MUSTER_LET(document, client.get(listing.path + query_of(listing, fields, rows, cursor)));
        const Json page = document.root();
        for (Json item = page[rows ? "rows" : listing.items].first(); item.exists();
             item = item.next())
            pages.items.push_back(item);
        cursor = page["next_cursor"].text();
        pages.documents.push_back(std::move(document));
        if (cursor.empty()) return pages;
    }
}

/// The answer's bytes as they are, when one page is all there is.
std::string merged_json(const Pages& pages, const Listing& listing, bool sorted) {
    if (pages.documents.size() == 1 && !sorted)
        return std::string(pages.documents.front().root().raw()) + "\n";
    std::string out = "{\"" + listing.items + "\":[";
    for (std::size_t i = 0; i < pages.items.size(); ++i) {
        if (i > 0) out += ",\n";
        out += pages.items[i].raw();
    }
    return out + "]}\n";
}

std::string plain_text(const OutputForm& form, std::span<const Json> items,
                       std::span<const Column> columns) {
    const std::vector<PlainColumn> plain = plain_columns(form, columns);
    std::string out;
    if (form.form == Form::Csv) {
        const auto line = [&](auto&& word) {
            for (std::size_t i = 0; i < plain.size(); ++i) {
                if (i > 0) out += ',';
                out += word(plain[i]);
            }
            out += '\n';
        };
        if (form.header) line([](const PlainColumn& column) { return column.head; });
        for (const Json& item : items)
            line([&](const PlainColumn& column) { return csv_word(item.path(column.path)); });
        return out;
    }
    std::vector<TableColumn> heads;
    for (const PlainColumn& column : plain) heads.push_back({column.head});
    if (heads.empty()) return "";
    Table table(heads);
    for (const Json& item : items)
        for (const PlainColumn& column : plain) {
            const Json value = item.path(column.path);
            table.add(value.empty() ? "-" : value.text());
        }
    return table.render({.header = form.header});
}

/// -o json: the answer's bytes go through unread when one page is all there is.
int pass_json(App& app, Client& client, const Listing& listing) {
    const auto reply =
        client.call({.method = "GET", .target = listing.path + query_of(listing, "", false, "")});
    if (!reply) return app.fail(reply.error());
    const std::string_view body = reply->body;
    const std::string_view tail =
        body.substr(body.size() - std::min<std::size_t>(body.size(), 256));
    if (!listing.paged || tail.find("\"next_cursor\":null") != std::string_view::npos) {
        app.out().write(body);
        if (!body.ends_with('\n')) app.out().write("\n");
        return exit_codes::kOk;
    }
    const auto pages = fetch(client, listing, "", false);
    if (!pages) return app.fail(pages.error());
    app.out().write(merged_json(*pages, listing, true));
    return exit_codes::kOk;
}

/// All forms but the tables. Invalid when a jsonpath cannot be read.
Result<std::string> text_of(const OutputForm& form, const Pages& pages, const Listing& listing) {
    switch (form.form) {
        case Form::Json: return merged_json(pages, listing, !form.sort.empty());
        case Form::Ndjson: {
            std::string out;
            for (const Json& item : pages.items) out.append(item.raw()).append("\n");
            return out;
        }
        case Form::Name: {
            std::string out;
            for (const Json& item : pages.items) out += item[listing.name_field].text() + "\n";
            return out;
        }
        case Form::Csv:
        case Form::Custom: return plain_text(form, pages.items, listing.columns);
        default: break;
    }
    MUSTER_LET(whole, JsonDocument::parse(merged_json(pages, listing, true)));
    if (form.form == Form::Yaml) return to_yaml(whole.root());
    MUSTER_LET(text, json_path(form.argument, whole.root()));
    if (!text.empty() && !text.ends_with('\n')) text += '\n';
    return text;
}

std::string fields_asked(const OutputForm& form, const Listing& listing) {
    if (!listing.has_fields) return "";
    std::vector<std::string> fields;
    if (form.form == Form::Name) {
        fields.push_back(listing.name_field);
    } else if (form.form == Form::Csv || form.form == Form::Custom) {
        for (const PlainColumn& column : plain_columns(form, listing.columns))
            add_once(fields, root_of(column.path));
    } else {
        return "";
    }
    if (!form.sort.empty()) add_once(fields, root_of(sort_path(form.sort, listing.columns)));
    return join(fields, ",");
}

int show_table(App& app, Client& client, const OutputForm& form, const Listing& listing) {
    const bool wide = form.form == Form::Wide;
    ListTable list(listing.columns, wide, app.now());
    const bool rows = listing.has_rows && form.sort.empty();
    std::vector<std::string> roots = root_fields(list.fields());

    if (!form.sort.empty()) add_once(roots, root_of(sort_path(form.sort, listing.columns)));
    auto pages = fetch(client, listing, listing.has_fields ? join(roots, ",") : "", rows);
    if (!pages) return app.fail(pages.error());
    sort_items(pages->items, form.sort, listing.columns);
    std::vector<Json> values, picked(list.fields().size());
    std::vector<std::size_t> root_index;
    for (const std::string& field : list.fields())
        root_index.push_back(static_cast<std::size_t>(
            std::find(roots.begin(), roots.end(), root_of(field)) - roots.begin()));
    for (const Json& item : pages->items) {
        if (!rows) {
            list.add(item);
            continue;
        }
        values.clear();
        for (Json value = item.first(); value.exists(); value = value.next())
            values.push_back(value);
        for (std::size_t i = 0; i < picked.size(); ++i) {
            const Json root = root_index[i] < values.size() ? values[root_index[i]] : Json{};
            const std::string& field = list.fields()[i];
            const std::size_t dot = field.find('.');
            picked[i] = dot == std::string::npos
                            ? root
                            : root.path(std::string_view(field).substr(dot + 1));
        }
        list.add_row(picked);
    }
    if (pages->items.empty() && !listing.none.empty()) {
        app.note(listing.none);
        return exit_codes::kOk;
    }
    app.out().write(list.table().render(
        {.width = app.out_width(), .header = form.header, .color = app.out_color()}));
    return exit_codes::kOk;
}

}  // namespace

Result<OutputForm> output_form(const App& app, const Invocation& invocation) {
    OutputForm out;
    std::string word = invocation.value_or("output", app.config().get("output"));
    if (invocation.has("quiet")) word = "name";
    out.header = !invocation.has("no-headers");
    out.sort = invocation.value_or("sort", "");
    for (const FormName& form : kFormNames) {
        if (word == form.name) {
            out.form = form.form;
            return out;
        }
    }
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos) {
        const std::string head = word.substr(0, equals);
        out.argument = word.substr(equals + 1);
        if (head == "custom" || head == "custom-columns") {
            out.form = Form::Custom;
            return out;
        }
        if (head == "jsonpath") {
            out.form = Form::JsonPath;
            return out;
        }
    }
    std::vector<std::string> names;
    for (const std::string_view form : split(kForms, '|')) names.emplace_back(form);
    const std::string near = nearest(word, names);
    return Error{Code::Invalid,
                 "output '" + word + "' is not a form of output" +
                     (near.empty() ? "" : "; did you mean " + near + "?"),
                 "it takes " + join(names, ", "), ""};
}

std::vector<Flag> output_flags() {
    return {
        {"-o,--output", "FORM",
         "table, wide, json, yaml, ndjson, csv, name, custom=FIELD,… or jsonpath=TEMPLATE", false,
         std::string(kForms)},
        {"--no-headers", "", "leave out the line of column names"},
    };
}

std::vector<Flag> list_flags(bool watch) {
    std::vector<Flag> flags = output_flags();
    flags.push_back({"-q,--quiet", "", "names or ids only, one a line"});
    flags.push_back({"--sort", "FIELD", "sort by a column or field; -FIELD: largest first"});
    if (watch)
        flags.push_back({"-w,--watch", "",
                         "go on: redraw in a terminal, append lines when piped, one event a line "
                         "with -o ndjson"});
    return flags;
}

std::vector<std::string> root_fields(const std::vector<std::string>& paths) {
    std::vector<std::string> roots;
    for (const std::string& path : paths) add_once(roots, root_of(path));
    return roots;
}

ListTable::ListTable(std::span<const Column> columns, bool wide, Time now)
    : look_{now, wide, {}}, table_(heads_of(columns, wide)) {
    for (const Column& column : columns) {
        if (column.wide && !wide) continue;
        shown_.push_back(&column);
        std::vector<std::size_t> indexes;
        for (const std::string& field : column.fields) {
            add_once(fields_, field);
            indexes.push_back(static_cast<std::size_t>(
                std::find(fields_.begin(), fields_.end(), field) - fields_.begin()));
        }
        indexes_.push_back(std::move(indexes));
    }
}

void ListTable::put(const Column& column, std::span<const std::size_t> indexes,
                    std::span<const Json> values) {
    Json picked[8];
    const std::size_t count = std::min<std::size_t>(indexes.size(), 8);
    for (std::size_t i = 0; i < count; ++i) picked[i] = values[indexes[i]];
    if (column.cell != nullptr) {
        const CellText cell = column.cell({picked, count}, look_);
        table_.add(cell.text.empty() ? "-" : cell.text, cell.tone);
        return;
    }
    std::string room;
    const std::string_view text = picked[0].view(room);
    table_.add(text.empty() ? "-" : text);
}

void ListTable::add_row(std::span<const Json> values) {
    for (std::size_t i = 0; i < shown_.size(); ++i) put(*shown_[i], indexes_[i], values);
}

void ListTable::add(const Json& object, Duration age) {
    look_.age = age;
    std::vector<Json> values;
    values.reserve(fields_.size());
    for (const std::string& field : fields_) values.push_back(object.path(field));
    add_row(values);
}

int show_list(App& app, const Invocation& invocation, const Listing& listing) {
    const auto form = output_form(app, invocation);
    if (!form) {
        app.fail(form.error());
        return exit_codes::kUsage;
    }
    if (invocation.has("watch")) return watch_list(app, *form, listing);
    const auto client = app.client();
    if (!client) return app.fail(client.error());
    if (form->is_table()) return show_table(app, **client, *form, listing);
    if (form->form == Form::Json && form->sort.empty()) return pass_json(app, **client, listing);
    auto pages = fetch(**client, listing, fields_asked(*form, listing), false);
    if (!pages) return app.fail(pages.error());
    sort_items(pages->items, form->sort, listing.columns);
    const auto text = text_of(*form, *pages, listing);
    if (!text) return app.fail(text.error());
    app.out().write(*text);
    return exit_codes::kOk;
}

int show_object(App& app, const OutputForm& form, const Json& object,
                std::span<const Column> columns, std::string_view name_field) {
    switch (form.form) {
        case Form::Json: app.out().write(to_pretty_json(object)); break;
        case Form::Ndjson: app.out().write(std::string(object.raw()) + "\n"); break;
        case Form::Yaml: app.out().write(to_yaml(object)); break;
        case Form::Name: app.out().write(object[name_field].text() + "\n"); break;
        case Form::JsonPath: {
            const auto text = json_path(form.argument, object);
            if (!text) return app.fail(text.error());
            app.out().write(*text + (text->ends_with('\n') ? "" : "\n"));
            break;
        }
        default: app.out().write(plain_text(form, {&object, 1}, columns)); break;
    }
    return exit_codes::kOk;
}

}  // namespace muster::cli
