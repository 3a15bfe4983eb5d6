// What the recurrent kernels are called with: plain numbers and addresses, the same for every instruction set.
//
// T steps, B sequences, I inputs, H hidden, P the size of the output (H unless it is projected). Rows of all steps
// stand one after the other, N in all; step t has the rows offsets[t] ... offsets[t+1]-1, the longest sequences first.
#pragma once

#include <limits>

#include "index.hpp"

namespace elman {

// The simple network has one of four nonlinearities, and is called by it.
enum class Cell { tanh_rnn, relu_rnn, logistic_rnn, identity_rnn, lstm, gru };

// One direction of a layer. Everything is row-major; weights are PyTorch's.
template <class T>
struct Direction {
    bool reverse;
    const T* input;      // N x I; null where the projected input comes in
    const T* weight_ih;  // G*H x I; with `input`
    const T* weight_hh;  // G*H x P
    const T* weight_hr;  // P x H; null without a projection
    const T* bias_ih;    // G*H; null without
    const T* bias_hh;
    T* gates;      // N x G*H. LSTM: i f g o. GRU: r z n. Without `input`, in: the projected input
    T* output;     // N x P, rows output_stride apart. Simple network without `input`, in: the projected input
    const T* h_0;  // B x P: the state before the first step; null: zeros
    const T* c_0;  // B x H, LSTM only; likewise
    T* h;          // B x P: the state after the last step
    T* c;          // B x H, LSTM only; likewise
    T* before;     // N x P: the h that each step began with; null where it is not needed
    T* last;       // B x P: as h, for the backward pass of the simple network; null where it is not needed
    T* cells;      // N x H: c after each step, LSTM only; null where it is not needed
    T* inner;      // N x H. LSTM: what is projected. GRU: W_hn h + b_hn. Null where it is not needed
};

template <class T>
struct Gradient {
    const T* d_output;  // N x P, rows output_stride apart
    const T* d_h_n;     // B x P: of the last h; null: zeros
    const T* d_c_n;     // B x H; likewise
    T* d_gates;         // N x K*H: of the gates' sums, before the nonlinearity. GRU: r z n and W_hn h
    T* d_input;         // N x I; null where it is not needed
    T* d_hidden;        // N x P: of the output, what comes through the recurrence included; projection only
    T* d_h;             // B x P: of the first h; null where it is not needed
    T* d_c;             // B x H; likewise
};

template <class T>
struct Layer {
    Cell cell;
    int steps, batch, input_size, hidden, output_size, directions, threads;
    Index output_stride;
    const Index* offsets;  // T+1
    Direction<T> direction[2];
    Gradient<T> gradient[2];
};

// How many rows of weight_hh belong to a unit (G above), and how many blocks of H columns their gradients have (K). As
// many times a size that is allowed is still an int.
constexpr int weight_blocks(Cell cell) { return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1; }
constexpr int gradient_blocks(Cell cell) { return cell == Cell::lstm || cell == Cell::gru ? 4 : 1; }

static_assert(gradient_blocks(Cell::lstm) * kMostSize <= std::numeric_limits<int>::max());

}  // namespace elman
