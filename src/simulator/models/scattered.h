// Piecewise linear interpolation between scattered points in space: the Delaunay tetrahedra of the
// points, found by Qhull, and barycentric weights within each.
//
// On points of a grid many triangulations are Delaunay; the one used is Qhull's for the points in
// their order, which is also the one that SciPy's LinearNDInterpolator takes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"

namespace muster::simulator::models {

using Point3 = std::array<double, 3>;

class Scattered {
public:
    /// At least five points that do not lie in one plane.
    static Result<Scattered> of(std::span<const Point3> points);

    struct Weights {
        std::array<std::uint32_t, 4> point;  // Indices into the points given.
        std::array<double, 4> weight;        // Their sum is 1.
    };
    /// Empty: outside the convex hull.
    std::optional<Weights> at(const Point3& where) const;

private:
    std::vector<Point3> points_;
    std::vector<std::array<std::uint32_t, 4>> tetrahedra_;
};

}  // namespace muster::simulator::models
