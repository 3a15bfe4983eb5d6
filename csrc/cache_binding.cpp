// The continuous cache as Python sees it; see cache_kernel.cpp.
#include <limits>

#include "arguments.hpp"
#include "bindings.hpp"
#include "dispatch.hpp"
#include "threads.hpp"

namespace elman {
namespace {

nb::ndarray<nb::numpy, double> cache_shares(const Numbers& scores, const Ids& place_ids, const Ids& target_ids,
                                            Index size, float theta, int threads) {
    constexpr Index kIds = std::numeric_limits<int>::max();
    if (scores.ndim() != 2 || scores.shape(1) < scores.shape(0))
        refuse("scores", "should have a row for each target, and a column for each of these and for each place before");
    checked_threads(threads);
    if (size < 1) refuse("size", "should be at least 1");
    const Index rows = static_cast<Index>(scores.shape(0)), places = static_cast<Index>(scores.shape(1));
    const std::vector<int> ids = checked_ids("ids", place_ids, places, kIds);
    const std::vector<int> targets = checked_ids("targets", target_ids, rows, kIds);
    std::vector<double> shares(static_cast<std::size_t>(rows));
    const CacheShares cache{rows, places, size, theta, scores.data(), ids.data(), targets.data(), shares.data()};
    {
        nb::gil_scoped_release unlocked;
        auto body = [&](int index, int count) {
            kernels().cache_shares(cache, rows * index / count, rows * (index + 1) / count);
        };
        parallel(threads, body);
    }
    return to_python(std::move(shares), {static_cast<std::size_t>(rows)});
}

}  // namespace

void bind_cache(nb::module_& m) {
    m.def("cache_shares", cache_shares, nb::arg("scores").noconvert(), nb::arg("ids").noconvert(),
          nb::arg("targets").noconvert(), nb::arg("size"), nb::arg("theta"), nb::arg("threads"),
          "Of the cache's probability, the share of each row's target; see cache_kernel.cpp.");
}

}  // namespace elman
