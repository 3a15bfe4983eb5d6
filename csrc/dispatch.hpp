// The same kernels for several instruction sets, and the choice among them.
#pragma once

#include <string>
#include <vector>

#include "attention.hpp"
#include "continuations.hpp"
#include "encode.hpp"
#include "look.hpp"
#include "recurrence.hpp"
#include "stream.hpp"

namespace elman {

struct Kernels {
    const char* name;
    void (*forward_float)(const Layer<float>&);
    void (*forward_double)(const Layer<double>&);
    void (*backward_float)(const Layer<float>&);
    void (*backward_double)(const Layer<double>&);
    double (*surprise)(float* row, Index size, Index target, double smoothing);  // see softmax.cpp
    // Streaming: see stream.cpp and softmax.cpp
    int lanes;  // float32 numbers in a register
    void (*stream_step)(const StreamNetwork&, const StreamWork&, int index, int count);
    void (*stream_logits)(const StreamNetwork&, const StreamWork&, const float* top, Index stride, int rows, float* logits,
                          int index, int count);
    LogSum (*log_sum)(const float* logits, Index padded);
    double (*widen)(const float* logits, Index padded, double* to);
    void (*cool)(double* z, Index padded, double top, double temperature);
    void (*weigh)(const double* z, Index padded, double* w);
    // Whole texts: see encode.cpp
    void (*encode)(const EncoderNetwork&, const EncoderWork&, int index, int count);
    // Translators: see attention.cpp, look.cpp and continuations.cpp
    void (*additive)(const Additive&, bool backward, Index begin, Index end, int thread);
    void (*mixture)(const Mixture&, bool backward, Index begin, Index end);
    void (*place)(const StreamNetwork&, const LookNetwork&, const LookWork&, const int* ids, const float* h, Index h_stride,
                  int index, int count);
    void (*look)(const LookNetwork&, const LookWork&, int index, int count);
    void (*continue_best)(const Continuations&, Index begin, Index end);
};

// What this processor can run, the lowest first.
std::vector<std::string> instruction_sets();

// The kernels in use: the highest set, or the one chosen by name. `use` throws std::invalid_argument for one that is not there.
const Kernels& kernels();
void use(const std::string& name);

// Memory that starts at a cache line; throws std::bad_alloc.
void* allocate(Index bytes);
void release(void* memory);

}  // namespace elman
