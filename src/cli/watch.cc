// Lists that go on: redrawn in place on a terminal, appended when piped.
#include <algorithm>
#include <map>
#include <utility>

#include "base/json_writer.h"
#include "cli/output.h"

namespace muster::cli {
namespace {

constexpr Duration kRedraw{150};
constexpr Duration kClockTick{1000};

/// What the stream has told so far, in the order to show.
class Watched {
public:
    Watched(std::string name_field, bool newest_first)
        : name_field_(std::move(name_field)), newest_first_(newest_first) {}

    void put(JsonDocument document, bool snapshot, Time now) {
        const std::string name = document.root()[name_field_].text();
        if (!items_.contains(name)) {
            if (newest_first_ && !snapshot)
                order_.insert(order_.begin(), name);
            else
                order_.push_back(name);
        }
        items_.insert_or_assign(name, Item{std::move(document), now});
    }
    void drop(const std::string& name) {
        items_.erase(name);
        std::erase(order_, name);
    }
    void clear() {
        items_.clear();
        order_.clear();
    }
    template <class Use>
    void each(Use&& use) const {
        for (const std::string& name : order_) {
            const Item& item = items_.find(name)->second;
            use(item.document.root(), item.told);
        }
    }

private:
    std::string name_field_;
    bool newest_first_;
    struct Item {
        JsonDocument document;
        Time told;
    };
    std::map<std::string, Item> items_;
    std::vector<std::string> order_;
};

class Watch {
public:
    Watch(App& app, const OutputForm& form, const Listing& listing, EventStream stream)
        : app_(app),
          form_(form),
          listing_(listing),
          stream_(std::move(stream)),
          items_(listing.name_field, listing.newest_first),
          appended_(listing.columns, form.form == Form::Wide, app.now()),
          live_(app.world().out_tty && form.is_table()) {}

    int run() {
        for (;;) {
            auto next = stream_.next(dirty_ ? kRedraw : kClockTick);
            if (!next) {
                finish();
                return app_.fail(next.error());
            }
            switch (next->got) {
                case EventStream::Got::Event: take(next->event); break;
                case EventStream::Got::TimedOut: draw(); break;
                case EventStream::Got::Restarted:
                    items_.clear();
                    loaded_ = false;
                    break;
                case EventStream::Got::Away: tell("the controller is away; waiting for it"); break;
                case EventStream::Got::Back: tell("the controller is back"); break;
                case EventStream::Got::Interrupted:
                case EventStream::Got::Ended:
                    draw();
                    finish();
                    return exit_codes::kOk;
            }
            if (!app_.out().good()) return exit_codes::kOk;
        }
    }

private:
    void tell(const std::string& line) {
        if (live_) {
            status_ = line;
            dirty_ = true;
        } else {
            app_.note("muster: " + line);
        }
    }
    void take(const net::ServerEvent& event) {
        if (event.name == "bookmark") {
            const bool first = !std::exchange(loaded_, true);
            status_.clear();
            if (first && !live_) append_all();
            return;
        }
        auto document = JsonDocument::parse(event.data);
        if (!document) return;
        if (form_.form == Form::Ndjson) {
            JsonWriter line;
            line.begin_object().field("event", event.name).field("revision", event.id);
            line.key("object").raw(event.data).end_object();
            app_.out().write(line.text() + "\n");
            app_.out().flush();
            return;
        }
        const bool gone = event.name == "delete";
        if (gone) items_.drop(document->root()[listing_.name_field].text());
        if (!live_ && loaded_) append(document->root(), gone);
        if (!gone) items_.put(*std::move(document), event.name == "snapshot", app_.now());
        dirty_ = true;
    }
    void append_all() {
        if (!form_.is_table()) return;
        items_.each([&](const Json& item, Time) { appended_.add(item); });
        flush_appended(form_.header);
    }
    void append(const Json& item, bool gone) {
        if (form_.form == Form::Name) {
            app_.out().write(item[listing_.name_field].text() + "\n");
        } else if (form_.is_table() && !gone) {
            appended_.add(item);
            flush_appended(false);
            return;
        }
        app_.out().flush();
    }
    void flush_appended(bool header) {
        app_.out().write(appended_.table().render({.header = header, .color = app_.out_color()}));
        appended_.table().clear_rows();
        app_.out().flush();
    }
    void draw() {
        if (!live_ || !loaded_) return;
        int columns = app_.world().columns, rows = app_.world().rows;
        terminal_size(app_.out().fd(), columns, rows);
        const Time now = app_.now();
        ListTable list(listing_.columns, form_.form == Form::Wide, now);
        items_.each([&](const Json& item, Time told) { list.add(item, now - told); });
        const std::string text = list.table().render({.width = static_cast<std::size_t>(columns),
                                                      .header = form_.header,
                                                      .color = app_.out_color()});
        const auto room = static_cast<std::size_t>(std::max(rows - 2, 3));
        std::string out = "\r";
        if (drawn_ > 0) out += "\x1b[" + std::to_string(drawn_) + "A";
        std::size_t lines = 0, at = 0;
        while (at < text.size() && lines < room) {
            const std::size_t end = text.find('\n', at);
            out += text.substr(at, end - at) + "\x1b[K\n";
            at = end + 1;
            ++lines;
        }
        const auto hidden = static_cast<std::size_t>(
            std::count(text.begin() + static_cast<std::ptrdiff_t>(std::min(at, text.size())),
                       text.end(), '\n'));
        std::string last = hidden > 0 ? "… and " + std::to_string(hidden) + " more" : "";
        if (!status_.empty()) last += (last.empty() ? "" : "; ") + status_;
        if (!last.empty()) {
            out += paint(last, Tone::Dim, app_.out_color()) + "\x1b[K\n";
            ++lines;
        }
        drawn_ = lines;
        app_.out().write(out + "\x1b[J");
        app_.out().flush();
        dirty_ = false;
    }
    void finish() { app_.out().flush(); }

    App& app_;
    const OutputForm& form_;
    const Listing& listing_;
    EventStream stream_;
    Watched items_;
    ListTable appended_;
    bool live_;
    bool loaded_ = false;
    bool dirty_ = true;
    std::size_t drawn_ = 0;
    std::string status_;
};

}  // namespace

int watch_list(App& app, const OutputForm& form, const Listing& listing) {
    if (!form.is_table() && form.form != Form::Ndjson && form.form != Form::Name)
        return app.fail({Code::Invalid, "--watch cannot write this form of output", "",
                         "use -o table, wide, ndjson or name"});
    app.catch_interrupts();
    const auto client = app.client();
    if (!client) return app.fail(client.error());
    Query query;
    for (const auto& [name, value] : listing.query) query.add(name, value);
    if (listing.has_fields && form.is_table()) {
        std::string fields;
        for (const std::string& root :
             root_fields(ListTable(listing.columns, form.form == Form::Wide, app.now()).fields()))
            fields += (fields.empty() ? "" : ",") + root;
        query.add("fields", fields);
    }
    query.add("watch", "1");
    EventStream stream(**client, {.target = listing.path + query.text()});
    return Watch(app, form, listing, std::move(stream)).run();
}

}  // namespace muster::cli
