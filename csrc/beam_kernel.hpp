// The best continuations of the hypotheses of a beam search.
#pragma once

#include <cstdint>

#include "index.hpp"

namespace elman {

// B sentences, each with some of the N hypotheses, next to one another; the K best of a sentence's continuations are
// found.
struct Continuations {
    Index size, best;                // V, K
    const float* log_probs;          // N x V: of the next id
    const double* running;           // N: of the hypothesis so far
    const std::int64_t* first;       // B + 1: the first hypothesis of each sentence, and N
    double* top;                     // B x K: best first; -inf where there are fewer
    std::int64_t *parents, *tokens;  // B x K
};

}  // namespace elman
