#include "attention_kernel.hpp"

#include "attention_scores.hpp"

namespace elman::ELMAN_ISA {
namespace {

ELMAN_INLINE Index real_queries(const AdditiveScores& a, Index b) { return a.counts ? a.counts[b] : a.queries; }

ELMAN_INLINE void clear(float* from, Index count) {
    std::memset(from, 0, static_cast<std::size_t>(count) * sizeof(float));
}

// With t = tanh(q + k): d_v += g t, and d_q and d_k get g v (1 - t²) more. Without kAll, only d_q is made.
template <bool kAll>
void score_backward(const float* q, const float* k, const float* v, Index size, float g, float* d_q, float* d_k,
                    float* d_v) {
    registers(size, [&](Index i, int n) __attribute__((always_inline)) {
        const Vector<float> t = hyperbolic_tangent(load_some(q + i, n) + load_some(k + i, n));
        const Vector<float> d = g * load_some(v + i, n) * (1 - t * t);
        store_some(d_q + i, load_some(d_q + i, n) + d, n);
        if constexpr (kAll) {
            store_some(d_v + i, load_some(d_v + i, n) + g * t, n);
            store_some(d_k + i, load_some(d_k + i, n) + d, n);
        }
    });
}

}  // namespace

// The scores of sources `begin` ... `end` - 1, or where backward their gradients.
void additive_scores(const AdditiveScores& a, bool backward, Index begin, Index end, int thread) {
    const bool all = backward && a.d_keys;
    float* d_v = all ? a.d_v + thread * a.size : nullptr;
    if (all) clear(d_v, a.size);
    for (Index b = begin; b < end; ++b) {
        const float *query = a.query + b * a.queries * a.size, *keys = a.keys + b * a.places * a.size;
        const std::uint8_t* padding = a.padding + b * a.places;
        float *scores = a.scores + b * a.queries * a.places, *d_query = nullptr, *d_keys = nullptr;
        if (backward) {
            clear(d_query = a.d_query + b * a.queries * a.size, a.queries * a.size);
            if (all) clear(d_keys = a.d_keys + b * a.places * a.size, a.places * a.size);
        }
        const Index real = real_queries(a, b);
        for (Index t = 0; t < (backward ? real : a.queries); ++t)
            for (Index s = 0; s < a.places; ++s) {
                float& e = scores[t * a.places + s];
                const float *q = query + t * a.size, *k = keys + s * a.size;
                if (!backward) e = padding[s] ? -__builtin_inff() : t < real ? additive_score(q, k, a.v, a.size) : 0.0f;
                else if (padding[s] || e == 0) continue;
                else if (all)
                    score_backward<true>(q, k, a.v, a.size, e, d_query + t * a.size, d_keys + s * a.size, d_v);
                else score_backward<false>(q, k, a.v, a.size, e, d_query + t * a.size, nullptr, nullptr);
            }
    }
}

// The contexts of rows `begin` ... `end` - 1, or where backward the gradients of their weights.
void contexts(const Contexts& c, bool backward, Index begin, Index end) {
    for (Index r = begin; r < end; ++r) {
        float *weights = c.weights + r * c.places, *context = c.contexts + r * c.size;
        if (!backward) clear(context, c.size);
        for (Index s = 0; s < c.places; ++s) {
            const bool real = !c.padding[r * c.places + s];
            const float* state = c.states + (r * c.places + s) * c.size;
            if (backward) weights[s] = real ? dot(context, state, c.size) : 0.0f;
            else if (real) add_multiple(weights[s], state, c.size, context);
        }
    }
}

}  // namespace elman::ELMAN_ISA
