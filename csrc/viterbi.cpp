#include "viterbi.hpp"

#include <vector>

namespace elman {
namespace {

// As in PyTorch and NumPy a NaN is above all numbers, so that it is not lost on the way.
inline bool above(float x, float y) { return (x > y) | ((x != x) & (y == y)); }

}  // namespace

// The forward pass keeps the maximum only; which tag it came from is computed on the path back, of one column.
float viterbi(const Chain& chain, const float* emissions, Index steps, std::int64_t* path) {
    const Index K = chain.tags;
    std::vector<float> best(static_cast<std::size_t>(steps * K));
    for (Index k = 0; k < K; ++k) best[static_cast<std::size_t>(k)] = emissions[k] + chain.start[k];
    for (Index t = 1; t < steps; ++t) {
        const float* before = best.data() + (t - 1) * K;
        float* here = best.data() + t * K;
        for (Index k = 0; k < K; ++k) here[k] = before[0] + chain.transitions[k];
        for (Index j = 1; j < K; ++j) {
            const float* row = chain.transitions + j * K;
            for (Index k = 0; k < K; ++k) {
                const float score = before[j] + row[k];
                here[k] = above(score, here[k]) ? score : here[k];
            }
        }
        for (Index k = 0; k < K; ++k) here[k] += emissions[t * K + k];
    }
    const float* last = best.data() + (steps - 1) * K;
    Index tag = 0;
    for (Index k = 1; k < K; ++k)
        if (above(last[k] + chain.end[k], last[tag] + chain.end[tag])) tag = k;
    const float score = last[tag] + chain.end[tag];
    path[steps - 1] = tag;
    for (Index t = steps - 1; t > 0; --t) {
        const float* before = best.data() + (t - 1) * K;
        Index from = 0;
        for (Index j = 1; j < K; ++j)
            if (above(before[j] + chain.transitions[j * K + tag], before[from] + chain.transitions[from * K + tag]))
                from = j;
        tag = from;
        path[t - 1] = tag;
    }
    return score;
}

}  // namespace elman
