// From a row of logits to weights: the parts of sampling, scoring and training that go over a whole vocabulary.
//
// But for training, rows are padded to whole registers, logits with -inf.
#include <cmath>

#include "dot.hpp"
#include "engine_kernel.hpp"

namespace elman::ELMAN_ISA {

// How wide the vectors are that the weights have to be packed for: the compiler's flags decide, whatever the set's
// name.
extern const int lanes = kLanes<float>;

namespace {

constexpr Index kBlock = 64;  // registers whose sum single precision can hold without losing digits

}  // namespace

// The loss of one row: what its target costs, the share `smoothing` of it spread over all words. The logits become the
// gradient of the loss; all that while the row is in the cache.
double cross_entropy(float* row, Index size, Index target, double smoothing) {
    constexpr int W = kLanes<float>;
    constexpr float least = -__builtin_inff();
    Vector<float> top = every(least);
    registers(size, [&](Index i, int n) __attribute__((always_inline)) {
        const Vector<float> x = load_some(row + i, n, least);
        top = x > top ? x : top;
    });
    const float most = largest<float>(top), wanted = row[target] - most;
    double total = 0, below = 0;  // of the exponentials, and of the logits less the largest
    for (Index begin = 0; begin < size; begin += kBlock * W) {
        float* from = row + begin;
        Vector<float> sum = {}, difference = {};
        registers(size - begin < kBlock * W ? size - begin : kBlock * W,
                  [&](Index i, int n) __attribute__((always_inline)) {
                      const Vector<float> e = exponential_or_zero(load_some(from + i, n, least) - most);
                      difference += load_some(from + i, n, most) - most;
                      sum += e;
                      store_some(from + i, e, n);
                  });
        total += static_cast<double>(sum_of(sum));
        below += static_cast<double>(sum_of(difference));
    }
    const double even = smoothing / static_cast<double>(size);
    const auto factor = static_cast<float>(1 / total), less = static_cast<float>(even);
    registers(size, [&](Index i, int n) __attribute__((always_inline)) {
        store_some(row + i, load_some(row + i, n) * factor - less, n);
    });
    row[target] -= static_cast<float>(1 - smoothing);
    return std::log(total) - (1 - smoothing) * static_cast<double>(wanted) - (smoothing > 0 ? even * below : 0);
}

// The largest logit and the sum of exp(logit - largest); not finite where a logit is a NaN or +inf.
LogSum log_sum(const float* logits, Index padded) {
    constexpr int W = kLanes<float>;
    Vector<float> top = load(logits);
    for (Index i = W; i < padded; i += W) {
        const Vector<float> x = load(logits + i);
        top = x > top ? x : top;
    }
    const float most = largest<float>(top);
    double total = 0;
    for (Index i = 0; i < padded;) {  // a block at a time: single precision would lose digits over a whole vocabulary
        const Index end = i + kBlock * W < padded ? i + kBlock * W : padded;
        Vector<float> sum = {};
        for (; i < end; i += W) {
            sum += exponential_or_zero(load(logits + i) - most);
        }
        for (int lane = 0; lane < W; ++lane) total += static_cast<double>(sum[lane]);
    }
    return {static_cast<double>(most), total};
}

// The logits as float64; gives the largest, or a NaN if any of them is one.
double to_double(const float* logits, Index padded, double* to) {
    constexpr int W = kLanes<double>;
    typedef float Half __attribute__((vector_size(kVectorBytes / 2)));
    Vector<double> top = every(-__builtin_inf()), bad = {};
    for (Index i = 0; i < padded; i += W) {
        Half narrow;
        std::memcpy(&narrow, logits + i, sizeof narrow);
        const Vector<double> x = __builtin_convertvector(narrow, Vector<double>);
        top = x > top ? x : top;
        bad = x != x ? x : bad;
        store(to + i, x);
    }
    double poison = 0;
    for (int lane = 0; lane < W; ++lane) poison += bad[lane];
    return largest<double>(top) + poison;
}

// z becomes (z - top) / temperature
void apply_temperature(double* z, Index padded, double top, double temperature) {
    constexpr int W = kLanes<double>;
    for (Index i = 0; i < padded; i += W) store(z + i, (load(z + i) - top) / temperature);
}

// w = exp(z), for z <= 0
void exponentials(const double* z, Index padded, double* w) {
    constexpr int W = kLanes<double>;
    for (Index i = 0; i < padded; i += W) store(w + i, exponential_or_zero(load(z + i)));
}

}  // namespace elman::ELMAN_ISA
