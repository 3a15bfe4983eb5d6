// How well a query fits a key: the sums that attention is made of.
#pragma once

#include "simd.hpp"

namespace elman::ELMAN_ISA {

// The sum over all numbers of two vectors of each(x, y).
template <class Each>
ELMAN_INLINE float sum_over(const float* x, const float* y, long size, Each each) {
    constexpr int W = kLanes<float>;
    Vector<float> sum = {};
    const long whole = size / W * W;
    for (long i = 0; i < whole; i += W) sum += each(load(x + i), load(y + i), i, W);
    if (whole < size) {
        const int rest = static_cast<int>(size - whole);
        sum += each(load_some(x + whole, rest), load_some(y + whole, rest), whole, rest);
    }
    return sum_of(sum);
}

inline float dot(const float* x, const float* y, long size) {
    return sum_over(x, y, size,
                    [](Vector<float> a, Vector<float> b, long, int) __attribute__((always_inline)) { return a * b; });
}

// v · tanh(q + k)
inline float additive_score(const float* q, const float* k, const float* v, long size) {
    return sum_over(q, k, size, [&](Vector<float> a, Vector<float> b, long i, int n) __attribute__((always_inline)) {
        return load_some(v + i, n) * hyperbolic_tangent(a + b);
    });
}

}  // namespace elman::ELMAN_ISA
