// Products of int8 numbers: the one place where instruction sets are spelled out.
//
// Both factors lie in -127 ... 127. A register of weights holds four consecutive numbers of each of its units; they meet four
// activations, the same for all units, and the four products are added to the unit's 32-bit sum. The sums are exact:
//   - AVX2 multiplies unsigned by signed bytes and adds pairs with saturation at 32767. It gets |x| and w * sign(x), so
//     that a pair is at most 2 * 127 * 127 = 32258.
//   - AVX-512 VNNI multiplies unsigned by signed bytes and adds four without saturation. It gets x + 128; the surplus,
//     128 times the sum of the weights, is taken off beforehand (kSurplus).
//   - Elsewhere bytes are widened in place to 16 bits; a pair of products fits for the same reason.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "simd.hpp"

namespace elman::ELMAN_ISA {

using Integers = Lanes<float>::Integers;

ELMAN_INLINE Integers load_bytes(const std::int8_t* from) {
    Integers v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

// Four activations, ready to be multiplied.
struct Four {
    Integers first, second;
};

#if defined(__AVX512VNNI__)

constexpr int kSurplus = 128;

ELMAN_INLINE Four four(const std::int8_t* x) {
    std::int32_t packed;
    std::memcpy(&packed, x, sizeof packed);
    return {Integers{} + static_cast<std::int32_t>(static_cast<std::uint32_t>(packed) ^ 0x80808080u), Integers{}};
}

ELMAN_INLINE Integers add_products(Integers sum, Integers weights, const Four& x) {
    return (Integers)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)x.first, (__m512i)weights);
}

#elif defined(__AVX2__)

constexpr int kSurplus = 0;

ELMAN_INLINE Four four(const std::int8_t* x) {
    std::int32_t packed;
    std::memcpy(&packed, x, sizeof packed);
    const __m256i signs = _mm256_set1_epi32(packed);
    return {(Integers)signs, (Integers)_mm256_abs_epi8(signs)};
}

ELMAN_INLINE Integers add_products(Integers sum, Integers weights, const Four& x) {
    const __m256i pairs = _mm256_maddubs_epi16((__m256i)x.second, _mm256_sign_epi8((__m256i)weights, (__m256i)x.first));
    return sum + (Integers)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

#else

constexpr int kSurplus = 0;
typedef std::int16_t Halves __attribute__((vector_size(kVectorBytes)));

ELMAN_INLINE Four four(const std::int8_t* x) {  // as 16-bit numbers: the first and third, the second and fourth
    const auto pair = [](int low, int high) { return Integers{} + ((low & 0xFFFF) | high * 65536); };
    return {pair(x[0], x[2]), pair(x[1], x[3])};
}

ELMAN_INLINE Integers add_products(Integers sum, Integers weights, const Four& x) {
    const Halves halves = (Halves)weights;
    const Halves even = (halves << 8) >> 8, odd = halves >> 8;
    const Integers pairs = (Integers)(even * (Halves)x.first + odd * (Halves)x.second);
    return sum + ((pairs << 16) >> 16) + (pairs >> 16);
}

#endif

}  // namespace elman::ELMAN_ISA
