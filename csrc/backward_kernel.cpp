// The gradients of the recurrences, from the last step back to the first; see recurrence_kernel.hpp.
#include "cells.hpp"
#include "sequences.hpp"

namespace elman::ELMAN_ISA {
namespace {

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
            default: for_simple(layer.cell, [&](auto cell) { simple<cell.value>(t, first, n, rows); });
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
        return has(next, b) ? d.before + (layer.offsets[next] + b) * layer.hidden
                            : d.last + static_cast<Index>(b) * layer.hidden;
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
                const Vector<T> d_h =
                    d.weight_hr ? load_some(d_inner + r * H + u, units) : d_output(first, n, r, u, units);
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
        multiply_matrix(shape.projection, packed + shape.hh.size(), g.d_hidden + n * P, P, rows, sums, d_inner,
                        layer.hidden);
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

    template <Cell kCell>
    void simple(int t, int first, Index n, int rows) const {
        constexpr int W = kLanes<T>;
        const Index H = layer.hidden;
        for (int r = 0; r < rows; ++r) {
            const T* after = h_after(t, first + r);
            for (Index u = 0; u < H; u += W) {
                const int units = H - u < W ? static_cast<int>(H - u) : W;
                const auto h = load_some(after + u, units);
                const Vector<T> d_h = d_output(first, n, r, u, units);
                store_some(g.d_gates + (n + r) * H + u, simple_gradient<kCell>(d_h, h), units);
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
        multiply_matrix(shape.input, packed + shape.hh.size() + shape.projection.size(), g.d_gates + n * stride, stride,
                        rows, sums, g.d_input + n * I, I);
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
void backward(const Layer<T>& called) {
    const BackwardWeights<T> shape(called);
    const Index h_size = static_cast<Index>(called.batch) * called.output_size;
    const Index c_size = called.cell == Cell::lstm ? static_cast<Index>(called.batch) * called.hidden : 0;
    Memory<T> packed(called.directions * shape.size), states(called.directions * (h_size + c_size));
    const Room<T> room(called);
    Interrupt interrupt;
    Layer<T> layer = called;  // with room for the gradients of the first state, whether or not anybody asks
    for (int i = 0; i < layer.directions; ++i) {
        Gradient<T>& g = layer.gradient[i];
        if (!g.d_h) g.d_h = states + i * (h_size + c_size);
        if (!g.d_c && c_size) g.d_c = states + i * (h_size + c_size) + h_size;
    }
    auto pack = [&](int index, int cores) {
        for (int i = 0; i < layer.directions; ++i)
            shape.pack(layer.direction[i], packed + i * shape.size, index, cores);
    };
    parallel(layer.threads, pack);
    auto run = [&](int index, int cores) {
        const Member<T> member = room.member(index, interrupt);
        for_shares(layer, index, cores, [&](const Share& share) {
            backward_share(layer, shape, packed + share.direction * shape.size, share, member);
        });
        interrupt.end(index, cores);
    };
    parallel(layer.threads, run);
    interrupt.check();
}

void backward_float(const Layer<float>& layer) { backward(layer); }
void backward_double(const Layer<double>& layer) { backward(layer); }

}  // namespace elman::ELMAN_ISA
