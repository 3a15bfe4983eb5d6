// Vectors of numbers in the compiler's own vector types: one source for every instruction set.
//
// A file that includes this one is compiled several times, each time with other flags (see CMakeLists.txt), and all
// that it defines lies in the namespace ELMAN_ISA. Keep standard containers and algorithms out of such files: their
// inline functions would be compiled for the newest instruction set and shared with the oldest.
#pragma once

#include <cstdint>
#include <cstring>

#include "index.hpp"

#ifndef ELMAN_ISA
#define ELMAN_ISA baseline
#endif

#define ELMAN_INLINE inline __attribute__((always_inline))

namespace elman::ELMAN_ISA {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64, kRegisters = 32;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32, kRegisters = 16;
#elif defined(__aarch64__)
constexpr int kVectorBytes = 16, kRegisters = 32;
#else
constexpr int kVectorBytes = 16, kRegisters = 16;
#endif

template <class T>
struct Lanes;  // T: a number; Bits: the integer of its size; Vector, Integers: a register full of them

template <>
struct Lanes<float> {
    using Bits = std::int32_t;
    typedef float Vector __attribute__((vector_size(kVectorBytes)));
    typedef std::int32_t Integers __attribute__((vector_size(kVectorBytes)));
};

template <>
struct Lanes<double> {
    using Bits = std::int64_t;
    typedef double Vector __attribute__((vector_size(kVectorBytes)));
    typedef std::int64_t Integers __attribute__((vector_size(kVectorBytes)));
};

template <class T>
using Vector = typename Lanes<T>::Vector;

template <class T>
constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

template <class T>
ELMAN_INLINE Vector<T> load(const T* from) {
    Vector<T> v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

template <class T>
ELMAN_INLINE void store(T* to, Vector<T> v) {
    std::memcpy(to, &v, sizeof v);
}

// Copies `count` numbers, fewer than a register holds, in at most one move for each power of two.
template <class T, int kSize = kLanes<T> / 2>
ELMAN_INLINE void copy_some(char* to, const char* from, int count) {
    if constexpr (kSize > 0) {
        constexpr int bytes = kSize * static_cast<int>(sizeof(T));
        if (count & kSize) {
            std::memcpy(to, from, bytes);
            to += bytes;
            from += bytes;
        }
        copy_some<T, kSize / 2>(to, from, count);
    }
}

template <class T>
ELMAN_INLINE Vector<T> every(T value) {
    return value - Vector<T>{};
}

// The first `count` lanes; the others are `other`, and are not stored. `count` of a whole register is the quick case.
template <class T>
ELMAN_INLINE Vector<T> load_some(const T* from, int count, T other = 0) {
    if (count == kLanes<T>) return load(from);
    Vector<T> v = every(other);
    copy_some<T>(reinterpret_cast<char*>(&v), reinterpret_cast<const char*>(from), count);
    return v;
}

template <class T>
ELMAN_INLINE void store_some(T* to, Vector<T> v, int count) {
    if (count == kLanes<T>) return store(to, v);
    copy_some<T>(reinterpret_cast<char*>(to), reinterpret_cast<const char*>(&v), count);
}

// each(i, lanes) for every register of a vector: whole ones, then what is left.
template <class Each>
ELMAN_INLINE void registers(Index size, Each each) {
    constexpr int W = kLanes<float>;
    const Index whole = size / W * W;
    for (Index i = 0; i < whole; i += W) each(i, W);
    if (whole < size) each(whole, static_cast<int>(size - whole));
}

template <class T>
ELMAN_INLINE T largest(Vector<T> of) {
    T top = of[0];
    for (int lane = 1; lane < kLanes<T>; ++lane) top = of[lane] > top ? of[lane] : top;
    return top;
}

// The sum of all lanes, the halves added to each other until one is left.
ELMAN_INLINE float sum_of(Vector<float> v) {
    float lanes[kLanes<float>];
    store(lanes, v);
#pragma GCC unroll 4
    for (int half = kLanes<float> / 2; half > 0; half /= 2)
#pragma GCC unroll 8
        for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
    return lanes[0];
}

// e^x = power (1 + rest): with x = n log 2 + r and |r| <= log(2)/2, these are 2^n and e^r - 1.
template <class V>
struct Exponential {
    V power, rest;
};

ELMAN_INLINE Exponential<Vector<float>> exponential_of(Vector<float> x) {
    const Vector<float> most = every(88.0f);
    x = x > most ? most : x;
    x = x < -most ? -most : x;
    const float magic = 12582912.0f + 127.0f;  // 1.5 * 2^23 rounds to whole numbers, 127 is the exponent's offset
    const Vector<float> shifted = x * 1.44269504f + magic;
    const Vector<float> n = shifted - magic;
    const Vector<float> r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    Vector<float> p = every(1.392621347e-3f);  // (e^r - 1 - r) / r^2, its best polynomial of degree 4: 2e-8
    p = p * r + 8.363202972e-3f;
    p = p * r + 4.166655444e-2f;
    p = p * r + 1.666657685e-1f;
    p = p * r + 0.5f;
    return {(Vector<float>)((Lanes<float>::Integers)shifted << 23), p * (r * r) + r};
}

ELMAN_INLINE Exponential<Vector<double>> exponential_of(Vector<double> x) {
    const Vector<double> most = every(708.0);
    x = x > most ? most : x;
    x = x < -most ? -most : x;
    const double magic = 6755399441055744.0 + 1023.0;
    const Vector<double> shifted = x * 1.4426950408889634 + magic;
    const Vector<double> n = shifted - magic;
    const Vector<double> r = (x - n * 6.93145751953125e-1) - n * 1.42860682030941723212e-6;
    Vector<double> p = every(1.0 / 6227020800);
    p = p * r + 1.0 / 479001600;
    p = p * r + 1.0 / 39916800;
    p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    return {(Vector<double>)((Lanes<double>::Integers)shifted << 52), p * (r * r) + r};
}

// e^x for x from -87 to 88 (doubles: -708 to 708), to the last places also where it is tiny.
template <class V>
ELMAN_INLINE V exponential(V x) {
    const auto [power, rest] = exponential_of(x);
    return power + power * rest;
}

// e^x for x <= 0; 0 where it is so small that it would be a number of fewer digits, or soon become one, which is slow.
template <class V>
ELMAN_INLINE V exponential_or_zero(V x) {
    return x < (sizeof(x[0]) == sizeof(float) ? -64 : -708) ? V{} : exponential(x);
}

// e^x - 1, to the last places also where x is tiny.
template <class V>
ELMAN_INLINE V exp_minus_1(V x) {
    const auto [power, rest] = exponential_of(x);
    return power * rest + (power - 1);
}

// Where the exponential stops growing the logistic is 0, as it would be of an infinity.
template <class V>
ELMAN_INLINE V logistic(V x) {
    const V y = 1 / (2 + exp_minus_1(-x));
    return x <= (sizeof(x[0]) == sizeof(float) ? -88 : -708) ? V{} : y;
}

template <class V>
ELMAN_INLINE V hyperbolic_tangent(V x) {
    const V e = exp_minus_1(2 * x);
    return e / (e + 2);
}

}  // namespace elman::ELMAN_ISA
