// Whole texts through a trained network: every layer in both directions, the pooling, the head.
//
// What does not depend on the step before is done for all steps at once. The two directions of a layer do not depend on
// each other: each is the work of one team of threads, whose members share its units and wait for each other after each
// step.
#include "encoder_kernel.hpp"

#include <cmath>

#include "barrier.hpp"
#include "cells.hpp"
#include "products.hpp"
#include "threads.hpp"

namespace elman::ELMAN_ISA {
namespace {

// One direction of a layer, and where it reads and writes.
struct Reading {
    const EncoderNetwork& network;
    const EncoderWork& work;
    int depth, side;
    const EncoderDirection& direction = network.layer[depth].direction[side];

    const float* below() const { return depth == 0 || network.dense ? work.seen : work.outputs[(depth - 1) % 2]; }
    Index below_stride() const { return depth == 0 || network.dense ? work.seen_stride : width(); }
    float* output() const {
        if (network.dense) return work.seen + network.seen + depth * width();
        return work.outputs[depth % 2];
    }
    Index stride() const { return network.dense ? work.seen_stride : width(); }
    Index width() const { return static_cast<Index>(network.directions) * network.hidden; }
    float* h(Index row) const { return output() + row * stride() + static_cast<Index>(side) * network.hidden; }

    bool tabled() const { return depth == 0 && work.ids; }

    // The gates' sums before the hidden state's product.
    const float* start(Index row) const {
        if (tabled()) return work.table[side] + work.ids[row] * work.table_stride;
        return work.gates[side] + row * work.gates_stride;
    }
};

// Whether thread `index` should give up; `products` are to come until it asks again.
ELMAN_INLINE bool stops(const EncoderWork& work, int index, Index products) {
    return work.stop.interrupt->stops(work.stop.first + index, products);
}

// Of `rows` rows with a matrix that some members share.
ELMAN_INLINE Index products_of(const Matrix& m, Index rows, int members) {
    return rows * m.blocks * m.units * m.size / members;
}

// One of the members that share a product, and the thread that it is.
struct Member {
    const EncoderWork& work;
    int thread, index, count;
};

// A product of many rows with the panels of one member; calls write(row, unit, register) for each register of sums. It
// ends early where the call is given up, which the next wait tells all.
template <class Write>
ELMAN_INLINE void multiply_all(const Matrix& m, const float* data, Index stride, int rows, const Member& member,
                               Write write) {
    const StreamScratch& scratch = member.work.scratch[member.thread];
    const Range mine = share_of(panel_count(m), member.index, member.count);
    for (int first = 0; first < rows; first += kStreamChunk) {
        const int some = rows - first < kStreamChunk ? rows - first : kStreamChunk;
        if (stops(member.work, member.thread, products_of(m, some, member.count))) return;
        const Rows in = rows_for(m, data + first * stride, stride, some, scratch, 0);
        for (int p = mine.begin; p < mine.end; ++p) {
            const int vectors = panel_vectors(m, p);
            multiply(m, p, in, 0, some, scratch.sums[0]);
            for (int r = 0; r < some; ++r)
                for (int v = 0; v < vectors; ++v)
                    write(first + r, panel_column(m, p) + v * kWidth,
                          load(scratch.sums[0] + (r * vectors + v) * kWidth));
        }
    }
}

// What the layer sees, for all steps at once.
void project(const Reading& reading, const Member& member) {
    const EncoderDirection& direction = reading.direction;
    if (reading.tabled()) return;
    float* gates = reading.work.gates[reading.side];
    const Index stride = reading.work.gates_stride;
    multiply_all(direction.input, reading.below(), reading.below_stride(), reading.work.offsets[reading.work.steps],
                 member, [&](Index row, Index column, Vector<float> sum) {
                     store(gates + row * stride + column, sum + load(direction.bias + column));
                 });
}

// The sums of the gates of one panel for one row; before the first step of a text its state is zero, and so is the
// product.
struct Gates {
    const float *start, *hidden;

    ELMAN_INLINE Vector<float> seen(int v) const { return load(start + v * kWidth); }
    ELMAN_INLINE Vector<float> of_state(int v) const { return hidden ? load(hidden + v * kWidth) : Vector<float>{}; }
    ELMAN_INLINE Vector<float> sum(int v) const { return seen(v) + of_state(v); }
};

ELMAN_INLINE Vector<float> lstm_unit(const Gates& gates, float* cell) {
    const auto sum = [&](int v) __attribute__((always_inline)) { return gates.sum(v); };
    const auto [h, c] = lstm_step(sum, load(cell));
    store(cell, c);
    return h;
}

ELMAN_INLINE Vector<float> gru_unit(const Gates& gates, Vector<float> hidden_bias, Vector<float> before) {
    const Vector<float> h_n = gates.of_state(2) + hidden_bias;
    return gru_step(gates.sum(0), gates.sum(1), gates.seen(2), h_n, before);
}

// One step of some texts: their rows, and those of the step before that there are.
struct Step {
    Index row, before;  // the first of each
    int texts, known;   // how many have a row now, how many had one before
};

// The nonlinearities of one panel; `sums` has the products of the rows that are known, V registers each.
void finish(const Reading& reading, const Step& step, int p, const float* sums) {
    const EncoderNetwork& network = reading.network;
    const Matrix& m = reading.direction.hidden;
    const int vectors = panel_vectors(m, p);
    const Index column = panel_column(m, p), unit = m.blocks > 1 ? static_cast<Index>(p) * kWidth : column;
    for (int text = 0; text < step.texts; ++text) {
        const bool known = text < step.known;
        const Gates gates{reading.start(step.row + text) + column, known ? sums + text * vectors * kWidth : nullptr};
        float* h = reading.h(step.row + text) + unit;
        if (network.cell == Cell::lstm) {
            float* cell = reading.work.c[reading.side] + static_cast<Index>(text) * network.hidden + unit;
            if (!known) store(cell, Vector<float>{});
            store(h, lstm_unit(gates, cell));
        } else if (network.cell == Cell::gru) {
            const Vector<float> before = known ? load(reading.h(step.before + text) + unit) : Vector<float>{};
            store(h, gru_unit(gates, load(reading.direction.hidden_bias + unit), before));
        } else {
            for (int v = 0; v < vectors; ++v) {
                const Vector<float> sum = gates.sum(v);
                for_simple(network.cell, [&](auto cell) __attribute__((always_inline)) {
                    store(h + v * kWidth, simple_cell<cell.value>(sum));
                });
            }
        }
    }
}

// A direction's state through all steps; the members of its team share its units. Whether they were stopped.
bool recur(const Reading& reading, int index, Barrier& team, int member, int members) {
    const StreamScratch& scratch = reading.work.scratch[index];
    const EncoderWork& work = reading.work;
    const Matrix& hidden = reading.direction.hidden;
    const Range mine = share_of(panel_count(hidden), member, members);
    for (int i = 0; i < work.steps; ++i) {
        const int t = reading.side == 0 ? i : work.steps - 1 - i, last = reading.side == 0 ? t - 1 : t + 1;
        Step step{work.offsets[t], 0, work.offsets[t + 1] - work.offsets[t], 0};
        if (i > 0) {
            step.before = work.offsets[last];
            const int had = work.offsets[last + 1] - work.offsets[last];
            step.known = had < step.texts ? had : step.texts;
        }
        Rows before{};
        if (step.known) before = rows_for(hidden, reading.h(step.before), reading.stride(), step.known, scratch, 1);
        const int together = step.texts < kStreamChunk ? kStreamChunk / step.texts : 1;  // panels
        const Index room = static_cast<Index>(step.texts) * kMostVectors * kWidth;
        const int groups = (mine.end - mine.begin + together - 1) / together;
        const Turn turn{i % 2 == 1};
        for (int g = 0; g < groups; ++g) {
            const int begin = mine.begin + turn(g, groups) * together;
            const int end = begin + together < mine.end ? begin + together : mine.end;
            if (step.known)
                for (int q = 0; q < end - begin; ++q) {
                    const int p = begin + turn(q, end - begin);
                    multiply(hidden, p, before, 0, step.known, scratch.sums[1] + (p - begin) * room);
                }
            for (int p = begin; p < end; ++p) finish(reading, step, p, scratch.sums[1] + (p - begin) * room);
        }
        if (team.wait(members, stops(work, index, products_of(hidden, step.texts, members)))) return true;
    }
    return false;
}

bool run_layer(const EncoderNetwork& network, const EncoderWork& work, int depth, int index, int count) {
    bool stopped = false;
    const int teams = network.directions <= count ? network.directions : 1;
    const int team = index % teams, member = index / teams, members = (count + teams - 1 - team) / teams;
    for (int side = 0; side < network.directions; ++side) {
        if (teams > 1 && side != team) continue;
        const Reading reading{network, work, depth, side};
        Barrier& barrier = work.barrier[teams > 1 ? 1 + team : 0];
        project(reading, {work, index, member, members});
        barrier.wait(members);
        stopped = recur(reading, index, barrier, member, members);
        if (stopped) break;
    }
    return work.barrier[0].wait(count, stopped);
}

void add_input(const Reading& reading, int index, int count) {
    const Index rows = reading.work.offsets[reading.work.steps], width = reading.width();
    for (Index row = index; row < rows; row += count) {
        float* to = reading.output() + row * reading.stride();
        const float* from = reading.below() + row * reading.below_stride();
        for (Index k = 0; k < width; k += kWidth) store(to + k, load(to + k) + load(from + k));
    }
}

// Where one direction of a layer has the h of a text after its last step.
ELMAN_INLINE const float* last_h(const Reading& layer, int side, int text) {
    const Index row = side == 0 ? layer.work.offsets[layer.work.lengths[text] - 1] + text : text;
    return layer.output() + row * layer.stride() + static_cast<Index>(side) * layer.network.hidden;
}

// The states of a layer after the last step of each text, before anything is added to them.
void keep_final(const Reading& layer) {
    const EncoderWork& work = layer.work;
    const Index hidden = layer.network.hidden;
    const auto bytes = static_cast<std::size_t>(hidden) * sizeof(float);
    for (int side = 0; side < layer.network.directions; ++side)
        for (int text = 0; text < work.texts; ++text) {
            const Index to =
                (static_cast<Index>(layer.depth * layer.network.directions + side) * work.texts + text) * hidden;
            std::memcpy(work.final[0] + to, last_h(layer, side, text), bytes);
            if (layer.network.cell == Cell::lstm) std::memcpy(work.final[1] + to, work.c[side] + text * hidden, bytes);
        }
}

// --- One vector a text ----------------------------------------------------------------------------------------------

// Where the vector of a text goes; of those that stand side by side, the one with this number.
ELMAN_INLINE float* pooled(const Reading& top, int text, int place) {
    return top.work.pooled + text * top.network.pooled_width() + place * top.width();
}

void pool_last(const Reading& top, int place) {
    const EncoderWork& work = top.work;
    const auto bytes = static_cast<std::size_t>(top.network.hidden) * sizeof(float);
    for (int text = 0; text < work.texts; ++text)
        for (int side = 0; side < top.network.directions; ++side)
            std::memcpy(pooled(top, text, place) + side * top.network.hidden, last_h(top, side, text), bytes);
}

void pool_mean(const Reading& top, int place) {
    const EncoderWork& work = top.work;
    for (int text = 0; text < work.texts; ++text)
        for (Index k = 0; k < top.width(); k += kWidth) {
            Vector<float> sum = {};
            for (int t = 0; t < work.lengths[text]; ++t)
                sum += load(top.output() + (work.offsets[t] + text) * top.stride() + k);
            store(pooled(top, text, place) + k, sum / static_cast<float>(work.lengths[text]));
        }
}

void pool_max(const Reading& top, int place) {
    const EncoderWork& work = top.work;
    for (int text = 0; text < work.texts; ++text)
        for (Index k = 0; k < top.width(); k += kWidth) {
            Vector<float> most = load(top.output() + text * top.stride() + k);
            for (int t = 1; t < work.lengths[text]; ++t) {
                const Vector<float> x = load(top.output() + (work.offsets[t] + text) * top.stride() + k);
                most = (x > most) | (x != x) ? x : most;  // a NaN stays, as in PyTorch
            }
            store(pooled(top, text, place) + k, most);
        }
}

// u = tanh(W h + b) of every step is there; its product with v says how much a step weighs.
void pool_attention(const Reading& top) {
    const EncoderWork& work = top.work;
    const Index units = padded_units(top.network.query);
    const auto score = [&](Index row) {
        Vector<float> sum = {};
        for (Index k = 0; k < units; k += kWidth)
            sum += load(work.queries + row * units + k) * load(top.network.query_vector + k);
        float total = 0;
        for (int lane = 0; lane < kWidth; ++lane) total += sum[lane];
        return total;
    };
    for (int text = 0; text < work.texts; ++text) {
        float* to = pooled(top, text, 0);
        float highest = score(text), whole = 0;
        for (int t = 1; t < work.lengths[text]; ++t) highest = std::fmax(highest, score(work.offsets[t] + text));
        std::memset(to, 0, static_cast<std::size_t>(top.width()) * sizeof(float));
        for (int t = 0; t < work.lengths[text]; ++t) {
            const Index row = work.offsets[t] + text;
            const float weight = std::exp(score(row) - highest);
            whole += weight;
            for (Index k = 0; k < top.width(); k += kWidth)
                store(to + k, load(to + k) + weight * load(top.output() + row * top.stride() + k));
        }
        for (Index k = 0; k < top.width(); k += kWidth) store(to + k, load(to + k) / whole);
    }
}

void pool(const Reading& top, int index, int count) {
    const EncoderNetwork& network = top.network;
    if (network.pooling == Pooling::attention) {
        const Index units = padded_units(network.query);
        multiply_all(network.query, top.output(), top.stride(), top.work.offsets[top.work.steps],
                     {top.work, index, index, count}, [&](Index row, Index unit, Vector<float> sum) {
                         store(top.work.queries + row * units + unit,
                               hyperbolic_tangent(sum + load(network.query_bias + unit)));
                     });
        top.work.barrier[0].wait(count);
    }
    if (index == 0) {
        switch (network.pooling) {
            case Pooling::last: pool_last(top, 0); break;
            case Pooling::mean: pool_mean(top, 0); break;
            case Pooling::max: pool_max(top, 0); break;
            case Pooling::last_max_mean:  // the last is there already
                pool_max(top, 1);
                pool_mean(top, 2);
                break;
            case Pooling::attention: pool_attention(top); break;
            case Pooling::steps: break;
        }
    }
    top.work.barrier[0].wait(count);
}

}  // namespace

// Every thread of a region calls this: the first layer's gates of every row, as a table has them.
void first_gates(const EncoderNetwork& network, const EncoderWork& work, int index, int count) {
    for (int side = 0; side < network.directions; ++side)
        project({network, work, 0, side}, {work, index, index, count});
}

// Every thread of a region calls this; the answer is `result`, or where there is no head `pooled` or the last layer's
// output.
void encode(const EncoderNetwork& network, const EncoderWork& work, int index, int count) {
    for (int depth = 0; depth < network.layers; ++depth) {
        if (run_layer(network, work, depth, index, count)) return;
        const Reading reading{network, work, depth, 0};
        const bool ends = depth == network.layers - 1;
        if (work.final[0]) {
            if (index == 0) keep_final(reading);
            work.barrier[0].wait(count);
        }
        if (ends && network.pooling == Pooling::last_max_mean) {  // the last is the h itself, before anything is added
            if (index == 0) pool_last(reading, 0);
            work.barrier[0].wait(count);
        }
        if (!network.layer[depth].adds_input || (ends && network.pooling == Pooling::last)) continue;
        add_input(reading, index, count);
        work.barrier[0].wait(count);
    }
    const Reading top{network, work, network.layers - 1, 0};
    const bool pooled = network.pooling != Pooling::steps;
    if (pooled) pool(top, index, count);
    if (!network.head) return;
    const Index units = padded_units(network.head);
    multiply_all(network.head, pooled ? work.pooled : top.output(), pooled ? network.pooled_width() : top.stride(),
                 pooled ? work.texts : work.offsets[work.steps], {work, index, index, count},
                 [&](Index row, Index unit, Vector<float> sum) {
                     store(work.result + row * units + unit, sum + load(network.head_bias + unit));
                 });
}

}  // namespace elman::ELMAN_ISA
