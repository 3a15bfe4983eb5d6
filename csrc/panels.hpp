// The product of a few rows with a matrix that was packed once and is used many times.
//
// A packed matrix (K x N) is cut into panels of up to four registers of columns; a panel holds, for k = 0 ... K-1, its
// columns side by side. A tile of the product, R rows by V registers, is summed up without leaving the registers.
//
//      N columns                     a panel, V = 2 registers wide
//   K  ┌────┬────┬──┐                k = 0: ████ ████
//      │ p0 │ p1 │p2│      ->        k = 1: ████ ████   ...
//      └────┴────┴──┘
#pragma once

#include "simd.hpp"

namespace elman::ELMAN_ISA {

constexpr int kMostVectors = 4;  // of a panel
constexpr int kDepth = 256;      // steps of K at a time: so much of a panel stays in the first-level cache
constexpr int kChunk = 48;       // rows at a time: so many rows' sums do too

// Part `index` of `count`, all as equal as can be.
struct Range {
    int begin, end;
};

ELMAN_INLINE Range share_of(int total, int index, int count) {
    return {static_cast<int>(static_cast<Index>(total) * index / count),
            static_cast<int>(static_cast<Index>(total) * (index + 1) / count)};
}

// The i-th of `count` panels. Every other time they are gone through from the end: those used last are still in the
// cache.
struct Turn {
    bool back = false;
    int operator()(int i, int count) const { return back ? count - 1 - i : i; }
};

// Rows of a tile whose panel is V registers wide: as many as fit. Besides the sums there are, in turn, all rows'
// numbers and one column, or all columns and one row's number, whichever are fewer.
constexpr int tile_rows(int vectors) {
    int rows = 1;
    for (int more = 2; more <= 12; ++more)
        if (more * vectors + (more < vectors ? more : vectors) + 1 <= kRegisters) rows = more;
    return rows;
}

template <class T, int R, int V>
ELMAN_INLINE void tile(const T* a, Index stride, const T* panel, int depth, T* sums, bool first) {
    constexpr int W = kLanes<T>;
    Vector<T> sum[R][V];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) sum[r][v] = first ? Vector<T>{} : load(sums + (r * V + v) * W);
    for (int k = 0; k < depth; ++k, panel += V * W) {
        if constexpr (R < V) {
            Vector<T> x[R];
#pragma GCC unroll 16
            for (int r = 0; r < R; ++r) x[r] = every(a[r * stride + k]);
#pragma GCC unroll 4
            for (int v = 0; v < V; ++v) {
                const Vector<T> column = load(panel + v * W);
#pragma GCC unroll 16
                for (int r = 0; r < R; ++r) sum[r][v] += x[r] * column;
            }
        } else {
            Vector<T> column[V];
#pragma GCC unroll 4
            for (int v = 0; v < V; ++v) column[v] = load(panel + v * W);
#pragma GCC unroll 16
            for (int r = 0; r < R; ++r) {
                const Vector<T> x = every(a[r * stride + k]);
#pragma GCC unroll 4
                for (int v = 0; v < V; ++v) sum[r][v] += x * column[v];
            }
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) store(sums + (r * V + v) * W, sum[r][v]);
}

// `rows` is known only now, R at compile time: go down from the largest tile to the one that fits.
template <class T, int R, int V>
ELMAN_INLINE void tile_of(int rows, const T* a, Index stride, const T* panel, int depth, T* sums, bool first) {
    if (rows == R) {
        tile<T, R, V>(a, stride, panel, depth, sums, first);
    } else if constexpr (R > 1) {
        tile_of<T, R - 1, V>(rows, a, stride, panel, depth, sums, first);
    }
}

struct Nothing {
    void operator()(int) const {}
};

// sums (rows x V registers) = a (rows x K, rows `stride` apart) times one panel; or added to what is there.
// `touch(row)` is called a little before each row is computed: to fetch what will be needed with it.
template <class T, int V, class Touch = Nothing>
void multiply_panel(const T* a, Index stride, int rows, const T* panel, int K, T* sums, bool add = false,
                    Touch touch = {}) {
    constexpr int W = kLanes<T>;
    constexpr int most = tile_rows(V);
    const int tiles = (rows + most - 1) / most;
    for (int k = 0; k < K; k += kDepth) {
        const int depth = K - k < kDepth ? K - k : kDepth;
        for (int i = 0; i < tiles; ++i) {  // tiles as equal as can be: a tile of one row would wait for its own sums
            const int begin = rows * i / tiles, end = rows * (i + 1) / tiles;  // of a chunk: small numbers
            if (k == 0)
                for (int r = begin; r < end; ++r) touch(r);
            tile_of<T, most, V>(end - begin, a + begin * stride + k, stride, panel + static_cast<Index>(k) * V * W,
                                depth, sums + begin * V * W, k == 0 && !add);
        }
    }
}

template <class T, class Touch = Nothing>
void multiply_panel(int vectors, const T* a, Index stride, int rows, const T* panel, int K, T* sums, bool add = false,
                    Touch touch = {}) {
    switch (vectors) {
        case 1: return multiply_panel<T, 1>(a, stride, rows, panel, K, sums, add, touch);
        case 2: return multiply_panel<T, 2>(a, stride, rows, panel, K, sums, add, touch);
        case 3: return multiply_panel<T, 3>(a, stride, rows, panel, K, sums, add, touch);
        default: return multiply_panel<T, 4>(a, stride, rows, panel, K, sums, add, touch);
    }
}

// Where the panels of a matrix with N columns lie: all four registers wide, but for the last.
template <class T>
struct Panels {
    static constexpr int W = kLanes<T>;
    int K, N;
    int count() const { return (N + kMostVectors * W - 1) / (kMostVectors * W); }
    int first_column(int p) const { return p * kMostVectors * W; }
    int columns(int p) const {
        const int left = N - first_column(p);
        return left < kMostVectors * W ? left : kMostVectors * W;
    }
    int vectors(int p) const { return (columns(p) + W - 1) / W; }
    Index offset(int p) const { return static_cast<Index>(first_column(p)) * K; }
    Index size() const { return (static_cast<Index>(N) + W - 1) / W * W * K; }
};

// Pack panel p of a matrix whose element (k, n) stands at from[k * row + n * column].
template <class T>
void pack_panel(const Panels<T>& shape, int p, const T* from, Index row, Index column, T* to) {
    const int columns = shape.columns(p), width = shape.vectors(p) * Panels<T>::W;
    from += shape.first_column(p) * column;
    to += shape.offset(p);
    for (int k = 0; k < shape.K; ++k, to += width) {
        for (int n = 0; n < columns; ++n) to[n] = from[k * row + n * column];
        for (int n = columns; n < width; ++n) to[n] = 0;
    }
}

}  // namespace elman::ELMAN_ISA
