// The equations of the cells, each once: for the layers that learn, the engine and decoder, and the encoder.
//
// They are those of elman/nn/cells.py, in its letters, from the gates on; what the gates are made of (weights, tables,
// labels) is the caller's. Rows are registers of units.
#pragma once

#include <type_traits>

#include "recurrence_kernel.hpp"
#include "simd.hpp"

namespace elman::ELMAN_ISA {

// A fraction that has not been divided yet, so that the product of two takes one division. A logistic's bottom is at
// most e^88 + 1 (doubles: e^708 + 1), a tangent's 2, and their product is still a number.
template <class V>
struct Fraction {
    V top, bottom;
};

template <class V>
ELMAN_INLINE V operator*(const Fraction<V>& a, const Fraction<V>& b) {
    return a.top * b.top / (a.bottom * b.bottom);
}

// The nonlinearities of a kind of gate: numbers, which a network that learns keeps, or fractions, which are quicker.
template <class Gate>
struct Nonlinearity {
    static ELMAN_INLINE Gate logistic(Gate x) { return ELMAN_ISA::logistic(x); }
    static ELMAN_INLINE Gate tangent(Gate x) { return hyperbolic_tangent(x); }
};

template <class V>
struct Nonlinearity<Fraction<V>> {
    // Far out it stays at e^-88 where it should go to 0, which no tangent makes larger.
    static ELMAN_INLINE Fraction<V> logistic(V x) { return {V{} + 1, 2 + exp_minus_1(-x)}; }
    // tanh|x| = (1 - e^-2|x|) / (1 + e^-2|x|), whose parts stay small however large x is
    static ELMAN_INLINE Fraction<V> tangent(V x) {
        const V e = exp_minus_1(x < 0 ? 2 * x : -2 * x);
        return {x < 0 ? e : -e, e + 2};
    }
};

// Gate number `which` of an LSTM, in PyTorch's order: i = σ(..), f = σ(..), g = tanh(..), o = σ(..)
template <class Gate, class V>
ELMAN_INLINE Gate lstm_gate(int which, V sum) {
    return which == 2 ? Nonlinearity<Gate>::tangent(sum) : Nonlinearity<Gate>::logistic(sum);
}

template <class V>
struct LSTMState {
    V h, c;
};

// c' = f c + i g, h' = o tanh(c'); f is a number, since c may be of any size
template <class Gate, class V>
ELMAN_INLINE LSTMState<V> lstm_cell(Gate i, V f, Gate g, Gate o, V c) {
    const V next = f * c + i * g;
    return {o * Nonlinearity<Gate>::tangent(next), next};
}

// One step of a trained LSTM from the sums of its gates, sum(0) ... sum(3)
template <class V, class Sum>
ELMAN_INLINE LSTMState<V> lstm_step(const Sum& sum, V c) {
    using Gate = Fraction<V>;
    const auto i = lstm_gate<Gate>(0, sum(0)), g = lstm_gate<Gate>(2, sum(2)), o = lstm_gate<Gate>(3, sum(3));
    return lstm_cell(i, lstm_gate<V>(1, sum(1)), g, o, c);
}

template <class V>
struct GRUState {
    V h, n;
};

// n = tanh(x_n + r h_n), h' = (1 - z) n + z h; of W_in x + b_in and W_hn h + b_hn, with r = σ(..) and z = σ(..)
template <class V>
ELMAN_INLINE GRUState<V> gru_cell(V r, V z, V x_n, V h_n, V h) {
    const V n = hyperbolic_tangent(x_n + r * h_n);
    return {n + z * (h - n), n};
}

// One step of a trained GRU from the sums of its gates r and z
template <class V>
ELMAN_INLINE V gru_step(V sum_r, V sum_z, V x_n, V h_n, V h) {
    return gru_cell(logistic(sum_r), logistic(sum_z), x_n, h_n, h).h;
}

// h' = tanh(..), the positive part of the sum, its logistic function, or the sum itself; a NaN stays one
template <Cell kCell, class V>
ELMAN_INLINE V simple_cell(V sum) {
    if constexpr (kCell == Cell::tanh_rnn) return hyperbolic_tangent(sum);
    else if constexpr (kCell == Cell::relu_rnn) return sum < 0 ? V{} : sum;
    else if constexpr (kCell == Cell::logistic_rnn) return logistic(sum);
    else return sum;
}

// The gradient of the sum, from that of h' and h' itself; a NaN of a positive part lets it through, as in PyTorch
template <Cell kCell, class V>
ELMAN_INLINE V simple_gradient(V d_h, V h) {
    if constexpr (kCell == Cell::tanh_rnn) return d_h * (1 - h * h);
    else if constexpr (kCell == Cell::relu_rnn) return h <= 0 ? V{} : d_h;
    else if constexpr (kCell == Cell::logistic_rnn) return d_h * h * (1 - h);
    else return d_h;
}

// use(constant) for the nonlinearity of a simple network, which is known as the constant is compiled
template <class Use>
ELMAN_INLINE void for_simple(Cell cell, const Use& use) {
    switch (cell) {
        case Cell::tanh_rnn: return use(std::integral_constant<Cell, Cell::tanh_rnn>{});
        case Cell::relu_rnn: return use(std::integral_constant<Cell, Cell::relu_rnn>{});
        case Cell::logistic_rnn: return use(std::integral_constant<Cell, Cell::logistic_rnn>{});
        default: return use(std::integral_constant<Cell, Cell::identity_rnn>{});
    }
}

}  // namespace elman::ELMAN_ISA
