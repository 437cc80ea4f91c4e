#include "simulator/models/scattered.h"

#include <cstdio>
#include <memory>
#include <string>

#include <libqhull_r/qhull_ra.h>

namespace muster::simulator::models {
namespace {

/// Below it (of the weight of a corner) a place counts as outside the tetrahedron: rounding.
constexpr double kOutside = -1e-9;

Point3 minus(const Point3& a, const Point3& b) {
    return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}
double determinant(const Point3& a, const Point3& b, const Point3& c) {
    return a[0] * (b[1] * c[2] - b[2] * c[1]) - a[1] * (b[0] * c[2] - b[2] * c[0]) +
           a[2] * (b[0] * c[1] - b[1] * c[0]);
}

/// Qhull's state, freed on every way out.
struct Hull {
    qhT state{};
    FILE* messages = nullptr;
    std::string text;

    Hull() {
        qh_zero(&state, nullptr);
        messages = std::tmpfile();
    }
    ~Hull() {
        qh_freeqhull(&state, !qh_ALL);
        int left = 0, bytes = 0;
        qh_memfreeshort(&state, &left, &bytes);
        if (messages != nullptr) std::fclose(messages);
    }
    Hull(const Hull&) = delete;
    Hull& operator=(const Hull&) = delete;
};

}  // namespace

Result<Scattered> Scattered::of(std::span<const Point3> points) {
    Scattered made;
    made.points_.assign(points.begin(), points.end());
    std::vector<coordT> flat;
    for (const Point3& point : points) flat.insert(flat.end(), point.begin(), point.end());
    // Delaunay (d), all facets triangulated (Qt), the lifted coordinate scaled (Qbb), coplanar
    // points kept (Qc), a point at infinity for points on one sphere (Qz), wide facets allowed.
    char options[] = "qhull d Qt Qbb Qc Qz Q12";
    const auto hull = std::make_unique<Hull>();
    qhT* qh = &hull->state;
    if (points.size() < 5 || qh_new_qhull(qh, 3, static_cast<int>(points.size()), flat.data(),
                                          False, options, hull->messages, hull->messages) != 0) {
        return Error{Code::Invalid,
                     std::to_string(points.size()) + " points make no tetrahedra to interpolate in",
                     "", "give at least five that do not lie in one plane"};
    }
    const auto count = static_cast<int>(points.size());
    facetT* facet = nullptr;
    FORALLfacets {
        if (facet->upperdelaunay) continue;
        std::array<std::uint32_t, 4> corners{};
        int filled = 0;
        vertexT* vertex = nullptr;
        vertexT** vertexp = nullptr;
        FOREACHvertex_(facet->vertices) {
            const int id = qh_pointid(qh, vertex->point);
            if (id < 0 || id >= count || filled == 4) {  // The point at infinity.
                filled = -1;
                break;
            }
            corners[static_cast<std::size_t>(filled++)] = static_cast<std::uint32_t>(id);
        }
        if (filled == 4) made.tetrahedra_.push_back(corners);
    }
    return made;
}

std::optional<Scattered::Weights> Scattered::at(const Point3& where) const {
    // The best of all, not the first that will do: what lies on a border must not depend on how
    // the border was rounded.
    std::optional<Weights> best;
    double best_least = kOutside;
    for (const auto& corners : tetrahedra_) {
        const Point3& origin = points_[corners[3]];
        const Point3 a = minus(points_[corners[0]], origin);
        const Point3 b = minus(points_[corners[1]], origin);
        const Point3 c = minus(points_[corners[2]], origin);
        const Point3 p = minus(where, origin);
        const double volume = determinant(a, b, c);
        if (volume < 1e-9 && volume > -1e-9) continue;  // Flat.
        Weights found{corners,
                      {determinant(p, b, c) / volume, determinant(a, p, c) / volume,
                       determinant(a, b, p) / volume, 0}};
        found.weight[3] = 1 - found.weight[0] - found.weight[1] - found.weight[2];
        double least = found.weight[0];
        for (const double weight : found.weight) least = weight < least ? weight : least;
        if (least < best_least) continue;
        if (best && least == best_least) continue;
        best = found;
        best_least = least;
    }
    return best;
}

}  // namespace muster::simulator::models
