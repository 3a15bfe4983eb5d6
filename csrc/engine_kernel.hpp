// A trained network as the streaming kernels read it, and what they write: plain numbers and addresses.
//
// B rows (texts) are read side by side, one id of each at a time. Every vector is padded with zeros to whole registers,
// and the weights that meet the padding are zero, so no kernel has to ask where a vector ends.
#pragma once

#include <cstdint>

#include "recurrence_kernel.hpp"

namespace elman {

class Barrier;

// A matrix of blocks * units rows and `size` columns, in panels (see panels.hpp). With several blocks (the gates of a
// cell) a panel has one register of units from each; with one block it has four registers of units.
struct Matrix {
    int blocks = 1, units = 0, size = 0;
    const void* data = nullptr;           // float, or int8 where there are scales; null: there is no such matrix
    const float* scale = nullptr;         // of each row, in the order of the panels
    const std::int32_t* total = nullptr;  // the sum of each int8 row, likewise
    explicit operator bool() const { return data != nullptr; }
};

struct StreamLayer {
    Matrix input;              // of what the layer sees; none where `table` holds all of it
    Matrix hidden;             // of its own h
    Matrix projection;         // LSTM with a projection
    const float* bias;         // a row of `columns`
    const float* table;        // V x columns: the bias, and the part of the token; null where it is multiplied out
    const float* labels;       // labels x columns: the part of the label; null without
    const float* hidden_bias;  // GRU: b_hn, which the reset gate multiplies; else null
    Index columns;             // of the gates' sums, in the order of the panels
    bool adds_input;           // residual: what it sees is added to its h
};

struct StreamNetwork {
    Cell cell;
    int layers, vocabulary;
    int hidden, output;  // padded sizes of c and h
    bool residual, dense;
    const StreamLayer* layer;
    // What the first layer sees where it is needed as a vector: token, label and what a decoder is fed, side by side
    int token_size, label_size, fed_size;  // not padded
    int seen;                              // padded sum of the three; 0 where no layer needs it
    const void* tokens;                    // V x token_size; float, or int8 with a scale for each row
    const float* token_scale;
    const float* label_vectors;  // labels x label_size
    Matrix bridge, softmax;
    const float* bridge_bias;
    bool bridge_tanh;
    const float* softmax_bias;  // -inf in the padding
};

// The memory of one thread.
struct StreamScratch {
    float* sums[2];          // kStreamChunk x 4 registers: of the input's product and of the hidden state's
    std::uint8_t* bytes[2];  // B x the longest vector
    float* scale[2];         // B
};

constexpr int kStreamChunk = 48;  // rows at a time, so that their sums stay in the first-level cache

struct StreamWork {
    int rows, capacity;  // rows in use, and rows that there is memory for: the distance between layers
    int turn;            // which of the two copies of h is the present one
    const int* ids;      // B: what is read next
    const int* labels;   // B; null without
    const float* fed;    // B x fed_size, rows `fed_stride` apart
    Index fed_stride;
    float* h[2];   // L x B x output
    float* c;      // L x B x hidden; LSTM
    float* inner;  // B x hidden; what is projected
    float* seen;   // B x seen_stride: what the first layer sees; dense: and then the outputs of all layers
    Index seen_stride;
    float* outputs;  // L x B x output; residual
    float* bridged;  // B x the bridge's units, padded
    StreamScratch* scratch;
    Barrier* barrier;
};

struct LogSum {
    double top, sum;  // the largest logit, and the sum of exp(logit - top)
};

}  // namespace elman
