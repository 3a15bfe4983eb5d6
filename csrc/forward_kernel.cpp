// The recurrences of the simple network, the LSTM and the GRU through all steps; see recurrence_kernel.hpp.
#include "cells.hpp"
#include "sequences.hpp"

namespace elman::ELMAN_ISA {
namespace {

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
            for (int lane = 0; lane < W; ++lane)
                column[lane] = lane < units ? from[lane * static_cast<Index>(shape.K) + k] : 0;
        }
    }
}

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
            default: for_simple(layer.cell, [&](auto cell) { simple<cell.value>(h, next, n, rows); });
        }
    }

    void project_input(Index n, int rows) const {
        const Panels<T>& panels = shape.input;
        const Index stride = d.gates ? panels.N : layer.output_stride;
        multiply_matrix(panels, packed + shape.hh_size + shape.projection.size(), d.input + n * panels.K, panels.K,
                        rows, sums, (d.gates ? d.gates : d.output) + n * stride, stride);
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
            const auto [out, c] =
                lstm_cell(load(gate), load(gate + W), load(gate + 2 * W), load(gate + 3 * W), load_some(cell, units));
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
            multiply_panel(vectors, inner, layer.hidden, rows, packed + shape.hh_size + panels.offset(p), layer.hidden,
                           sums);
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
            const auto [out, candidate] =
                gru_cell(load(gate), load(gate + W), x_n, h_n, load_some(h + r * H + u, units));
            store_some(gates + 2 * H, candidate, units);
            if (d.inner) store_some(d.inner + (n + r) * H + u, h_n, units);
            store_some(d.output + (n + r) * layer.output_stride + u, out, units);
            store_some(next + r * H + u, out, units);
        }
    }

    template <Cell kCell>
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
                if (H - u >= W) simple_units<kCell, true>(next, n, rows, u, v, vectors);
                else simple_units<kCell, false>(next, n, rows, u, v, vectors);
            }
        }
    }

    template <Cell kCell, bool kWhole>
    void simple_units(T* next, Index n, int rows, Index u, int v, int vectors) const {
        constexpr int W = kLanes<T>;
        const Index H = layer.hidden;
        const int units = kWhole ? W : static_cast<int>(H - u);
        const Vector<T> bias = both_biases(d, u, units);
        for (int r = 0; r < rows; ++r) {
            T* output = d.output + (n + r) * layer.output_stride + u;
            const Vector<T> sum = load_some(output, units) + bias + load(sums + (r * vectors + v) * W);
            const auto out = simple_cell<kCell>(sum);
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
            forward_share(layer, shape, packed + share.direction * shape.size, share, member,
                          state + share.direction * states);
        });
        interrupt.end(index, cores);
    };
    parallel(layer.threads, run);
    interrupt.check();
}

void forward_float(const Layer<float>& layer) { forward(layer); }
void forward_double(const Layer<double>& layer) { forward(layer); }

}  // namespace elman::ELMAN_ISA
