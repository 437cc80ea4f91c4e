// One planning pass: promises, then jobs in order (each placed whole or told why not, the first
// blocked ones booked), then preemption, elasticity and defragmentation.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/draft.h"
#include "scheduler/index.h"
#include "scheduler/placer.h"

namespace muster::scheduler {

class Pass : private BookingRule {
public:
    /// `look`: what would happen, without leaving a trace: nothing is told, nobody falls asleep.
    Pass(PlanIndex::State& state, Time now, bool look = false);
    Plan run(const PlanBounds& bounds);

    // For explanations, between begin() and end().
    void begin(const PlanBounds& bounds);
    Plan end();
    Draft& draft() { return draft_; }
    Placer& placer() { return placer_; }
    const Plan& so_far() const { return plan_; }
    const std::vector<Booking>& bookings() const { return bookings_; }
    Request request_of(QueuedJob& job);
    Blocked reason_of(const QueuedJob& job, const Refusal& refusal);
    /// Of a look: why a shape that was awake did not start.
    const std::map<const ShapeEntry*, Blocked>& looked() const { return looked_; }
    /// Whom to stop so that the job starts; in the draft the victims are gone and it is placed.
    bool make_room(QueuedJob& job, const Demand& demand);

private:
    enum class Outcome { Started, Blocked, Skipped };

    void gather();
    void list(QueueEntry& queue);
    QueueEntry* next_queue();
    void keep_promises();
    void serve(QueueEntry& queue);
    Outcome try_job(Lane& lane, QueuedJob& job);
    void search_later(ShapeEntry& entry);
    bool sleeps_on(ShapeEntry& entry);
    void rewind(ShapeEntry& entry);
    Lane* first_lane(ShapeEntry& entry, OrderKey& key);
    bool binds(JobId booked) override;
    void take_stock();
    void wake_unbooked(std::vector<Sleeper>& list);
    void compare_bookings();
    void order_windows();
    void compare_turns(const std::vector<Turn>& before);
    void compare_owners();
    OrderKey key_before(const QueuedJob& job) const;
    bool compare_lenders();
    bool privileged(ShapeEntry& entry);
    std::vector<QueueEntry*> queues_with_windows();
    void freeze_shares(QueueEntry& queue);
    void rank_users(QueueEntry& queue);
    bool room_for(const std::string& kind) const;
    bool beyond_bound(ShapeEntry& entry, const Blocked& why);
    void block(Lane& lane, QueuedJob& job, const Refusal& refusal);
    void put_to_sleep(Lane& lane, const Blocked& why, QueueEntry* limiting);
    void sleep_by_capacity(ShapeEntry& entry);
    void book(QueuedJob& job);
    bool worth_booking(const ShapeEntry& entry);
    const QueuedJob* displaced_by(QueuedJob& job);
    void rouse();
    void close_behind(QueueEntry& queue, ShapeEntry& entry, const QueuedJob& job);
    void unbook(JobId job);
    void drop_windows_behind(const QueueEntry& queue, JobId first);
    const Booking* booking_of(JobId job) const;
    void wake_at(ShapeEntry& entry, Time at);
    void tell(QueuedJob& job, const Blocked& why);
    void push(QueueEntry& queue, ShapeEntry& entry);
    void close();
    void preempt();
    void grow();
    struct Search;
    bool choose(Search& search, const GroupAsk& group, const Choice& choice, std::int64_t nodes);
    bool settle(Search& search);
    bool anybody(Search& search, const Demand& demand) const;
    bool may_stop(const Search& search, const StartedJob& victim,
                  std::span<StartedJob* const> chosen = {}, bool* deep = nullptr) const;
    std::optional<Placement> place_most(Request& request, std::int64_t least, std::int64_t most);
    std::optional<Placement> place_beyond(Request& request);
    bool worth_it(const Search& search) const;
    void announce(const Search& search);

    PlanIndex::State& state_;
    Time now_;
    Draft draft_;
    Placer placer_;
    Plan plan_;
    std::vector<QueueEntry*> tops_;
    const QueuedJob* asking_ = nullptr;
    std::vector<std::pair<JobId, bool>> bound_;  // Of the one who asks, as far as asked.
    std::map<std::string, std::size_t> booked_kinds_;
    std::vector<NodeId> avoid_;
    std::vector<Booking> bookings_;  // As they stand.
    std::vector<Turn> turns_;        // In which they bind one another.
    bool bookings_changed_ = false;
    JobId windowless_;                   // The last for whom there is no window at all.
    bool blocked_ = false;               // Somebody, by capacity.
    ResourceVec used_before_;            // By all, when the pass began.
    std::optional<ResourceVec> beyond_;  // What those that wait leave to elastic ones.
    std::size_t base_ = 0;               // Of the draft, before the search under way.
    std::int64_t reclaimed_ = 0;         // Devices (thousandths) that this pass takes back.
    QueueEntry* serving_ = nullptr;
    std::size_t tries_ = 0;
    bool searched_ = false;  // For victims, on the nodes.
    bool look_;
    std::vector<ShapeEntry*> slept_;  // Of a look: woken again.
    std::vector<Lane*> slept_lanes_;
    std::map<const ShapeEntry*, Blocked> looked_;
};

/// The kind of device that it would rather have; windows are counted by it.
const std::string& kind_of(const ShapeEntry& shape);
/// A better window is looked for when its time has come, and before that now and then only: the
/// further off, the more rarely.
Time look_again(const Booking& booking);
/// Its queue's order is another at another time, though no job came or went.
bool order_moves(const QueueEntry& queue);
constexpr Duration kTellAgain{1000};  // Numbers of a reason that is told already.

/// Numbers for people. `exact` looks at every node.
Blocked numbers(PlanIndex::State& state, ShapeEntry& entry, bool exact);
/// What a job of the shape would use, by the first choice of each group; CPUs that are not asked
/// for are left out.
Demand demand_of(PlanIndex::State& state, ShapeEntry& entry);

}  // namespace muster::scheduler
