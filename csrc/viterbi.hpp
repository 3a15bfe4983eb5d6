// The best tag sequence of a linear-chain conditional random field.
#pragma once

#include <cstdint>

#include "index.hpp"

namespace elman {

// Scores with K tags; forbidden steps are very low.
struct Chain {
    int tags;
    const float *start, *transitions, *end;  // K; K x K, from the row to the column; K
};

// Emissions (steps x K) of one text, a step or more, to its best tags (steps); returns their score. Of equal ones the
// first wins.
float viterbi(const Chain& chain, const float* emissions, Index steps, std::int64_t* path);

}  // namespace elman
