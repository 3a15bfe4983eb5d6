// The attention of a trained decoder: scores, weights and contexts of some rows, each with a source of its own.
#pragma once

#include "engine_kernel.hpp"

namespace elman {

// The outputs of an encoder for B sources, as PyTorch has them.
struct Memory {
    int sources, places;       // B, S
    int key_size, state_size;  // K, M
    const float* keys;         // B x S x K
    const float* states;       // B x S x M
    const int* lengths;        // B: how many of the places there are
};

enum class Score {
    none,      // the decoder does not attend
    dot,       // scale * q · k
    cosine,    // scale * q · k / |q|
    additive,  // v · tanh(q + k)
    location   // q itself has a score for each place
};

// A row's vectors lie side by side, each padded: the token's where it is needed, the state, the context.
struct AttendNetwork {
    Score score;
    float scale;
    Matrix query;  // of token and state, or of the state alone; none where the state is the query
    const float* query_bias;
    const float* v;
    int query_size;               // not padded
    bool sees_token;              // the query is a product of the token too
    Index token, state, context;  // where the parts of a row begin; token: -1 where it is not there
    Index stride;
};

struct AttendWork {
    int rows;
    const int* owners;  // R: the source of each row
    const Memory* memory;
    float* joined;   // R x stride
    float* queries;  // R x padded query
    float* weights;  // R x S, zero behind the end of a source
    StreamScratch* scratch;
    Barrier* barrier;
};

}  // namespace elman
