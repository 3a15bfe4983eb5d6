// The parts of attention that a network learns with, for padded sources.
//
// Additive attention: e_ts = v · tanh(q_t + k_s) for the queries and the places of each of B sources.
//
// The sum under the tangent is never stored: at B x T x S x K numbers it would be the largest tensor of a translator.
// The backward pass computes the tangents again. What is padding is not computed: its scores are -inf, its gradients 0.
#pragma once

#include <cstdint>

#include "index.hpp"

namespace elman {

struct AdditiveScores {
    Index sources, queries, places, size;  // B, T, S, K
    const float* query;                    // B x T x K
    const float* keys;                     // B x S x K
    const float* v;                        // K
    const std::uint8_t* padding;           // B x S: not 0 where there is no place
    const std::int64_t* counts;            // B: how many of the queries there are; null: all
    float* scores;                         // B x T x S; backward: their gradient, which is read
    float* d_query;                        // B x T x K
    float* d_keys;                         // B x S x K; null: that of the query alone is made
    float* d_v;                            // a row of K for each thread; likewise
};

// The contexts of R rows, each of its source: Σ_s w_s m_s over the places that are not padding. Backward: the gradients
// of the weights, 0 for padding.
struct Contexts {
    Index places, size;           // S, M
    const float* states;          // B x S x M; row r attends to source r
    const std::uint8_t* padding;  // B x S
    float* weights;               // R x S; backward: their gradients, which are written
    float* contexts;              // R x M; backward: their gradients, which are read
};

}  // namespace elman
