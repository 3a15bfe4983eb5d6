// The continuous cache of Grave, Joulin and Usunier (2017): of the exponentials of all places that a row sees, the part
// of those behind which its target stood.
#include "cache_kernel.hpp"

#include "simd.hpp"

namespace elman::ELMAN_ISA {

namespace {

constexpr Index kBlock = 64;  // registers whose sum single precision can hold without losing digits

ELMAN_INLINE double share(const float* scores, const int* ids, Index count, int target, float theta) {
    constexpr int W = kLanes<float>;
    constexpr float least = -__builtin_inff();
    Vector<float> top = every(least);
    registers(count, [&](Index i, int n) __attribute__((always_inline)) {
        const Vector<float> x = load_some(scores + i, n, least);
        top = x > top ? x : top;
    });
    const float most = largest<float>(top);
    double total = 0, found = 0;
    for (Index begin = 0; begin < count; begin += kBlock * W) {
        Vector<float> sum = {}, hit = {};
        registers(count - begin < kBlock * W ? count - begin : kBlock * W, [&](Index i,
                                                                               int n) __attribute__((always_inline)) {
            Vector<float> e = exponential_or_zero((load_some(scores + begin + i, n, most) - most) * theta);
            if (n < W) {  // what is behind the last place counts for nothing
                float lanes[W];
                store(lanes, e);
                e = load_some(lanes, n);
            }
            Lanes<float>::Integers behind = {};
            if (n == W) std::memcpy(&behind, ids + begin + i, sizeof behind);
            else copy_some<float>(reinterpret_cast<char*>(&behind), reinterpret_cast<const char*>(ids + begin + i), n);
            sum += e;
            hit += behind == target ? e : Vector<float>{};
        });
        total += static_cast<double>(sum_of(sum));
        found += static_cast<double>(sum_of(hit));
    }
    return found / total;
}

}  // namespace

// The share of each row's target; 0 for a row that sees nothing.
void cache_shares(const CacheShares& cache, Index begin, Index end) {
    const Index before = cache.places - cache.rows;
    for (Index row = begin; row < end; ++row) {
        const Index stop = before + row, start = stop > cache.size ? stop - cache.size : 0;
        cache.shares[row] = start == stop ? 0
                                          : share(cache.scores + row * cache.places + start, cache.ids + start,
                                                  stop - start, cache.targets[row], cache.theta);
    }
}

}  // namespace elman::ELMAN_ISA
