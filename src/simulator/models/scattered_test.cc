#include "simulator/models/scattered.h"

#include "base/prng.h"

namespace muster::simulator::models {
namespace {

std::vector<Point3> grid(int side, const Point3& scale) {
    std::vector<Point3> points;
    for (int x = 0; x < side; ++x)
        for (int y = 0; y < side; ++y)
            for (int z = 0; z < side; ++z)
                points.push_back({x * scale[0], y * scale[1], z * scale[2]});
    return points;
}
double plane(const Point3& p) {
    return 3 + 2 * p[0] - p[1] + 0.25 * p[2];
}

TEST(Scattered, a_plane_is_met_everywhere_and_nothing_outside) {
    const Point3 scale{1, 4, 300};
    const auto points = grid(4, scale);
    const auto scattered = Scattered::of(points);
    ASSERT_TRUE(scattered);
    Prng random(1);
    const auto fraction = [&] { return static_cast<double>(random.below(3001)) / 1000; };
    for (int i = 0; i < 500; ++i) {
        const Point3 where{fraction() * scale[0], fraction() * scale[1], fraction() * scale[2]};
        const auto weights = scattered->at(where);
        ASSERT_TRUE(weights) << where[0] << ' ' << where[1] << ' ' << where[2];
        double value = 0;
        for (std::size_t k = 0; k < 4; ++k)
            value += weights->weight[k] * plane(points[weights->point[k]]);
        EXPECT_NEAR(value, plane(where), 1e-6);
    }
    EXPECT_FALSE(scattered->at({-0.01, 1, 1}));
    EXPECT_FALSE(scattered->at({1, 1, 901}));
}

TEST(Scattered, a_point_has_its_own_value_and_a_middle_of_two_their_mean) {
    std::vector<Point3> points{{0, 0, 0}, {2, 0, 0}, {0, 2, 0}, {0, 0, 2}, {2, 2, 2}};
    const auto scattered = Scattered::of(points);
    ASSERT_TRUE(scattered);
    for (std::uint32_t i = 0; i < points.size(); ++i) {
        const auto weights = scattered->at(points[i]);
        ASSERT_TRUE(weights);
        for (std::size_t k = 0; k < 4; ++k)
            EXPECT_NEAR(weights->weight[k], weights->point[k] == i ? 1 : 0, 1e-12);
    }
    const auto middle = scattered->at({1, 0, 0});
    ASSERT_TRUE(middle);
    for (std::size_t k = 0; k < 4; ++k)
        EXPECT_NEAR(middle->weight[k], middle->point[k] <= 1 ? 0.5 : 0, 1e-12);
}

TEST(Scattered, refuses_points_in_one_plane) {
    std::vector<Point3> flat;
    for (int i = 0; i < 12; ++i) flat.push_back({i * 1.0, (i % 4) * 1.0, 0});
    for (const auto& points : {flat, std::vector<Point3>{{0, 0, 0}}}) {
        const auto scattered = Scattered::of(points);
        ASSERT_FALSE(scattered);
        EXPECT_EQ(scattered.error().message,
                  std::to_string(points.size()) + " points make no tetrahedra to interpolate in");
    }
}

}  // namespace
}  // namespace muster::simulator::models
