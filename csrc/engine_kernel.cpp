// One step of a trained network for some rows: every layer, and the logits.
//
// The threads share the units of each layer and wait for each other between layers. A number is computed by one thread
// alone, so results do not depend on how many there are.
#include "engine_kernel.hpp"

#include "barrier.hpp"
#include "cells.hpp"
#include "products.hpp"

namespace elman::ELMAN_ISA {
namespace {

// One layer at one step: its place in the memory of the work.
struct LayerStep {
    const StreamNetwork& network;
    const StreamWork& work;
    int depth;
    const StreamLayer& layer = network.layer[depth];
    const float* h = work.h[work.turn] + static_cast<Index>(depth) * work.capacity * network.output;
    float* next = work.h[1 - work.turn] + static_cast<Index>(depth) * work.capacity * network.output;

    // What the layer sees as a vector: the output below, or with dense connections those of all layers below.
    const float* below() const {
        if (network.dense) return work.seen + (layer.table ? network.seen : 0);
        if (depth == 0) return work.seen;
        const float* from = network.residual ? work.outputs : work.h[1 - work.turn];
        return from + static_cast<Index>(depth - 1) * work.capacity * network.output;
    }
    Index below_stride() const { return network.dense || depth == 0 ? work.seen_stride : network.output; }

    // Where the sums of a row's gates begin, before any product.
    const float* start(int row) const { return layer.table ? layer.table + work.ids[row] * layer.columns : layer.bias; }
    const float* label(int row) const {
        return layer.labels ? layer.labels + work.labels[row] * layer.columns : nullptr;
    }

    // The output is the next h, and where layers are connected otherwise than in a chain, what others see of it.
    ELMAN_INLINE void write(int row, Index unit, Vector<float> out) const {
        const Index place = static_cast<Index>(row) * network.output + unit;
        store(next + place, out);
        if (network.residual) {
            if (layer.adds_input) out += load(below() + row * below_stride() + unit);
            store(work.outputs + static_cast<Index>(depth) * work.capacity * network.output + place, out);
        } else if (network.dense) {
            store(work.seen + row * work.seen_stride + network.seen + static_cast<Index>(depth) * network.output + unit,
                  out);
        }
    }
};

// The sums of the gates of one panel for one row: bias or table, label, and the two products.
template <int V>
struct Sums {
    const float *start, *label, *input, *hidden;

    Sums(const LayerStep& step, const StreamScratch& scratch, Index place, int row, int r, Index column)
        : start(step.start(row) + column),
          label(step.label(row) ? step.label(row) + column : nullptr),
          input(step.layer.input ? scratch.sums[0] + place + r * V * kWidth : nullptr),
          hidden(scratch.sums[1] + place + r * V * kWidth) {}

    ELMAN_INLINE Vector<float> seen(int v) const {  // all but the hidden state's part
        Vector<float> sum = load(start + v * kWidth);
        if (label) sum += load(label + v * kWidth);
        if (input) sum += load(input + v * kWidth);
        return sum;
    }
    ELMAN_INLINE Vector<float> gate(int v) const { return seen(v) + load(hidden + v * kWidth); }
};

ELMAN_INLINE void finish_lstm(const LayerStep& step, const Sums<4>& sums, int row, Index unit) {
    const Index place = static_cast<Index>(step.depth) * step.work.capacity + row;
    float* cell = step.work.c + place * step.network.hidden + unit;
    const auto sum = [&](int v) __attribute__((always_inline)) { return sums.gate(v); };
    const auto [h, c] = lstm_step(sum, load(cell));
    store(cell, c);
    if (step.layer.projection) store(step.work.inner + static_cast<Index>(row) * step.network.hidden + unit, h);
    else step.write(row, unit, h);
}

ELMAN_INLINE void finish_gru(const LayerStep& step, const Sums<3>& sums, int row, Index unit) {
    const Vector<float> h_n = load(sums.hidden + 2 * kWidth) + load(step.layer.hidden_bias + unit);
    const Vector<float> before = load(step.h + static_cast<Index>(row) * step.network.output + unit);
    step.write(row, unit, gru_step(sums.gate(0), sums.gate(1), sums.seen(2), h_n, before));
}

template <Cell kCell, int V>
ELMAN_INLINE void finish_simple(const LayerStep& step, const Sums<V>& sums, int row, Index unit) {
    for (int v = 0; v < V; ++v) step.write(row, unit + v * kWidth, simple_cell<kCell>(sums.gate(v)));
}

template <int V>
void finish_simple_panel(const LayerStep& step, const StreamScratch& scratch, Index place, int first, int rows,
                         Index column) {
    for (int r = 0; r < rows; ++r) {
        const Sums<V> sums(step, scratch, place, first + r, r, column);
        for_simple(step.network.cell, [&](auto cell) __attribute__((always_inline)) {
            finish_simple<cell.value, V>(step, sums, first + r, column);
        });
    }
}

// The nonlinearities of one panel, whose products are at `place` of the scratch.
void finish(const LayerStep& step, const StreamScratch& scratch, Index place, int p, int first, int rows) {
    const Matrix& hidden = step.layer.hidden;
    const Index column = panel_column(hidden, p), unit = static_cast<Index>(p) * kWidth;
    if (step.network.cell == Cell::lstm) {
        for (int r = 0; r < rows; ++r)
            finish_lstm(step, Sums<4>(step, scratch, place, first + r, r, column), first + r, unit);
    } else if (step.network.cell == Cell::gru) {
        for (int r = 0; r < rows; ++r)
            finish_gru(step, Sums<3>(step, scratch, place, first + r, r, column), first + r, unit);
    } else {
        switch (panel_vectors(hidden, p)) {
            case 1: return finish_simple_panel<1>(step, scratch, place, first, rows, column);
            case 2: return finish_simple_panel<2>(step, scratch, place, first, rows, column);
            case 3: return finish_simple_panel<3>(step, scratch, place, first, rows, column);
            default: return finish_simple_panel<4>(step, scratch, place, first, rows, column);
        }
    }
}

void run_layer(const LayerStep& step, const StreamScratch& scratch, int index, int count) {
    const StreamLayer& layer = step.layer;
    const int rows = step.work.rows;
    const Rows input = rows_for(layer.input, step.below(), step.below_stride(), rows, scratch, 0);
    const Rows hidden = rows_for(layer.hidden, step.h, step.network.output, rows, scratch, 1);
    const Range mine = share_of(panel_count(layer.hidden), index, count);
    const int together = rows < kStreamChunk ? kStreamChunk / rows : 1;  // panels
    const int groups = (mine.end - mine.begin + together - 1) / together;
    const Turn turn{step.work.turn == 1};  // which changes from step to step
    for (int i = 0; i < groups; ++i) {
        const int begin = mine.begin + turn(i, groups) * together;
        const int end = begin + together < mine.end ? begin + together : mine.end;
        for (int first = 0; first < rows; first += kStreamChunk) {
            const int some = rows - first < kStreamChunk ? rows - first : kStreamChunk;
            const Index room = static_cast<Index>(some) * kMostVectors * kWidth;
            for (int q = 0; q < end - begin; ++q) {
                const int p = begin + turn(q, end - begin);
                if (layer.input) multiply(layer.input, p, input, first, some, scratch.sums[0] + (p - begin) * room);
                multiply(layer.hidden, p, hidden, first, some, scratch.sums[1] + (p - begin) * room);
            }
            for (int p = begin; p < end; ++p) finish(step, scratch, (p - begin) * room, p, first, some);
        }
    }
}

void project(const LayerStep& step, const StreamScratch& scratch, int index, int count) {
    const Matrix& m = step.layer.projection;
    const Rows in = rows_for(m, step.work.inner, step.network.hidden, step.work.rows, scratch, 0);
    product(m, in, step.work.rows, scratch, index, count,
            [&](int row, Index unit, Vector<float> sum) { step.write(row, unit, sum); });
}

// The vectors of token and label, and what the row is fed, side by side.
void embed(const StreamNetwork& network, const StreamWork& work, int index, int count) {
    for (int row = index; row < work.rows; row += count) {
        float* to = work.seen + row * work.seen_stride;
        copy_token(network, work.ids[row], to);
        if (network.label_size) {
            const float* label = network.label_vectors + static_cast<Index>(work.labels[row]) * network.label_size;
            std::memcpy(to + network.token_size, label, static_cast<std::size_t>(network.label_size) * sizeof(float));
        }
        if (network.fed_size)
            std::memcpy(to + network.token_size + network.label_size, work.fed + row * work.fed_stride,
                        static_cast<std::size_t>(network.fed_size) * sizeof(float));
    }
}

}  // namespace

// Read one id of each row. Every thread of a region calls this; afterwards all see the new state, which is h[1 - turn].
void stream_step(const StreamNetwork& network, const StreamWork& work, int index, int count) {
    const StreamScratch& scratch = work.scratch[index];
    if (network.seen) {
        embed(network, work, index, count);
        work.barrier->wait(count);
    }
    for (int depth = 0; depth < network.layers; ++depth) {
        const LayerStep step{network, work, depth};
        run_layer(step, scratch, index, count);
        work.barrier->wait(count);
        if (!step.layer.projection) continue;
        project(step, scratch, index, count);
        work.barrier->wait(count);
    }
}

// The output of the last layer, or all that the bridge sees (rows x stride), to logits (rows x padded vocabulary). The
// caller waits.
void stream_logits(const StreamNetwork& network, const StreamWork& work, const float* top, Index stride, int rows,
                   float* logits, int index, int count) {
    const StreamScratch& scratch = work.scratch[index];
    if (network.bridge) {
        const Index units = padded_units(network.bridge);
        const Rows in = rows_for(network.bridge, top, stride, rows, scratch, 0);
        product(network.bridge, in, rows, scratch, index, count, [&](int row, Index unit, Vector<float> sum) {
            sum += load(network.bridge_bias + unit);
            store(work.bridged + row * units + unit, network.bridge_tanh ? hyperbolic_tangent(sum) : sum);
        });
        work.barrier->wait(count);
        top = work.bridged;
        stride = units;
    }
    const Index columns = padded_units(network.softmax);
    const Rows in = rows_for(network.softmax, top, stride, rows, scratch, 0);
    product(network.softmax, in, rows, scratch, index, count, [&](int row, Index unit, Vector<float> sum) {
        store(logits + row * columns + unit, sum + load(network.softmax_bias + unit));
    });
}

}  // namespace elman::ELMAN_ISA
