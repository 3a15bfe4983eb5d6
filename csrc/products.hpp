// The product of some rows with one panel of a `Matrix`, in float32 or int8.
#pragma once

#include "dot.hpp"
#include "engine_kernel.hpp"
#include "panels.hpp"

namespace elman::ELMAN_ISA {

constexpr int kWidth = kLanes<float>;

// --- Where the panels lie -------------------------------------------------------------------------------------------

ELMAN_INLINE int panel_width(const Matrix& m) { return m.blocks > 1 ? m.blocks : kMostVectors; }  // in registers

ELMAN_INLINE int panel_count(const Matrix& m) {
    const int units = m.blocks > 1 ? kWidth : kMostVectors * kWidth;
    return (m.units + units - 1) / units;
}

ELMAN_INLINE int panel_vectors(const Matrix& m, int p) {
    if (m.blocks > 1) return m.blocks;
    const int left = (m.units + kWidth - 1) / kWidth - p * kMostVectors;
    return left < kMostVectors ? left : kMostVectors;
}

ELMAN_INLINE Index panel_column(const Matrix& m, int p) { return static_cast<Index>(p) * panel_width(m) * kWidth; }

// How many units there are with those that fill the last register.
ELMAN_INLINE Index padded_units(const Matrix& m) {
    return (static_cast<Index>(m.units) + kWidth - 1) / kWidth * kWidth;
}

// --- The rows -------------------------------------------------------------------------------------------------------

// Some rows that a matrix is multiplied with; for an int8 matrix as bytes, each row with its scale.
struct Rows {
    const float* data;
    Index stride;
    const std::uint8_t* bytes;
    const float* scale;
};

// A row as bytes: its largest number becomes 63 or -63. What is not finite makes the scale so, and with it every
// product.
inline float to_bytes(const float* from, int size, std::uint8_t* to) {
    constexpr std::int32_t kMagic =
        0x4B400000 - kOffset;  // 1.5 * 2^23: a number added to it is rounded and stands in the low bits
    Vector<float> most = {}, bad = {};
    for (int k = 0; k < size; k += kWidth) {
        const Vector<float> x = load(from + k), magnitude = x < 0 ? -x : x;
        most = magnitude > most ? magnitude : most;
        bad += x * 0.0f;
    }
    float top = 0, poison = 0;
    for (int lane = 0; lane < kWidth; ++lane) {
        top = most[lane] > top ? most[lane] : top;
        poison += bad[lane];
    }
    const float factor = top > 1e-30f ? kLargestByte / top : 0.0f;
    for (int k = 0; k < size; k += kWidth) {
        const Integers whole = (Integers)(load(from + k) * factor + 12582912.0f) - kMagic;
        typedef std::uint8_t Bytes __attribute__((vector_size(kWidth)));
        const Bytes narrow = __builtin_convertvector(whole, Bytes);
        std::memcpy(to + k, &narrow, sizeof narrow);
    }
    return (top > 1e-30f ? top / kLargestByte : 0.0f) + poison;
}

inline Rows rows_for(const Matrix& m, const float* data, Index stride, int rows, const StreamScratch& scratch,
                     int which) {
    if (!m || !m.scale) return {data, stride, nullptr, nullptr};
    for (int r = 0; r < rows; ++r)
        scratch.scale[which][r] =
            to_bytes(data + r * stride, m.size, scratch.bytes[which] + static_cast<Index>(r) * m.size);
    return {nullptr, m.size, scratch.bytes[which], scratch.scale[which]};
}

// --- The products ---------------------------------------------------------------------------------------------------

constexpr int kAhead = 1024;  // bytes of weights that are asked for before they are needed

// One row has few sums, and each waits for itself: several sums for the same column, each of every other step, keep the
// multipliers busy.
template <int V>
ELMAN_INLINE void one_row(const float* x, const float* panel, int size, float* sums) {
    constexpr int phases = V == kMostVectors ? 2 : 4;  // `size` is whole registers, so both divide it
    Vector<float> sum[phases][V] = {};
    for (int k = 0; k < size; k += phases, panel += phases * V * kWidth) {
#pragma GCC unroll 16
        for (int line = 0; line < phases * V * kVectorBytes; line += 64)
            __builtin_prefetch(reinterpret_cast<const char*>(panel) + kAhead + line);
#pragma GCC unroll 4
        for (int i = 0; i < phases; ++i) {
            const Vector<float> factor = every(x[k + i]);
#pragma GCC unroll 4
            for (int v = 0; v < V; ++v) sum[i][v] += factor * load(panel + (i * V + v) * kWidth);
        }
    }
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
        Vector<float> total = sum[0][v];
#pragma GCC unroll 4
        for (int i = 1; i < phases; ++i) total += sum[i][v];
        store(sums + v * kWidth, total);
    }
}

template <int R, int V>
ELMAN_INLINE void byte_rows(const Matrix& m, Index column, const std::int8_t* panel, const Rows& in, int first,
                            float* sums) {
    Integers sum[R][V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
        const Integers start = -kOffset * load_integers(m.total + column + v * kWidth);
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) sum[r][v] = start;
    }
    const std::uint8_t* x = in.bytes + first * in.stride;
    for (int k = 0; k < m.size; k += 4, panel += V * kVectorBytes) {
#pragma GCC unroll 4
        for (int line = 0; line < V * kVectorBytes; line += 64) __builtin_prefetch(panel + kAhead + line);
        Integers factor[R];
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) factor[r] = four(x + r * in.stride + k);
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) {
            const Integers weights = load_integers(panel + v * kVectorBytes);
#pragma GCC unroll 4
            for (int r = 0; r < R; ++r) sum[r][v] = add_products(sum[r][v], weights, factor[r]);
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) {
            const Vector<float> scale = load(m.scale + column + v * kWidth) * in.scale[first + r];
            store(sums + (r * V + v) * kWidth, __builtin_convertvector(sum[r][v], Vector<float>) * scale);
        }
}

template <int V>
void multiply(const Matrix& m, int p, const Rows& in, int first, int rows, float* sums) {
    const Index column = panel_column(m, p);
    if (!m.scale) {
        const float* panel = static_cast<const float*>(m.data) + column * m.size;
        if (rows == 1) return one_row<V>(in.data + first * in.stride, panel, m.size, sums);
        return multiply_panel<float, V>(in.data + first * in.stride, in.stride, rows, panel, m.size, sums);
    }
    constexpr int together = kRegisters == 32 ? 4 : 2;
    const std::int8_t* panel = static_cast<const std::int8_t*>(m.data) + column * m.size;
    int r = 0;
    for (; r + together <= rows; r += together)
        byte_rows<together, V>(m, column, panel, in, first + r, sums + r * V * kWidth);
    for (; r < rows; ++r) byte_rows<1, V>(m, column, panel, in, first + r, sums + r * V * kWidth);
}

// sums (rows x V registers, V those of the panel) = rows `first` ... of `in` times panel p
inline void multiply(const Matrix& m, int p, const Rows& in, int first, int rows, float* sums) {
    switch (panel_vectors(m, p)) {
        case 1: return multiply<1>(m, p, in, first, rows, sums);
        case 2: return multiply<2>(m, p, in, first, rows, sums);
        case 3: return multiply<3>(m, p, in, first, rows, sums);
        default: return multiply<4>(m, p, in, first, rows, sums);
    }
}

// The vector of one token.
inline void copy_token(const StreamNetwork& network, int id, float* to) {
    const Index from = static_cast<Index>(id) * network.token_size;
    if (!network.token_scale) {
        const float* vector = static_cast<const float*>(network.tokens) + from;
        std::memcpy(to, vector, static_cast<std::size_t>(network.token_size) * sizeof(float));
        return;
    }
    const auto* bytes = static_cast<const std::int8_t*>(network.tokens) + from;
    for (int k = 0; k < network.token_size; ++k) to[k] = static_cast<float>(bytes[k]) * network.token_scale[id];
}

// A plain product of all rows with the panels of one thread; calls write(row, unit, register) for each register of
// sums.
template <class Write>
ELMAN_INLINE void product(const Matrix& m, const Rows& in, int rows, const StreamScratch& scratch, int index, int count,
                          Write write) {
    const Range mine = share_of(panel_count(m), index, count);
    for (int p = mine.begin; p < mine.end; ++p)
        for (int first = 0; first < rows; first += kStreamChunk) {
            const int some = rows - first < kStreamChunk ? rows - first : kStreamChunk, vectors = panel_vectors(m, p);
            multiply(m, p, in, first, some, scratch.sums[0]);
            for (int r = 0; r < some; ++r)
                for (int v = 0; v < vectors; ++v)
                    write(first + r, panel_column(m, p) + v * kWidth,
                          load(scratch.sums[0] + (r * vectors + v) * kWidth));
        }
}

}  // namespace elman::ELMAN_ISA
