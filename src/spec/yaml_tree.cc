// The only file that knows yaml-cpp.
#include <algorithm>
#include <istream>
#include <map>
#include <set>
#include <streambuf>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "spec/parse.h"
#include "spec/tree.h"

namespace muster::spec {
namespace {

// What aliases may add to a document, counted once where it is anchored and once where it is used.
constexpr std::size_t kAliasedValuesMax = 20'000;
constexpr std::size_t kAliasedBytesMax = std::size_t{4} << 20;

constexpr std::string_view kNotAKey =
    "a key must be text, not a list or a map; is a bracket not closed?";

struct Weight {
    std::size_t values = 0;
    std::size_t bytes = 0;
    std::size_t depth = 0;  // Of the deepest value weighed.
};
void weigh(const Value& value, Weight& weight, std::size_t depth) {
    ++weight.values;
    weight.bytes += value.text.size();
    weight.depth = std::max(weight.depth, depth);
    for (const Value& item : value.items) weigh(item, weight, depth + 1);
    for (const Entry& entry : value.entries) {
        weight.bytes += entry.key.size();
        weigh(entry.value, weight, depth + 1);
    }
}

/// Thrown through yaml-cpp, which cannot be stopped otherwise; caught in read_yaml().
struct Refused {
    SyntaxError error;
};
[[noreturn]] void refuse(std::uint32_t at, std::string message) {
    throw Refused{{at, std::move(message)}};
}

[[noreturn]] void refuse_depth(std::uint32_t at) {
    refuse(at, "nested deeper than the limit of " + std::to_string(kNestingMax));
}

class Builder final : public YAML::EventHandler {
public:
    explicit Builder(std::uint16_t source) : source_(source) {}

    void OnDocumentStart(const YAML::Mark& mark) override {
        if (++documents_ > 1)
            refuse(offset(mark), "a second document (after ---); one file holds one");
    }
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        add(begin(Value::Kind::Null, mark, "", anchor));
    }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        const auto known = anchors_.find(anchor);
        if (known == anchors_.end())
            refuse(offset(mark), "this alias is inside the value that it stands for");
        charge(known->second, offset(mark));
        Value copy = known->second;
        copy.at = offset(mark);
        add({std::move(copy), 0});
    }
    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  const std::string& text) override {
        Frame frame = begin(Value::Kind::Scalar, mark, tag, anchor);
        frame.value.quoted = tag == "!";
        frame.value.text = text;
        add(std::move(frame));
    }
    void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value) override {
        push(begin(Value::Kind::List, mark, tag, anchor));
    }
    void OnSequenceEnd() override { pop(); }
    void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value) override {
        push(begin(Value::Kind::Map, mark, tag, anchor));
    }
    void OnMapEnd() override {
        merge(stack_.back().value);
        pop();
    }

    Value root() && { return std::move(root_); }

private:
    struct Frame {
        Value value;
        YAML::anchor_t anchor = 0;
        bool has_key = false;  // Map: the key of the next entry is there, its value is not.
    };

    static std::uint32_t offset(const YAML::Mark& mark) {
        return mark.pos < 0 ? 0 : static_cast<std::uint32_t>(mark.pos);
    }
    Frame begin(Value::Kind kind, const YAML::Mark& mark, const std::string& tag,
                YAML::anchor_t anchor) const {
        const std::uint32_t at = offset(mark);
        if (!tag.empty() && tag != "?" && tag != "!")
            refuse(at, "\"" + tag.substr(0, 40) +
                           "\" is a YAML tag here; put text that starts with ! in quotes");
        Frame frame;
        frame.value.kind = kind;
        frame.value.source = source_;
        frame.value.at = at;
        frame.anchor = anchor;
        return frame;
    }
    void push(Frame frame) {
        if (stack_.size() > static_cast<std::size_t>(kNestingMax)) refuse_depth(frame.value.at);
        if (!stack_.empty() && stack_.back().value.kind == Value::Kind::Map &&
            !stack_.back().has_key)
            refuse(frame.value.at, std::string(kNotAKey));
        stack_.push_back(std::move(frame));
    }
    void pop() {
        Frame frame = std::move(stack_.back());
        stack_.pop_back();
        add(std::move(frame));
    }
    void add(Frame frame) {
        if (frame.anchor != 0) {
            charge(frame.value, frame.value.at);
            anchors_[frame.anchor] = frame.value;
        }
        if (stack_.empty()) {
            root_ = std::move(frame.value);
            return;
        }
        Frame& parent = stack_.back();
        if (parent.value.kind == Value::Kind::List) {
            parent.value.items.push_back(std::move(frame.value));
        } else if (parent.has_key) {
            parent.value.entries.back().value = std::move(frame.value);
            parent.has_key = false;
        } else {
            if (frame.value.kind == Value::Kind::Null) refuse(frame.value.at, "an empty key");
            if (frame.value.kind != Value::Kind::Scalar)
                refuse(frame.value.at, std::string(kNotAKey));
            Entry& entry = parent.value.entries.emplace_back();
            entry.key = std::move(frame.value.text);
            entry.source = source_;
            entry.at = frame.value.at;
            parent.has_key = true;
        }
    }
    void charge(const Value& value, std::uint32_t at) {
        spent_.depth = 0;
        weigh(value, spent_, stack_.size());
        if (spent_.depth > static_cast<std::size_t>(kNestingMax)) refuse_depth(at);
        if (spent_.values > kAliasedValuesMax || spent_.bytes > kAliasedBytesMax)
            refuse(at, "anchors and aliases multiply to more than the limit of " +
                           std::to_string(kAliasedValuesMax) + " values or " +
                           std::to_string(kAliasedBytesMax >> 20) + " MiB");
    }

    /// `<<: *base` or `<<: [*a, *b]`: keys of these that the map has not itself; the first wins.
    void merge(Value& map) {
        const auto is_merge = [](const Entry& entry) { return entry.key == "<<"; };
        if (std::none_of(map.entries.begin(), map.entries.end(), is_merge)) return;
        std::vector<Entry> own, merged;
        std::set<std::string> known;
        for (Entry& entry : map.entries)
            (is_merge(entry) ? merged : own).push_back(std::move(entry));
        for (const Entry& entry : own) known.insert(entry.key);
        const auto take = [&](Value& base) {
            if (base.kind != Value::Kind::Map)
                refuse(base.at, "<< merges maps only; this is not one");
            for (Entry& entry : base.entries)
                if (known.insert(entry.key).second) own.push_back(std::move(entry));
        };
        for (Entry& entry : merged) {
            if (entry.value.kind != Value::Kind::List) {
                take(entry.value);
                continue;
            }
            for (Value& base : entry.value.items) take(base);
        }
        map.entries = std::move(own);
    }
    std::uint16_t source_;
    int documents_ = 0;
    Value root_;
    std::vector<Frame> stack_;
    std::map<YAML::anchor_t, Value> anchors_;
    Weight spent_;
};

class MemoryBuffer final : public std::streambuf {
public:
    explicit MemoryBuffer(std::string_view text) {
        char* begin = const_cast<char*>(text.data());  // Never written: there is no put area.
        setg(begin, begin, begin + text.size());
    }
};

/// yaml-cpp's words, and what most often lies behind them.
std::string explain(const YAML::ParserException& error, std::string_view text, std::size_t at) {
    const std::string_view before = text.substr(0, std::min(at, text.size()));
    const std::string_view line = text.substr(before.rfind('\n') + 1);  // npos + 1 is 0.
    if (line.substr(0, line.find_first_not_of(" \t")).find('\t') != std::string_view::npos)
        return "a tab cannot indent YAML; use spaces";
    struct Row {
        std::string_view theirs;
        std::string_view ours;
    };
    static constexpr Row kRows[] = {
        {"illegal map value",
         "a ':' is not expected here; put text that holds ': ' in quotes, or "
         "on lines of its own after '|'"},
        {"end of map not found",
         "this line does not fit the lines before it; align the keys of a "
         "map, and put text with special characters in quotes"},
        {"end of sequence not found",
         "this line does not fit the list before it; align the dashes"},
        {"end of sequence flow not found", "a list opened with '[' is not closed with ']'"},
        {"end of map flow not found", "a map opened with '{' is not closed with '}'"},
        {"anchor is not defined", "no anchor of this name stands before it"},
        {"unknown token", "this character cannot start a value; put the text in quotes"},
        {"unexpected character in block scalar",
         "text cannot stand after '|' or '>' on the same line; put a value like \">=40GB\" in "
         "quotes"},
        {"map keys must be", "a map's keys must be aligned"},
    };
    for (const Row& row : kRows)
        if (error.msg.find(row.theirs) != std::string::npos) return std::string(row.ours);
    return "not YAML: " + error.msg;
}

}  // namespace

Tree read_yaml(std::string_view text, std::uint16_t source) {
    Builder builder(source);
    try {
        MemoryBuffer buffer(text);
        std::istream stream(&buffer);
        YAML::Parser parser(stream);
        while (parser.HandleNextDocument(builder)) {
        }
        return std::move(builder).root();
    } catch (const Refused& refused) {
        return refused.error;
    } catch (const YAML::ParserException& error) {
        const auto at = error.mark.pos < 0 ? 0 : static_cast<std::uint32_t>(error.mark.pos);
        return SyntaxError{at, explain(error, text, at)};
    } catch (const std::exception& error) {
        return SyntaxError{0, std::string("not YAML: ") + error.what()};
    }
}

}  // namespace muster::spec
