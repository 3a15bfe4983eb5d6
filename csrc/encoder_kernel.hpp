// A recurrent network that reads whole texts, as its kernels see it, and what they write: plain numbers and addresses.
//
// Some texts (B, at most kStreamChunk) are read side by side. Rows of all steps stand one after the other, N in all;
// step t has the rows offsets[t] ... offsets[t+1]-1, the longest texts first. Vectors are padded with zeros to whole
// registers, those of two directions each by itself, and the weights that meet the padding are zero.
#pragma once

#include "engine_kernel.hpp"

namespace elman {

class Interrupt;

// steps: none, every step has an answer; last_max_mean: these three side by side.
enum class Pooling { steps, last, mean, max, attention, last_max_mean };

struct EncoderDirection {
    Matrix input;              // of what the layer sees; none where `table` holds its product with every id
    Matrix hidden;             // of its own h
    const float* bias;         // a row of `columns`
    const float* table;        // ids x columns: the bias, and the part of the id; null where vectors are read
    const float* hidden_bias;  // GRU: b_hn, which the reset gate multiplies; else null
};

struct EncoderLayer {
    EncoderDirection direction[2];
    bool adds_input;  // residual: what it sees is added to its h
};

struct EncoderNetwork {
    Cell cell;
    int layers, directions;  // D
    int seen;                // padded size of the vectors that the first layer reads; 0 where it reads ids
    int hidden;              // padded size of h and of c
    Index columns;           // of a direction's gates, in the order of the panels
    bool dense;              // a layer sees the vectors and the outputs of all layers below
    const EncoderLayer* layer;
    Pooling pooling;
    Matrix query;  // attention: W, b and v of v . tanh(W h + b)
    const float* query_bias;
    const float* query_vector;
    Matrix head;  // what is made of each step, or of the text's vector; none without
    const float* head_bias;

    Index pooled_width() const { return Index{directions} * hidden * (pooling == Pooling::last_max_mean ? 3 : 1); }
};

// What ends a call early; asked by the threads that read some texts, each under its number among all of the call's.
struct EncoderStop {
    Interrupt* interrupt;
    int first;  // the number of the first of them
};

struct EncoderWork {
    int texts, steps;
    const int* lengths;     // B, the longest first
    const int* offsets;     // T+1
    const int* ids;         // N; null where vectors are read
    const float* table[2];  // of each direction: what would be in `gates` of the first layer, a row for every id
    Index table_stride;
    float* seen;  // N x seen_stride: the vectors; dense: and then the outputs of all layers
    Index seen_stride;
    float* outputs[2];  // N x D*hidden: of this layer and of the one below; not dense
    float* gates[2];    // N rows of each direction's columns: the bias, and the part of what the layer sees
    Index gates_stride;
    float* c[2];             // B x hidden; LSTM
    float* final[2];         // L x D x B x hidden: h, and c of an LSTM, after the last step; null where nobody asks
    float* queries;          // N x the query's units, padded; attention
    float* pooled;           // B x D*hidden; last_max_mean: B x 3*D*hidden
    float* result;           // what the head makes, its units padded: N rows, or B where there is a pooling
    StreamScratch* scratch;  // of each thread
    Barrier* barrier;        // of all threads, then one for each team
    EncoderStop stop;
};

}  // namespace elman
