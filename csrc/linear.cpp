// y = W x + b for a few rows x: what one step of a search over one sentence asks for.
//
// Such a product is as fast as its matrix can be read, so W is read once, as it lies, by whole rows.
#include "linear.hpp"

#include "simd.hpp"

namespace elman::ELMAN_ISA {
namespace {

constexpr int kColumns = 2;  // rows of W side by side, for each row of x a sum in a register

template <int R>
void columns_of(const Linear& l, const float* x, float* y, long begin, long end) {
    constexpr int W = kLanes<float>;
    for (long n = begin; n < end; n += kColumns) {
        const int columns = end - n < kColumns ? 1 : kColumns;
        const float* w[kColumns] = {l.weight + n * l.size, l.weight + (n + columns - 1) * l.size};
        Vector<float> sum[R][kColumns] = {};
        const auto add = [&](long k, int lanes) __attribute__((always_inline)) {
            const Vector<float> first = load_some(w[0] + k, lanes), second = load_some(w[1] + k, lanes);
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) {
                const Vector<float> each = load_some(x + r * l.size + k, lanes);
                sum[r][0] += first * each;
                sum[r][1] += second * each;
            }
        };
        const long whole = l.size / W * W;
        for (long k = 0; k < whole; k += W) add(k, W);
        if (whole < l.size) add(whole, static_cast<int>(l.size - whole));
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r)
            for (int c = 0; c < columns; ++c)
                y[r * l.units + n + c] = sum_of(sum[r][c]) + (l.bias ? l.bias[n + c] : 0.0f);
    }
}

template <int R>
void rows_of(const Linear& l, int rows, const float* x, float* y, long begin, long end) {
    if (rows == R) columns_of<R>(l, x, y, begin, end);
    else if constexpr (R > 1) rows_of<R - 1>(l, rows, x, y, begin, end);
}

}  // namespace

// Units `begin` ... `end` - 1 of all rows.
void linear(const Linear& l, long begin, long end) {
    constexpr int most = 6;
    const long tiles = (l.rows + most - 1) / most;
    for (long i = 0; i < tiles; ++i) {  // tiles as equal as can be
        const long first = l.rows * i / tiles, last = l.rows * (i + 1) / tiles;
        rows_of<most>(l, static_cast<int>(last - first), l.x + first * l.size, l.y + first * l.units, begin, end);
    }
}

}  // namespace elman::ELMAN_ISA
