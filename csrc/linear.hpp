#pragma once

namespace elman {

struct Linear {
    long rows, units, size;  // R, N, K
    const float* x;          // R x K
    const float* weight;     // N x K
    const float* bias;       // N, or null
    float* y;                // R x N
};

}  // namespace elman
