// The recurrences of the simple network, the LSTM and the GRU, forwards and backwards in time.
//
// Sequences do not see each other, so each core takes some of them through all steps and never waits for another core.
// Each number is summed up in the same order whatever the tile or the core, so results do not depend on either.
#include "recurrence.hpp"

#include <cstdlib>

#include "cells.hpp"
#include "dispatch.hpp"
#include "panels.hpp"
#include "threads.hpp"

namespace elman::ELMAN_ISA {
namespace {

template <class T>
class Memory {  // aligned, freed at the end of its scope
  public:
    explicit Memory(Index count) : data_(static_cast<T*>(allocate(count * static_cast<Index>(sizeof(T))))) {}
    ~Memory() { release(data_); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    operator T*() const { return data_; }

  private:
    T* data_;
};

// The sequences of one direction that one core runs.
struct Share {
    int direction, begin, end;
};

// What a core computes with besides the layer.
template <class T>
struct Member {
    int index;
    T* sums;   // kChunk x 4 registers
    T* inner;  // kChunk x H; with a projection
    Interrupt& interrupt;
};

// The memory of all cores, asked for before they begin: where there is none left, only the caller can say so.
template <class T>
class Room {
  public:
    explicit Room(const Layer<T>& layer)
        : inner_(layer.direction[0].weight_hr ? static_cast<Index>(kChunk) * layer.hidden : 0),
          memory_(layer.threads * (kSums + inner_)) {}
    Member<T> member(int index, Interrupt& interrupt) const {
        T* begin = memory_ + index * (kSums + inner_);
        return {index, begin, begin + kSums, interrupt};
    }

  private:
    static constexpr Index kSums = static_cast<Index>(kChunk) * kMostVectors * kLanes<T>;
    Index inner_;
    Memory<T> memory_;
};

// The i-th of `count` panels. Every other time they are gone through from the end: those used last are still in the cache.
struct Turn {
    bool back = false;
    int operator()(int i, int count) const { return back ? count - 1 - i : i; }
};

int sequence_length(const Index* offsets, int steps, int row) {
    int low = 0, high = steps;  // the first step that has no such row
    while (low < high) {
        const int middle = (low + high) / 2;
        if (offsets[middle + 1] - offsets[middle] > row) low = middle + 1;
        else high = middle;
    }
    return low;
}

// Calls run(share) for the shares of core `index` of `count`: contiguous sequences with an equal number of steps.
template <class T, class Run>
void for_shares(const Layer<T>& layer, int index, int count, Run run) {
    const Index total = 2 * layer.offsets[layer.steps] * layer.directions;
    Index done = 0;  // twice the steps before this sequence
    for (int direction = 0; direction < layer.directions; ++direction) {
        Share share{direction, layer.batch, 0};
        for (int row = 0; row < layer.batch; ++row) {
            const int length = sequence_length(layer.offsets, layer.steps, row);
            if ((done + length) * count / total == index) {  // its middle falls into this core's part
                share.begin = row < share.begin ? row : share.begin;
                share.end = row + 1;
            }
            done += 2 * static_cast<Index>(length);
        }
        if (share.begin < share.end) run(share);
    }
}

// Calls run(s, t, first row, rows) for step t, the s-th in the order given, a chunk of its rows at a time.
template <class T, class Run>
void for_chunks(const Layer<T>& layer, const Share& share, const Member<T>& member, bool last_first, Run run) {
    const Index products = static_cast<Index>(weight_blocks(layer.cell)) * layer.hidden * (layer.input_size + layer.output_size);
    for (int s = 0; s < layer.steps; ++s) {
        const int t = last_first ? layer.steps - 1 - s : s;
        const int rows = static_cast<int>(layer.offsets[t + 1] - layer.offsets[t]);
        const int end = rows < share.end ? rows : share.end;
        const int count = end - share.begin, chunks = (count + kChunk - 1) / kChunk;
        for (int i = 0; i < chunks; ++i) {
            const Range chunk = part(count, i, chunks);
            if (member.interrupt.stops(member.index, products * (chunk.end - chunk.begin))) return;
            run(s, t, share.begin + chunk.begin, chunk.end - chunk.begin);
        }
    }
}

// --- The weights ----------------------------------------------------------------------------------------------------

// Forwards a gated cell's panel holds all gates of a register of units, side by side: their sums are there together.
template <class T>
struct GatePanels {
    static constexpr int W = kLanes<T>;
    int gates, hidden, K;
    int count() const { return (hidden + W - 1) / W; }
    int units(int p) const { return hidden - p * W < W ? hidden - p * W : W; }
    Index offset(int p) const { return static_cast<Index>(p) * gates * W * K; }
    Index size() const { return offset(count()); }
};

template <class T>
void pack_gates(const GatePanels<T>& shape, int p, const T* weight, T* to) {
    constexpr int W = kLanes<T>;
    to += shape.offset(p);
    const int units = shape.units(p);
    for (int gate = 0; gate < shape.gates; ++gate) {
        const T* from = weight + (static_cast<Index>(gate) * shape.hidden + p * W) * shape.K;
        for (int k = 0; k < shape.K; ++k) {
            T* column = to + (static_cast<Index>(k) * shape.gates + gate) * W;
            for (int lane = 0; lane < W; ++lane) column[lane] = lane < units ? from[lane * static_cast<Index>(shape.K) + k] : 0;
        }
    }
}

// --- Forwards -------------------------------------------------------------------------------------------------------

template <class T>
struct ForwardWeights {
    GatePanels<T> gated;
    Panels<T> plain, projection, input;  // simple network: W_hh^T; with a projection: W_hr^T; with the input: W_ih^T
    Index hh_size, size;

    explicit ForwardWeights(const Layer<T>& layer)
        : gated{weight_blocks(layer.cell), layer.hidden, layer.output_size},
          plain{layer.output_size, layer.hidden},
          projection{layer.hidden, layer.direction[0].weight_hr ? layer.output_size : 0},
          input{layer.input_size, layer.direction[0].input ? weight_blocks(layer.cell) * layer.hidden : 0},
          hh_size(weight_blocks(layer.cell) == 1 ? plain.size() : gated.size()),
          size(hh_size + projection.size() + input.size()) {}

    void pack(const Layer<T>& layer, const Direction<T>& from, T* to, int index, int cores) const {
        const bool simple = weight_blocks(layer.cell) == 1;
        const int panels = simple ? plain.count() : gated.count();
        for (int p = index; p < panels; p += cores) {
            if (simple) pack_panel(plain, p, from.weight_hh, 1, layer.output_size, to);
            else pack_gates(gated, p, from.weight_hh, to);
        }
        for (int p = index; p < projection.count(); p += cores)
            pack_panel(projection, p, from.weight_hr, 1, layer.hidden, to + hh_size);
        for (int p = index; p < input.count(); p += cores)
            pack_panel(input, p, from.weight_ih, 1, layer.input_size, to + hh_size + projection.size());
    }
};

template <class T>
ELMAN_INLINE Vector<T> bias_of(const T* bias, Index place, int count) {
    return bias ? load_some(bias + place, count) : Vector<T>{};
}

template <class T>
ELMAN_INLINE Vector<T> both_biases(const Direction<T>& d, Index place, int count) {
    return bias_of(d.bias_ih, place, count) + bias_of(d.bias_hh, place, count);
}

// A state that was given, or zeros.
template <class T>
void copy_state(T* to, const T* from, Index count) {
    if (from) std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
    else std::memset(to, 0, static_cast<std::size_t>(count) * sizeof(T));
}

// The sums of one panel to their columns of some rows.
template <class T>
void write_panel(const Panels<T>& panels, int p, int rows, const T* sums, T* to, Index stride) {
    const Index width = panels.vectors(p) * kLanes<T>;
    for (int r = 0; r < rows; ++r)
        std::memcpy(to + r * stride + panels.first_column(p), sums + r * width,
                    static_cast<std::size_t>(panels.columns(p)) * sizeof(T));
}

// `to` (rows x N) = `a` (rows x K) times a packed matrix.
template <class T>
void multiply_matrix(const Panels<T>& panels, const T* packed, const T* a, Index a_stride, int rows, T* sums, T* to, Index stride) {
    for (int p = 0; p < panels.count(); ++p) {
        multiply_panel(panels.vectors(p), a, a_stride, rows, packed + panels.offset(p), panels.K, sums);
        write_panel(panels, p, rows, sums, to, stride);
    }
}

// Fetches the gates of a row's units while the products before it are computed.
template <class T>
struct FetchGates {
    const T* gates;  // of the first row
    Index stride, block;
    int blocks;
    void operator()(int r) const {
        for (int g = 0; g < blocks; ++g) __builtin_prefetch(gates + r * stride + g * block);
    }
};

// One step of some rows. `h` and `next` are rows of the state, `n` the first row among all steps'.
template <class T>
struct ForwardStep {
    const Layer<T>& layer;
    const Direction<T>& d;
    const ForwardWeights<T>& shape;
    const T* packed;
    T* sums;   // kChunk x 4 registers
    T* inner;  // kChunk x H; where a projection needs it
    Turn turn;

    void operator()(const T* h, T* next, int first, Index n, int rows) {
        turn.back = !turn.back;
        if (d.input) project_input(n, rows);
        switch (layer.cell) {
            case Cell::lstm: return lstm(h, next, first, n, rows);
            case Cell::gru: return gru(h, next, n, rows);
            case Cell::tanh_rnn: return simple<true>(h, next, n, rows);
            case Cell::relu_rnn: return simple<false>(h, next, n, rows);
        }
    }

    void project_input(Index n, int rows) const {
        const Panels<T>& panels = shape.input;
        const Index stride = d.gates ? panels.N : layer.output_stride;
        multiply_matrix(panels, packed + shape.hh_size + shape.projection.size(), d.input + n * panels.K, panels.K, rows,
                        sums, (d.gates ? d.gates : d.output) + n * stride, stride);
    }

    void lstm(const T* h, T* next, int first, Index n, int rows) const {
        const Index H = layer.hidden;
        for (int i = 0; i < shape.gated.count(); ++i) {
            const int p = turn(i, shape.gated.count());
            const Index u = static_cast<Index>(p) * kLanes<T>;
            const FetchGates<T> fetch{d.gates + n * 4 * H + u, 4 * H, H, 4};
            multiply_panel<T, 4>(h, layer.output_size, rows, packed + shape.gated.offset(p), layer.output_size, sums,
                                 false, fetch);
            const int units = shape.gated.units(p);
            if (units == kLanes<T>) lstm_units<true>(next, first, n, rows, u, units);
            else lstm_units<false>(next, first, n, rows, u, units);
        }
        if (d.weight_hr) project(next, n, rows);
    }

    // The gates of one register of units. First those of all rows, then all cells: chains of operations that wait for
    // each other stay short, so that the processor finds enough others to do meanwhile.
    template <bool kWhole>
    void lstm_units(T* next, int first, Index n, int rows, Index u, int count) const {
        constexpr int W = kLanes<T>;
        const int units = kWhole ? W : count;
        const Index H = layer.hidden;
        Vector<T> bias[4];
        for (int g = 0; g < 4; ++g) bias[g] = both_biases(d, g * H + u, units);
        for (int r = 0; r < rows; ++r) {
            T* gates = d.gates + (n + r) * 4 * H + u;
#pragma GCC unroll 4
            for (int g = 0; g < 4; ++g) {
                T* sum = sums + (r * 4 + g) * W;
                const Vector<T> x = load_some(gates + g * H, units) + bias[g] + load(sum);
                const auto gate = lstm_gate<Vector<T>>(g, x);
                store(sum, gate);
                store_some(gates + g * H, gate, units);
            }
        }
        for (int r = 0; r < rows; ++r) {
            const T* gate = sums + r * 4 * W;
            T* cell = d.c + (first + r) * H + u;
            const auto [out, c] = lstm_cell(load(gate), load(gate + W), load(gate + 2 * W), load(gate + 3 * W),
                                       load_some(cell, units));
            store_some(cell, c, units);
            if (d.cells) store_some(d.cells + (n + r) * H + u, c, units);
            if (d.weight_hr) {
                store_some(inner + r * H + u, out, units);
                if (d.inner) store_some(d.inner + (n + r) * H + u, out, units);
            } else {
                store_some(d.output + (n + r) * layer.output_stride + u, out, units);
                store_some(next + r * H + u, out, units);
            }
        }
    }

    void project(T* next, Index n, int rows) const {
        constexpr int W = kLanes<T>;
        const Panels<T>& panels = shape.projection;
        for (int p = 0; p < panels.count(); ++p) {
            const int vectors = panels.vectors(p), columns = panels.columns(p);
            multiply_panel(vectors, inner, layer.hidden, rows, packed + shape.hh_size + panels.offset(p), layer.hidden, sums);
            for (int r = 0; r < rows; ++r) {
                const T* sum = sums + r * vectors * W;
                const std::size_t bytes = static_cast<std::size_t>(columns) * sizeof(T);
                std::memcpy(d.output + (n + r) * layer.output_stride + panels.first_column(p), sum, bytes);
                std::memcpy(next + r * layer.output_size + panels.first_column(p), sum, bytes);
            }
        }
    }

    void gru(const T* h, T* next, Index n, int rows) const {
        const Index H = layer.hidden;
        for (int i = 0; i < shape.gated.count(); ++i) {
            const int p = turn(i, shape.gated.count());
            const Index u = static_cast<Index>(p) * kLanes<T>;
            const FetchGates<T> fetch{d.gates + n * 3 * H + u, 3 * H, H, 3};
            multiply_panel<T, 3>(h, H, rows, packed + shape.gated.offset(p), layer.hidden, sums, false, fetch);
            const int units = shape.gated.units(p);
            if (units == kLanes<T>) gru_units<true>(h, next, n, rows, u, units);
            else gru_units<false>(h, next, n, rows, u, units);
        }
    }

    template <bool kWhole>
    void gru_units(const T* h, T* next, Index n, int rows, Index u, int count) const {
        constexpr int W = kLanes<T>;
        const int units = kWhole ? W : count;
        const Index H = layer.hidden;
        const Vector<T> bias[2] = {both_biases(d, u, units), both_biases(d, H + u, units)};
        const Vector<T> bias_in = bias_of(d.bias_ih, 2 * H + u, units), bias_hn = bias_of(d.bias_hh, 2 * H + u, units);
        for (int r = 0; r < rows; ++r) {
            T* gates = d.gates + (n + r) * 3 * H + u;
#pragma GCC unroll 2
            for (int g = 0; g < 2; ++g) {
                T* sum = sums + (r * 3 + g) * W;
                const Vector<T> gate = logistic(load_some(gates + g * H, units) + bias[g] + load(sum));
                store(sum, gate);
                store_some(gates + g * H, gate, units);
            }
        }
        for (int r = 0; r < rows; ++r) {
            T* gates = d.gates + (n + r) * 3 * H + u;
            const T* gate = sums + r * 3 * W;
            const Vector<T> x_n = load_some(gates + 2 * H, units) + bias_in, h_n = load(gate + 2 * W) + bias_hn;
            const auto [out, candidate] = gru_cell(load(gate), load(gate + W), x_n, h_n, load_some(h + r * H + u, units));
            store_some(gates + 2 * H, candidate, units);
            if (d.inner) store_some(d.inner + (n + r) * H + u, h_n, units);
            store_some(d.output + (n + r) * layer.output_stride + u, out, units);
            store_some(next + r * H + u, out, units);
        }
    }

    template <bool kTanh>
    void simple(const T* h, T* next, Index n, int rows) const {
        constexpr int W = kLanes<T>;
        const Index H = layer.hidden;
        for (int i = 0; i < shape.plain.count(); ++i) {
            const int p = turn(i, shape.plain.count());
            const int vectors = shape.plain.vectors(p);
            const Index begin = shape.plain.first_column(p);
            const FetchGates<T> fetch{d.output + n * layer.output_stride + begin, layer.output_stride, W, vectors};
            multiply_panel(vectors, h, H, rows, packed + shape.plain.offset(p), layer.hidden, sums, false, fetch);
            for (int v = 0; v < vectors; ++v) {
                const Index u = begin + v * W;
                if (H - u >= W) simple_units<kTanh, true>(next, n, rows, u, v, vectors);
                else simple_units<kTanh, false>(next, n, rows, u, v, vectors);
            }
        }
    }

    template <bool kTanh, bool kWhole>
    void simple_units(T* next, Index n, int rows, Index u, int v, int vectors) const {
        constexpr int W = kLanes<T>;
        const Index H = layer.hidden;
        const int units = kWhole ? W : static_cast<int>(H - u);
        const Vector<T> bias = both_biases(d, u, units);
        for (int r = 0; r < rows; ++r) {
            T* output = d.output + (n + r) * layer.output_stride + u;
            const Vector<T> sum = load_some(output, units) + bias + load(sums + (r * vectors + v) * W);
            const auto out = simple_cell<kTanh>(sum);
            store_some(output, out, units);
            store_some(next + r * H + u, out, units);
        }
    }
};

template <class T>
void forward_share(const Layer<T>& layer, const ForwardWeights<T>& shape, const T* packed, const Share& share,
                   const Member<T>& member, T* states) {
    const Direction<T>& d = layer.direction[share.direction];
    const Index P = layer.output_size;
    ForwardStep<T> step{layer, d, shape, packed, member.sums, member.inner, {}};
    // Steps alternate between two copies of the state; a sequence that has not begun keeps its first in both.
    T* state[2] = {states, states + layer.batch * P};
    const Index H = layer.hidden, count = share.end - share.begin;
    for (T* copy : state) copy_state(copy + share.begin * P, d.h_0 ? d.h_0 + share.begin * P : nullptr, count * P);
    if (d.c) copy_state(d.c + share.begin * H, d.c_0 ? d.c_0 + share.begin * H : nullptr, count * H);
    for_chunks(layer, share, member, d.reverse, [&](int s, int t, int first, int rows) {
        const Index n = layer.offsets[t] + first;
        const T* h = state[s % 2] + first * P;
        if (d.before) std::memcpy(d.before + n * P, h, static_cast<std::size_t>(rows) * P * sizeof(T));
        step(h, state[(s + 1) % 2] + first * P, first, n, rows);
    });
    for (int row = share.begin; row < share.end; ++row) {
        const int last = d.reverse ? 0 : sequence_length(layer.offsets, layer.steps, row) - 1;
        const T* output = d.output + (layer.offsets[last] + row) * layer.output_stride;
        std::memcpy(d.h + row * P, output, static_cast<std::size_t>(P) * sizeof(T));
        if (d.last) std::memcpy(d.last + row * P, output, static_cast<std::size_t>(P) * sizeof(T));
    }
}

// --- Backwards ------------------------------------------------------------------------------------------------------

template <class T>
struct BackwardWeights {
    Panels<T> hh, projection, input;  // W_hh (G*H x P); with a projection: W_hr (P x H); with d_input: W_ih (G*H x I)
    Index size;

    explicit BackwardWeights(const Layer<T>& layer)
        : hh{weight_blocks(layer.cell) * layer.hidden, layer.output_size},
          projection{layer.output_size, layer.direction[0].weight_hr ? layer.hidden : 0},
          input{hh.K, layer.gradient[0].d_input ? layer.input_size : 0},
          size(hh.size() + projection.size() + input.size()) {}

    void pack(const Direction<T>& from, T* to, int index, int cores) const {
        for (int p = index; p < hh.count(); p += cores) pack_panel(hh, p, from.weight_hh, hh.N, 1, to);
        for (int p = index; p < projection.count(); p += cores)
            pack_panel(projection, p, from.weight_hr, projection.N, 1, to + hh.size());
        for (int p = index; p < input.count(); p += cores)
            pack_panel(input, p, from.weight_ih, input.N, 1, to + hh.size() + projection.size());
    }
};

template <class T>
struct BackwardStep {
    const Layer<T>& layer;
    const Direction<T>& d;
    const Gradient<T>& g;
    const BackwardWeights<T>& shape;
    const T* packed;
    T* sums;     // kChunk x 4 registers
    T* d_inner;  // kChunk x H; with a projection
    Turn turn;

    void operator()(int t, int first, Index n, int rows) {
        turn.back = !turn.back;
        switch (layer.cell) {
            case Cell::lstm: lstm(t, first, n, rows); break;
            case Cell::gru: gru(first, n, rows); break;
            case Cell::tanh_rnn: simple<true>(t, first, n, rows); break;
            case Cell::relu_rnn: simple<false>(t, first, n, rows); break;
        }
        to_previous(first, n, rows);
        if (g.d_input) to_input(n, rows);
    }

    bool has(int t, int b) const { return t >= 0 && t < layer.steps && b < layer.offsets[t + 1] - layer.offsets[t]; }

    // The c that row `b` of step `t` began with; null for zeros.
    const T* cell_before(int t, int b) const {
        const int previous = d.reverse ? t + 1 : t - 1;
        if (has(previous, b)) return d.cells + (layer.offsets[previous] + b) * layer.hidden;
        return d.c_0 ? d.c_0 + static_cast<Index>(b) * layer.hidden : nullptr;
    }

    // The h that it ended with: what the next step began with, or the last of all.
    const T* h_after(int t, int b) const {
        const int next = d.reverse ? t - 1 : t + 1;
        return has(next, b) ? d.before + (layer.offsets[next] + b) * layer.hidden : d.last + static_cast<Index>(b) * layer.hidden;
    }

    void lstm(int t, int first, Index n, int rows) const {
        constexpr int W = kLanes<T>;
        const Index H = layer.hidden;
        if (d.weight_hr) unproject(first, n, rows);
        for (int r = 0; r < rows; ++r) {
            const T* gates = d.gates + (n + r) * 4 * H;
            const T* cell = d.cells + (n + r) * H;
            const T* cell_0 = cell_before(t, first + r);
            T* d_gates = g.d_gates + (n + r) * 4 * H;
            T* d_cell = g.d_c + (first + r) * H;
            for (Index u = 0; u < H; u += W) {
                const int units = H - u < W ? static_cast<int>(H - u) : W;
                const auto i = load_some(gates + u, units), f = load_some(gates + H + u, units);
                const auto c = load_some(gates + 2 * H + u, units), o = load_some(gates + 3 * H + u, units);
                const Vector<T> d_h = d.weight_hr ? load_some(d_inner + r * H + u, units) : d_output(first, n, r, u, units);
                const Vector<T> before = cell_0 ? load_some(cell_0 + u, units) : Vector<T>{};
                const Vector<T> squashed = hyperbolic_tangent(load_some(cell + u, units));
                const Vector<T> d_c = load_some(d_cell + u, units) + d_h * o * (1 - squashed * squashed);
                store_some(d_gates + u, d_c * c * i * (1 - i), units);
                store_some(d_gates + H + u, d_c * before * f * (1 - f), units);
                store_some(d_gates + 2 * H + u, d_c * i * (1 - c * c), units);
                store_some(d_gates + 3 * H + u, d_h * squashed * o * (1 - o), units);
                store_some(d_cell + u, d_c * f, units);
            }
        }
    }

    // The gradient of the output: what is asked of it, and what comes back from the step after it.
    ELMAN_INLINE Vector<T> d_output(int first, Index n, int r, Index u, int units) const {
        return load_some(g.d_output + (n + r) * layer.output_stride + u, units) +
               load_some(g.d_h + (static_cast<Index>(first) + r) * layer.output_size + u, units);
    }

    void unproject(int first, Index n, int rows) const {
        constexpr int W = kLanes<T>;
        const Index P = layer.output_size;
        for (int r = 0; r < rows; ++r)
            for (Index u = 0; u < P; u += W) {
                const int units = P - u < W ? static_cast<int>(P - u) : W;
                store_some(g.d_hidden + (n + r) * P + u, d_output(first, n, r, u, units), units);
            }
        multiply_matrix(shape.projection, packed + shape.hh.size(), g.d_hidden + n * P, P, rows, sums, d_inner, layer.hidden);
    }

    void gru(int first, Index n, int rows) const {
        constexpr int W = kLanes<T>;
        const Index H = layer.hidden;
        for (int r = 0; r < rows; ++r) {
            const T* gates = d.gates + (n + r) * 3 * H;
            const T* inner = d.inner + (n + r) * H;
            const T* before = d.before + (n + r) * H;
            T* d_gates = g.d_gates + (n + r) * 4 * H;
            T* d_before = g.d_h + (first + r) * H;
            for (Index u = 0; u < H; u += W) {
                const int units = H - u < W ? static_cast<int>(H - u) : W;
                const auto reset = load_some(gates + u, units), z = load_some(gates + H + u, units);
                const auto candidate = load_some(gates + 2 * H + u, units), hidden = load_some(inner + u, units);
                const Vector<T> d_h = d_output(first, n, r, u, units);
                const Vector<T> d_n = d_h * (1 - z) * (1 - candidate * candidate);
                store_some(d_gates + u, d_n * hidden * reset * (1 - reset), units);
                store_some(d_gates + H + u, d_h * (load_some(before + u, units) - candidate) * z * (1 - z), units);
                store_some(d_gates + 2 * H + u, d_n, units);
                store_some(d_gates + 3 * H + u, d_n * reset, units);
                store_some(d_before + u, d_h * z, units);  // the part that the gate lets through; the rest is added
            }
        }
    }

    template <bool kTanh>
    void simple(int t, int first, Index n, int rows) const {
        constexpr int W = kLanes<T>;
        const Index H = layer.hidden;
        for (int r = 0; r < rows; ++r) {
            const T* after = h_after(t, first + r);
            for (Index u = 0; u < H; u += W) {
                const int units = H - u < W ? static_cast<int>(H - u) : W;
                const auto h = load_some(after + u, units);
                const Vector<T> d_h = d_output(first, n, r, u, units);
                Vector<T> d_sum;
                if constexpr (kTanh) d_sum = d_h * (1 - h * h);
                else d_sum = h <= 0 ? Vector<T>{} : d_h;  // a NaN lets it through, as in PyTorch
                store_some(g.d_gates + (n + r) * H + u, d_sum, units);
            }
        }
    }

    // d_h of the step before: the gates' gradients times W_hh.
    void to_previous(int first, Index n, int rows) const {
        const Index H = layer.hidden, stride = gradient_blocks(layer.cell) * H;
        const bool gru = layer.cell == Cell::gru;
        const T* d_gates = g.d_gates + n * stride;
        T* d_h = g.d_h + static_cast<Index>(first) * layer.output_size;
        for (int i = 0; i < shape.hh.count(); ++i) {
            const int p = turn(i, shape.hh.count()), vectors = shape.hh.vectors(p);
            const T* panel = packed + shape.hh.offset(p);
            if (gru) {  // the third block of W_hh belongs to the fourth block of gates
                const Index skip = 2 * H * vectors * kLanes<T>;
                multiply_panel(vectors, d_gates, stride, rows, panel, layer.hidden * 2, sums);
                multiply_panel(vectors, d_gates + 3 * H, stride, rows, panel + skip, layer.hidden, sums, true);
                add(shape.hh, p, rows, d_h, layer.output_size);
            } else {
                multiply_panel(vectors, d_gates, stride, rows, panel, shape.hh.K, sums);
                write_panel(shape.hh, p, rows, sums, d_h, layer.output_size);
            }
        }
    }

    void to_input(Index n, int rows) const {
        const Index stride = static_cast<Index>(gradient_blocks(layer.cell)) * layer.hidden, I = layer.input_size;
        multiply_matrix(shape.input, packed + shape.hh.size() + shape.projection.size(), g.d_gates + n * stride, stride, rows,
                        sums, g.d_input + n * I, I);
    }

    void add(const Panels<T>& panels, int p, int rows, T* to, Index stride) const {
        const Index width = panels.vectors(p) * kLanes<T>;
        for (int r = 0; r < rows; ++r) {
            T* row = to + r * stride + panels.first_column(p);
            for (int n = 0; n < panels.columns(p); ++n) row[n] += sums[r * width + n];
        }
    }
};

template <class T>
void backward_share(const Layer<T>& layer, const BackwardWeights<T>& shape, const T* packed, const Share& share,
                    const Member<T>& member) {
    const Direction<T>& d = layer.direction[share.direction];
    const Gradient<T>& g = layer.gradient[share.direction];
    const Index H = layer.hidden, P = layer.output_size, count = share.end - share.begin;
    copy_state(g.d_h + share.begin * P, g.d_h_n ? g.d_h_n + share.begin * P : nullptr, count * P);
    if (g.d_c) copy_state(g.d_c + share.begin * H, g.d_c_n ? g.d_c_n + share.begin * H : nullptr, count * H);
    BackwardStep<T> step{layer, d, g, shape, packed, member.sums, member.inner, {}};
    for_chunks(layer, share, member, !d.reverse,
               [&](int, int t, int first, int rows) { step(t, first, layer.offsets[t] + first, rows); });
}

}  // namespace

template <class T>
void forward(const Layer<T>& layer) {
    const ForwardWeights<T> shape(layer);
    const Index states = 2 * static_cast<Index>(layer.batch) * layer.output_size;
    Memory<T> packed(layer.directions * shape.size), state(layer.directions * states);
    const Room<T> room(layer);
    Interrupt interrupt;
    auto pack = [&](int index, int cores) {
        for (int i = 0; i < layer.directions; ++i)
            shape.pack(layer, layer.direction[i], packed + i * shape.size, index, cores);
    };
    parallel(layer.threads, pack);
    auto run = [&](int index, int cores) {
        const Member<T> member = room.member(index, interrupt);
        for_shares(layer, index, cores, [&](const Share& share) {
            forward_share(layer, shape, packed + share.direction * shape.size, share, member, state + share.direction * states);
        });
    };
    parallel(layer.threads, run);
    interrupt.check();
}

template <class T>
void backward(const Layer<T>& given) {
    const BackwardWeights<T> shape(given);
    const Index h_size = static_cast<Index>(given.batch) * given.output_size;
    const Index c_size = given.cell == Cell::lstm ? static_cast<Index>(given.batch) * given.hidden : 0;
    Memory<T> packed(given.directions * shape.size), states(given.directions * (h_size + c_size));
    const Room<T> room(given);
    Interrupt interrupt;
    Layer<T> layer = given;  // with room for the gradients of the first state, whether or not anybody asks
    for (int i = 0; i < layer.directions; ++i) {
        Gradient<T>& g = layer.gradient[i];
        if (!g.d_h) g.d_h = states + i * (h_size + c_size);
        if (!g.d_c && c_size) g.d_c = states + i * (h_size + c_size) + h_size;
    }
    auto pack = [&](int index, int cores) {
        for (int i = 0; i < layer.directions; ++i) shape.pack(layer.direction[i], packed + i * shape.size, index, cores);
    };
    parallel(layer.threads, pack);
    auto run = [&](int index, int cores) {
        const Member<T> member = room.member(index, interrupt);
        for_shares(layer, index, cores, [&](const Share& share) {
            backward_share(layer, shape, packed + share.direction * shape.size, share, member);
        });
    };
    parallel(layer.threads, run);
    interrupt.check();
}

template void forward(const Layer<float>&);
template void forward(const Layer<double>&);
template void backward(const Layer<float>&);
template void backward(const Layer<double>&);

}  // namespace elman::ELMAN_ISA
