// One client that watches a table: a snapshot, then what changed, as
// server-sent events.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "rest/api.h"

namespace muster::rest {

/// What a watch shows. One object a watch; on the watches thread only.
class Subject {
public:
    virtual ~Subject() = default;
    virtual const std::vector<std::uint64_t>& changed(const Round& round) const = 0;
    virtual std::vector<std::uint64_t> missed(const Hub::Missed& missed) const = 0;
    /// The next shown id below `id`, 0: none. ~0 asks for the first.
    virtual std::uint64_t below(const core::View& view, std::uint64_t id) = 0;
    virtual bool shown(const core::View& view, std::uint64_t id) = 0;
    /// The whole row of a shown id.
    virtual void write(JsonWriter& json, const core::View& view, std::uint64_t id) = 0;
    /// The object that names it in a `delete`; `view` is one that still had it,
    /// or a newer one.
    virtual void write_key(JsonWriter& json, const core::View& view, std::uint64_t id) = 0;
};

/// Answers 410 itself when Last-Event-ID is no longer known.
void start_watch(const CallPtr& call, std::shared_ptr<Subject> subject);

}  // namespace muster::rest
