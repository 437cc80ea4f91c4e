// Reads queues and scheduling rules out of a document's tree. Internal to the room.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "spec/queue_file.h"
#include "spec/reader.h"

namespace muster::spec {

class QueueReader : public Reader {
public:
    explicit QueueReader(std::span<const Source> sources) : Reader(sources) {}

    /// A tree ("{research: {queues: {nlp: {}}}}") or a list of names. Fills in `queues`.
    void read_queues(const Value& value);
    /// A map of rules, into `rules`.
    void read_rules(const Value& value);
    /// A map of one queue's fields but `queues`, into `*settings`.
    void read_settings(const Value& map);
    /// Adds what contradicts itself in `queues`, at the places they were read from.
    void check_tree();

    std::vector<model::Queue> queues;  // In the order read until check_tree() sorts them.
    model::SchedulingRules rules;
    model::QueueSettings* settings = nullptr;  // Of the queue that is being read.
    bool alone = false;  // One queue's fields are read, so that there is no `queues` among them.
    bool adds = false;   // A map of amounts adds to what is there; else it stands in its place.

    // --- For the rows of the table -----------------------------------------------------------
    /// A number with at most three decimals, in thousandths.
    std::optional<std::int64_t> thousandths(const Value& value, std::int64_t low,
                                            std::int64_t high);
    /// "none" is -1.
    void count(const Value& value, std::int64_t& out, std::int64_t high);
    void read_amounts(const Value& value, model::Amounts& out);
    void read_amount(const Entry& entry, model::Amounts& out);
    void read_kinds(const Value& value, std::vector<std::pair<std::string, std::int64_t>>& out);
    void read_words(const Value& value, std::vector<std::string>& out);
    /// One of `names`: its index.
    std::optional<std::size_t> choice(const Value& value, std::span<const std::string> names);
    void unknown_part(const Entry& entry, std::initializer_list<std::string> known) {
        fail_unknown(entry, std::vector<std::string>(known));
    }

private:
    void read_level(const Value& map, const std::string& above, std::size_t depth);
    void add_queue(const Entry& entry, const std::string& above, std::size_t depth);
    std::string resource_name(const Entry& entry);

    struct Place {
        std::uint16_t source;
        std::uint32_t at;
    };
    std::vector<Place> places_;  // Of each of `queues`.
};

/// What contradicts itself in one queue's settings; "": nothing.
std::string contradiction(const model::QueueSettings& settings);

/// Index of a queue and what is wrong with it beside the others.
struct Contradiction {
    std::size_t queue;
    std::string message;
};
std::vector<Contradiction> find_contradictions(std::span<const model::Queue> queues);

extern const std::vector<std::string> kPolicyNames;  // In the order of model::QueuePolicy.

}  // namespace muster::spec
