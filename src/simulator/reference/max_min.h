// Shares of time on kinds of devices that make the worst-off job as well off as can be: the linear
// program of the Gavel paper (OSDI '20),
//
//     max t:  sum_w worth_jw x_jw >= t,  sum_w x_jw <= 1,  sum_j devices_j x_jw <= capacity_w,
//
// solved by CLP. With room to spare it has many optima, and they are not equally good for the jobs
// that are not the worst off. The published results took what an interior-point solver ends at,
// near the middle of the optima, and so does this: CLP's interior-point method, without a
// cross-over to a corner. Jobs that are alike have equal shares there, so they are one group.
#pragma once

#include <span>
#include <vector>

namespace muster::simulator::reference {

struct ShareGroup {
    int count = 1;              // Jobs that are alike.
    int devices = 1;            // Of each.
    std::vector<double> worth;  // Of all its time on each kind; 0: it does not run there.
};
struct Shares {
    double least = 0;                        // The worst-off job's worth.
    std::vector<std::vector<double>> share;  // Of one job of each group, on each kind.
};
/// `capacity`: devices of each kind. `least` is within a millionth of the optimum.
Shares max_min_shares(std::span<const ShareGroup> groups, std::span<const double> capacity);

}  // namespace muster::simulator::reference
