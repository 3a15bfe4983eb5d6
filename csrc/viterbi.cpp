#include "viterbi.hpp"

#include <algorithm>
#include <vector>

namespace elman {

// On the way forward only the maximum is kept; which tag it came from is asked on the way back, of one column.
float viterbi(const Chain& chain, const float* emissions, long steps, std::int64_t* path) {
    const long K = chain.tags;
    std::vector<float> best(static_cast<std::size_t>(steps * K));
    for (long k = 0; k < K; ++k) best[static_cast<std::size_t>(k)] = emissions[k] + chain.start[k];
    for (long t = 1; t < steps; ++t) {
        const float* before = best.data() + (t - 1) * K;
        float* here = best.data() + t * K;
        for (long k = 0; k < K; ++k) here[k] = before[0] + chain.transitions[k];
        for (long j = 1; j < K; ++j) {
            const float* row = chain.transitions + j * K;
            for (long k = 0; k < K; ++k) here[k] = std::max(here[k], before[j] + row[k]);
        }
        for (long k = 0; k < K; ++k) here[k] += emissions[t * K + k];
    }
    const float* last = best.data() + (steps - 1) * K;
    long tag = 0;
    for (long k = 1; k < K; ++k)
        if (last[k] + chain.end[k] > last[tag] + chain.end[tag]) tag = k;
    const float score = last[tag] + chain.end[tag];
    path[steps - 1] = tag;
    for (long t = steps - 1; t > 0; --t) {
        const float* before = best.data() + (t - 1) * K;
        long from = 0;
        for (long j = 1; j < K; ++j)
            if (before[j] + chain.transitions[j * K + tag] > before[from] + chain.transitions[from * K + tag]) from = j;
        tag = from;
        path[t - 1] = tag;
    }
    return score;
}

}  // namespace elman
