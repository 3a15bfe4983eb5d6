#include "attend_kernel.hpp"

#include <cmath>

#include "attention_scores.hpp"
#include "barrier.hpp"
#include "products.hpp"

namespace elman::ELMAN_ISA {
namespace {

// How well query q fits the places of a source.
void scores_of(const AttendNetwork& network, const float* q, const float* keys, Index size, int places, float* scores) {
    float scale = network.scale;
    if (network.score == Score::cosine) {
        const float length = std::sqrt(dot(q, q, size));
        scale /= length > 1e-12f ? length : 1e-12f;
    }
    for (int s = 0; s < places; ++s) {
        const float* k = keys + s * size;
        if (network.score == Score::location) scores[s] = s < network.query_size ? q[s] : -__builtin_inff();
        else if (network.score == Score::additive) scores[s] = additive_score(q, k, network.v, size);
        else scores[s] = scale * dot(q, k, size);
    }
}

void softmax(float* scores, int places) {
    float top = scores[0], sum = 0;
    for (int s = 1; s < places; ++s) top = scores[s] > top ? scores[s] : top;
    for (int s = 0; s < places; ++s) sum += scores[s] = std::exp(scores[s] - top);
    for (int s = 0; s < places; ++s) scores[s] /= sum;
}

// context = Σ weight_s m_s
void mix(const float* weights, const float* states, Index size, int places, float* context) {
    std::memset(context, 0, static_cast<std::size_t>(size) * sizeof(float));
    for (int s = 0; s < places; ++s) add_multiple(weights[s], states + s * size, size, context);
}

}  // namespace

// Puts the state h of each row (R x h_stride) in its place, and where there are `ids` the vector of its token. The
// caller waits.
void join_rows(const StreamNetwork& stream, const AttendNetwork& network, const AttendWork& work, const int* ids,
               const float* h, Index h_stride, int index, int count) {
    for (int row = index; row < work.rows; row += count) {
        float* to = work.joined + row * network.stride;
        if (ids) copy_token(stream, ids[row], to + network.token);
        std::memcpy(to + network.state, h + row * h_stride, static_cast<std::size_t>(stream.output) * sizeof(float));
    }
}

// Each row attends with the state that stands in it. Every thread of a region calls this, all rows being there; the
// caller waits before it reads the contexts.
void attend(const AttendNetwork& network, const AttendWork& work, int index, int count) {
    const Memory& memory = *work.memory;
    const float* queries = work.joined + network.state;
    Index stride = network.stride;
    if (network.query) {
        const float* from = work.joined + (network.sees_token ? network.token : network.state);
        const Rows in = rows_for(network.query, from, network.stride, work.rows, work.scratch[index], 0);
        stride = padded_units(network.query);
        const auto write = [&](int row, Index unit, Vector<float> sum) {
            if (network.query_bias) sum += load(network.query_bias + unit);
            store(work.queries + row * stride + unit, sum);
        };
        product(network.query, in, work.rows, work.scratch[index], index, count, write);
        work.barrier->wait(count);
        queries = work.queries;
    }
    for (int row = index; row < work.rows; row += count) {
        const Index source = work.owners[row];
        const int places = memory.lengths[source];
        float* weights = work.weights + static_cast<Index>(row) * memory.places;
        const float* keys = memory.keys + source * memory.places * memory.key_size;
        scores_of(network, queries + row * stride, keys, memory.key_size, places, weights);
        softmax(weights, places);
        for (int s = places; s < memory.places; ++s) weights[s] = 0;
        mix(weights, memory.states + source * memory.places * memory.state_size, memory.state_size, places,
            work.joined + row * network.stride + network.context);
    }
}

}  // namespace elman::ELMAN_ISA
