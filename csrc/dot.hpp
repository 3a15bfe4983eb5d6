// Products of bytes: the one place where instruction sets are spelled out.
//
// Weights are signed, -127 ... 127. Activations are 7-bit numbers, -63 ... 63, kept as unsigned bytes with 64 added. A
// register of weights holds four consecutive numbers of each of its units; they meet four activations, the same for all
// units, and the four products are added to the unit's 32-bit sum. What the 64 adds, 64 times the sum of the unit's
// weights, is taken off once for each product of a row. No step can saturate, so the sums are exact and the same
// everywhere:
//   - AVX2 adds two products with saturation at 32767, and they are at most 2 * 127 * 127 = 32258;
//   - AVX-512 VNNI adds four at once in 32 bits;
//   - elsewhere bytes are widened in place to 16 bits, where two products fit for the same reason.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "simd.hpp"

namespace elman::ELMAN_ISA {

using Integers = Lanes<float>::Integers;

constexpr int kLargestByte = 63, kOffset = 64;

ELMAN_INLINE Integers load_integers(const void* from) {
    Integers v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

// The same four activations for every unit of a register.
ELMAN_INLINE Integers four(const std::uint8_t* x) {
    std::int32_t packed;
    std::memcpy(&packed, x, sizeof packed);
    return Integers{} + packed;
}

ELMAN_INLINE Integers add_products(Integers sum, Integers weights, Integers x) {
#if defined(__AVX512VNNI__)
    return (Integers)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)x, (__m512i)weights);
#elif defined(__AVX2__)
    const __m256i pairs = _mm256_maddubs_epi16((__m256i)x, (__m256i)weights);
    return sum + (Integers)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
#else
    typedef std::int16_t Halves __attribute__((vector_size(kVectorBytes)));
    const Halves even = ((Halves)weights << 8) >> 8, odd = (Halves)weights >> 8;
    const Halves even_x = (Halves)(x & 0x00FF00FF), odd_x = (Halves)((x >> 8) & 0x00FF00FF);
    const Integers pairs = (Integers)(even * even_x + odd * odd_x);
    return sum + ((pairs << 16) >> 16) + (pairs >> 16);
#endif
}

}  // namespace elman::ELMAN_ISA
