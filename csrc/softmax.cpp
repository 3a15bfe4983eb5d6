// From a row of logits to weights: the parts of sampling and scoring that go over a whole vocabulary.
//
// Rows are padded to whole registers, logits with -inf.
#include "dot.hpp"
#include "stream.hpp"

namespace elman::ELMAN_ISA {
namespace {

// e^x to the last places also where it is tiny, and 0 below e^-708. For x <= 0.
ELMAN_INLINE Vector<double> exponential(Vector<double> x) {
    const Vector<double> least = every(-708.0);
    const Vector<double> bounded = x < least ? least : x;
    const double magic = 6755399441055744.0 + 1023.0;
    const Vector<double> shifted = bounded * 1.4426950408889634 + magic, n = shifted - magic;
    const Vector<double> power = (Vector<double>)((Lanes<double>::Integers)shifted << 52);
    const Vector<double> rest = (bounded - n * 6.93145751953125e-1) - n * 1.42860682030941723212e-6;
    return x < least ? Vector<double>{} : power + power * exp_minus_1(rest);
}

template <class T>
ELMAN_INLINE T largest(Vector<T> of) {
    T top = of[0];
    for (int lane = 1; lane < kLanes<T>; ++lane) top = of[lane] > top ? of[lane] : top;
    return top;
}

}  // namespace

// The largest logit and the sum of exp(logit - largest); not finite where a logit is a NaN or +inf.
LogSum log_sum(const float* logits, long padded) {
    constexpr int W = kLanes<float>;
    Vector<float> top = load(logits);
    for (long i = W; i < padded; i += W) {
        const Vector<float> x = load(logits + i);
        top = x > top ? x : top;
    }
    const float most = largest<float>(top);
    double total = 0;
    for (long i = 0; i < padded;) {  // a block at a time: single precision would lose digits over a whole vocabulary
        const long end = i + 64 * W < padded ? i + 64 * W : padded;
        Vector<float> sum = {};
        for (; i < end; i += W) {
            const Vector<float> x = load(logits + i) - most;
            sum += x != x ? x : exp_minus_1(x) + 1.0f;
        }
        for (int lane = 0; lane < W; ++lane) total += static_cast<double>(sum[lane]);
    }
    return {static_cast<double>(most), total};
}

// The logits as float64; gives the largest, or a NaN if any of them is one.
double widen(const float* logits, long padded, double* to) {
    constexpr int W = kLanes<double>;
    typedef float Half __attribute__((vector_size(kVectorBytes / 2)));
    Vector<double> top = every(-__builtin_inf()), bad = {};
    for (long i = 0; i < padded; i += W) {
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
void cool(double* z, long padded, double top, double temperature) {
    constexpr int W = kLanes<double>;
    for (long i = 0; i < padded; i += W) store(z + i, (load(z + i) - top) / temperature);
}

// w = exp(z), for z <= 0
void weigh(const double* z, long padded, double* w) {
    constexpr int W = kLanes<double>;
    for (long i = 0; i < padded; i += W) store(w + i, exponential(load(z + i)));
}

}  // namespace elman::ELMAN_ISA
