// How well a query fits a key: the sums that attention is made of.
#pragma once

#include "simd.hpp"

namespace elman::ELMAN_ISA {

inline float dot(const float* x, const float* y, Index size) {
    Vector<float> sum = {};
    registers(size,
              [&](Index i, int n) __attribute__((always_inline)) { sum += load_some(x + i, n) * load_some(y + i, n); });
    return sum_of(sum);
}

inline void add_multiple(float factor, const float* x, Index size, float* to) {
    registers(size, [&](Index i, int n) __attribute__((always_inline)) {
        store_some(to + i, load_some(to + i, n) + factor * load_some(x + i, n), n);
    });
}

// v · tanh(q + k)
inline float additive_score(const float* q, const float* k, const float* v, Index size) {
    Vector<float> sum = {};
    registers(size, [&](Index i, int n) __attribute__((always_inline)) {
        sum += load_some(v + i, n) * hyperbolic_tangent(load_some(q + i, n) + load_some(k + i, n));
    });
    return sum_of(sum);
}

}  // namespace elman::ELMAN_ISA
