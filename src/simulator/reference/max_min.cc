#include "simulator/reference/max_min.h"

#include <algorithm>
#include <cstddef>

#include <ClpInterior.hpp>

// Not self-contained: after the other.
#include <ClpCholeskyDense.hpp>

#include "base/require.h"

namespace muster::simulator::reference {

Shares max_min_shares(std::span<const ShareGroup> groups, std::span<const double> capacity) {
    if (groups.empty()) return {};
    const std::size_t kinds = capacity.size(), count = groups.size();
    // Columns: each group's share of each kind, then t. Rows: each group's time, each group's
    // worth above t, each kind's devices.
    const std::size_t columns = count * kinds + 1, rows = 2 * count + kinds;
    std::vector<CoinBigIndex> begins{0};
    std::vector<int> row_of;
    std::vector<double> factor;
    const auto put = [&](std::size_t row, double value) {
        row_of.push_back(static_cast<int>(row));
        factor.push_back(value);
    };
    std::vector<double> most(columns, COIN_DBL_MAX);
    for (std::size_t g = 0; g < count; ++g) {
        for (std::size_t w = 0; w < kinds; ++w) {
            put(g, 1);
            put(count + g, groups[g].worth[w]);
            put(2 * count + w, static_cast<double>(groups[g].count) * groups[g].devices);
            begins.push_back(static_cast<CoinBigIndex>(row_of.size()));
            if (groups[g].worth[w] <= 0) most[g * kinds + w] = 0;
        }
    }
    for (std::size_t g = 0; g < count; ++g) put(count + g, -1);
    begins.push_back(static_cast<CoinBigIndex>(row_of.size()));
    std::vector<double> low(rows, -COIN_DBL_MAX), high(rows, 1), cost(columns, 0);
    for (std::size_t g = 0; g < count; ++g) low[count + g] = 0, high[count + g] = COIN_DBL_MAX;
    for (std::size_t w = 0; w < kinds; ++w) high[2 * count + w] = capacity[w];
    cost.back() = -1;

    ClpInterior program;
    program.setLogLevel(0);
    program.loadProblem(static_cast<int>(columns), static_cast<int>(rows), begins.data(),
                        row_of.data(), factor.data(), nullptr, most.data(), cost.data(), low.data(),
                        high.data());
    program.setCholesky(new ClpCholeskyDense);  // The program frees it.
    program.primalDual();
    // It always has an optimum: nothing at all is a solution, and t is bounded.
    MUSTER_REQUIRE(program.status() == 0);

    const double* solution = program.primalColumnSolution();
    Shares shares;
    shares.least = solution[columns - 1];
    for (std::size_t g = 0; g < count; ++g) {
        auto& share = shares.share.emplace_back(kinds, 0.0);
        for (std::size_t w = 0; w < kinds; ++w)
            share[w] = std::clamp(solution[g * kinds + w], 0.0, 1.0);
    }
    return shares;
}

}  // namespace muster::simulator::reference
