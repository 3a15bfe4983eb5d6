// The kernels, compiled once for each instruction set, and the choice among them.
//
// To add a kernel: write it in a file *_kernel.cpp, in the namespace elman::ELMAN_ISA (the build finds the file by its
// name), and add its line to ELMAN_KERNELS below. Kernels are called as kernels().name(...).
#pragma once

#include <string>
#include <vector>

#include "attend_kernel.hpp"
#include "attention_kernel.hpp"
#include "beam_kernel.hpp"
#include "cache_kernel.hpp"
#include "embed_kernel.hpp"
#include "encoder_kernel.hpp"
#include "engine_kernel.hpp"
#include "recurrence_kernel.hpp"

namespace elman {

// KERNEL(result, name, parameters), by the file in which it is.
// clang-format off
#define ELMAN_KERNELS(KERNEL)                                                                                         \
    /* forward_kernel.cpp, backward_kernel.cpp */                                                                     \
    KERNEL(void, forward_float, (const Layer<float>&))                                                                \
    KERNEL(void, forward_double, (const Layer<double>&))                                                              \
    KERNEL(void, backward_float, (const Layer<float>&))                                                               \
    KERNEL(void, backward_double, (const Layer<double>&))                                                             \
    /* softmax_kernel.cpp; it has the lanes too, how many float32 numbers are in a register */                        \
    KERNEL(double, cross_entropy, (float* row, Index size, Index target, double smoothing))                           \
    KERNEL(LogSum, log_sum, (const float* logits, Index padded))                                                      \
    KERNEL(double, to_double, (const float* logits, Index padded, double* to))                                        \
    KERNEL(void, apply_temperature, (double* z, Index padded, double top, double temperature))                        \
    KERNEL(void, exponentials, (const double* z, Index padded, double* w))                                            \
    /* engine_kernel.cpp */                                                                                           \
    KERNEL(void, stream_step, (const StreamNetwork&, const StreamWork&, int index, int count))                        \
    KERNEL(void, stream_logits, (const StreamNetwork&, const StreamWork&, const float* top, Index stride, int rows,   \
                                 float* logits, int index, int count))                                                \
    /* encoder_kernel.cpp */                                                                                          \
    KERNEL(void, encode, (const EncoderNetwork&, const EncoderWork&, int index, int count))                           \
    KERNEL(void, first_gates, (const EncoderNetwork&, const EncoderWork&, int index, int count))                      \
    /* attention_kernel.cpp */                                                                                        \
    KERNEL(void, additive_scores, (const AdditiveScores&, bool backward, Index begin, Index end, int thread))         \
    KERNEL(void, contexts, (const Contexts&, bool backward, Index begin, Index end))                                  \
    /* attend_kernel.cpp */                                                                                           \
    KERNEL(void, join_rows, (const StreamNetwork&, const AttendNetwork&, const AttendWork&, const int* ids,           \
                             const float* h, Index h_stride, int index, int count))                                   \
    KERNEL(void, attend, (const AttendNetwork&, const AttendWork&, int index, int count))                             \
    /* beam_kernel.cpp */                                                                                             \
    KERNEL(void, best_continuations, (const Continuations&, Index begin, Index end))                                  \
    /* cache_kernel.cpp */                                                                                            \
    KERNEL(void, cache_shares, (const CacheShares&, Index begin, Index end))                                          \
    /* embed_kernel.cpp */                                                                                            \
    KERNEL(void, embed, (const EmbedNetwork&, const EmbedWork&, const int* ids, Index count, float rate,              \
                         std::uint64_t seed, EmbedSeen&))
// clang-format on

// The kernels for one instruction set.
struct Kernels {
    const char* name;
    int lanes;  // float32 numbers in a register
#define ELMAN_MEMBER(result, name, parameters) result(*name) parameters;
    ELMAN_KERNELS(ELMAN_MEMBER)
#undef ELMAN_MEMBER
};

// What this processor can run, the lowest first.
std::vector<std::string> instruction_sets();

// The kernels in use: the highest set, or the one chosen by name. `use` throws std::invalid_argument for one that is
// not there.
const Kernels& kernels();
void use(const std::string& name);

// Memory that starts at a cache line; throws std::bad_alloc.
void* allocate(Index bytes);
void release(void* memory);

}  // namespace elman
