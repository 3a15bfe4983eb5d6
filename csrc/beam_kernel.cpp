#include "beam_kernel.hpp"

#include "simd.hpp"

namespace elman::ELMAN_ISA {
namespace {

constexpr int W = kLanes<float>, kTogether = 4;
using Integers = Lanes<float>::Integers;

// Whether all lanes are -1.
ELMAN_INLINE bool all_true(Integers mask) {
    typedef std::int64_t Wide __attribute__((vector_size(kVectorBytes)));
    const Wide wide = (Wide)mask;
    std::int64_t every_lane = wide[0];
#pragma GCC unroll 8
    for (int lane = 1; lane < kVectorBytes / 8; ++lane) every_lane &= wide[lane];
    return every_lane == -1;
}

// The best of one sentence so far.
struct Ranking {
    const Continuations& c;
    double* top;
    std::int64_t *parents, *tokens;
    double least() const { return top[c.best - 1]; }

    // Among equals the one that came first stays before. A NaN goes to the top and stays there: the caller will find
    // it.
    void offer(double score, Index parent, Index token) {
        if (score <= least() || top[0] != top[0]) return;
        Index place = score == score ? c.best - 1 : 0;
        for (; place > 0 && score > top[place - 1]; --place) {
            top[place] = top[place - 1];
            parents[place] = parents[place - 1];
            tokens[place] = tokens[place - 1];
        }
        top[place] = score;
        parents[place] = parent;
        tokens[place] = token;
    }
};

void rank(Ranking& ranking, Index n) {
    const Continuations& c = ranking.c;
    const float* from = c.log_probs + n * c.size;
    const double before = c.running[n];
    Index id = 0;
    const auto offer = [&](Index end) {
        for (; id < end; ++id) ranking.offer(before + static_cast<double>(from[id]), n, id);
    };
    while (id + kTogether * W <= c.size) {
        // As float: a number above the bound is never below what the bound is rounded to.
        const Vector<float> bound = every(static_cast<float>(ranking.least() - before));
        Integers below = load(from + id) < bound;
#pragma GCC unroll 4
        for (int i = 1; i < kTogether; ++i) below &= load(from + id + i * W) < bound;
        if (all_true(below)) id += kTogether * W;
        else offer(id + kTogether * W);
    }
    offer(c.size);
}

}  // namespace

// The best continuations of sentences `begin` ... `end` - 1.
void best_continuations(const Continuations& c, Index begin, Index end) {
    for (Index b = begin; b < end; ++b) {
        Ranking ranking{c, c.top + b * c.best, c.parents + b * c.best, c.tokens + b * c.best};
        for (Index k = 0; k < c.best; ++k) {
            ranking.top[k] = -__builtin_inf();
            ranking.parents[k] = c.first[b];  // which must exist, whatever it is worth
            ranking.tokens[k] = 0;
        }
        for (Index n = c.first[b]; n < c.first[b + 1]; ++n) rank(ranking, n);
    }
}

}  // namespace elman::ELMAN_ISA
