// How much of a cache's probability a token has; see cache_kernel.cpp.
#pragma once

#include "index.hpp"

namespace elman {

// N rows of text and the M + N places that their cache holds: those before the rows, then the rows' own.
struct CacheShares {
    Index rows, places, size;  // a row sees the `size` places before its own, fewer at the beginning
    float theta;
    const float* scores;  // rows x places: the products of hidden states
    const int* ids;       // places: the token that stood behind each
    const int* targets;   // rows
    double* shares;       // rows
};

}  // namespace elman
