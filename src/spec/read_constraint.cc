// The reader of `constraint`: "gpu-gen=3, zone in (a,b), !old".
#include <algorithm>

#include "spec/normaliser.h"

namespace muster::spec {
namespace {

using Term = model::ConstraintTerm;
constexpr std::size_t kTermsMax = 256;
constexpr std::string_view kForms = "write key, !key, key=value, key!=value, or key in (a,b)";

bool is_label_word(std::string_view text) {
    return !text.empty() && text.size() <= 256 && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '.' || c == '_' || c == '-' || c == '/' || c == ':';
    });
}

/// At commas that are outside of parentheses. Nothing: they do not match.
std::optional<std::vector<std::string_view>> split_terms(std::string_view text) {
    std::vector<std::string_view> terms;
    std::size_t start = 0;
    bool inside = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '(' || text[i] == ')') {
            if (inside == (text[i] == '(')) return std::nullopt;
            inside = !inside;
        } else if (text[i] == ',' && !inside) {
            terms.push_back(trim(text.substr(start, i - start)));
            start = i + 1;
        }
    }
    if (inside) return std::nullopt;
    terms.push_back(trim(text.substr(start)));
    return terms;
}

/// "a,b" of "(a,b)" after `in` or `not in`.
std::optional<std::vector<std::string>> value_list(std::string_view text) {
    if (text.size() < 2 || text.front() != '(' || text.back() != ')') return std::nullopt;
    std::vector<std::string> values;
    for (const std::string_view part : split(text.substr(1, text.size() - 2), ',')) {
        if (!is_label_word(trim(part))) return std::nullopt;
        values.emplace_back(trim(part));
    }
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return values;
}

std::optional<Term> parse_term(std::string_view text) {
    Term term;
    const auto finish = [&](std::string_view key) -> std::optional<Term> {
        if (!is_label_word(trim(key))) return std::nullopt;
        term.key = std::string(trim(key));
        return term;
    };
    if (!text.empty() && text.front() == '!') {
        term.op = Term::Op::NotExists;
        return finish(text.substr(1));
    }
    if (const std::size_t equals = text.find('='); equals != std::string_view::npos) {
        std::string_view key = text.substr(0, equals), value = text.substr(equals + 1);
        if (!key.empty() && key.back() == '!') {
            term.op = Term::Op::NotIn;
            key.remove_suffix(1);
        } else if (!value.empty() && value.front() == '=') {
            value.remove_prefix(1);
        }
        if (!is_label_word(trim(value))) return std::nullopt;
        term.values = {std::string(trim(value))};
        return finish(key);
    }
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos) {
        term.op = Term::Op::Exists;
        return finish(text);
    }
    std::string_view rest = trim(text.substr(space));
    const auto take = [&](std::string_view word) {
        if (rest.substr(0, word.size()) != word) return false;
        const std::string_view after = rest.substr(word.size());
        if (!after.empty() && after.front() != ' ' && after.front() != '(') return false;
        rest = trim(after);
        return true;
    };
    if (take("notin"))
        term.op = Term::Op::NotIn;
    else if (take("not")) {
        if (!take("in")) return std::nullopt;
        term.op = Term::Op::NotIn;
    } else if (!take("in"))
        return std::nullopt;
    auto values = value_list(rest);
    if (!values) return std::nullopt;
    term.values = std::move(*values);
    return finish(text.substr(0, space));
}

void add_terms(Normaliser& n, const Value& v) {
    const auto written = n.scalar(v);
    if (!written) return;
    const auto terms = split_terms(*written);
    if (!terms)
        return n.fail(v,
                      shorten(*written) +
                          ": parentheses do not match; put \"key in (a,b)\" in quotes in a list");
    for (const std::string_view text : *terms) {
        const auto term = parse_term(text);
        if (!term) {
            n.fail(v, shorten(text) + ": not a condition on nodes; " + std::string(kForms));
            continue;
        }
        if (term->key == "node" && term->values.empty()) {
            n.fail(v, shorten(text) + ": every node has a name; write \"node in (a,b)\"");
            continue;
        }
        if (n.spec.constraint.size() >= kTermsMax)
            return n.fail(v, "more than the limit of " + std::to_string(kTermsMax) + " conditions");
        n.spec.constraint.push_back(*term);
    }
}

}  // namespace

void read_constraint(Normaliser& n, const Value& v) {
    const auto list = n.items(v);
    if (v.kind != Value::Kind::List) {
        if (!list.empty()) add_terms(n, v);
        return;
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
        const Normaliser::Within within(n, i);
        add_terms(n, list[i]);
    }
}

}  // namespace muster::spec
