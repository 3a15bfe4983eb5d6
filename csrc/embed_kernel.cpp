// Word vectors: CBOW and skip-gram (Mikolov et al. 2013) with a full softmax, negative sampling or a hierarchical one.
//
// At each place of a text, inputs x (M: the words around it; with CBOW their mean alone) are to score outputs y (N: the
// word itself and some drawn ones, the nodes above it, or all words): s = x y'. All M x N scores share the N outputs,
// so that they are one small product, and the gradients two (Ji et al. 2016).
#include "embed_kernel.hpp"

#include <cmath>
#include <utility>

#include "simd.hpp"

namespace elman::ELMAN_ISA {
namespace {

using F = Vector<float>;
constexpr int W = kLanes<float>;
constexpr int kColumns = W < kBlock ? W : kBlock;  // of a tile of scores: as many scores as a register has lanes
constexpr int kRows = W / kColumns;
constexpr int kSampled = 16;  // of so many places the loss of one is counted
constexpr float kLeast = 1e-6f;

// splitmix64 (Steele, Lea, Flood 2014).
ELMAN_INLINE std::uint64_t draw(std::uint64_t& state) {
    std::uint64_t z = (state += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

// Lanes with bit D of a, the others of b, and beside each its neighbour at distance D, added up.
template <int D, int... I>
ELMAN_INLINE F paired(F a, F b, std::integer_sequence<int, I...>) {
    return __builtin_shufflevector(a, b, ((I & D) ? W + I : I)...) +
           __builtin_shufflevector(a, b, ((I & D) ? W + (I ^ D) : (I ^ D))...);
}

// From W vectors to one whose lane i is the sum of the i-th.
template <int D = 1>
ELMAN_INLINE F sums_of(F* v) {
    if constexpr (D == W) {
        return v[0];
    } else {
#pragma GCC unroll 16
        for (int i = 0; i < W / D / 2; ++i)
            v[i] = paired<D>(v[2 * i], v[2 * i + 1], std::make_integer_sequence<int, W>());
        return sums_of<2 * D>(v);
    }
}

// Scores of a block of outputs with all inputs; rows of scores are `stride` apart, and there is room for kRows more.
template <int N>
void score_block(const float* const* x, int M, float* const* y, Index width, float* scores, Index stride) {
    for (int m = 0; m < M; m += kRows) {
        F sums[W] = {};
        const float* rows[kRows];
        for (int r = 0; r < kRows; ++r) rows[r] = x[m + r < M ? m + r : m];
        for (Index i = 0; i < width; i += W) {
            F each[N];
#pragma GCC unroll 8
            for (int n = 0; n < N; ++n) each[n] = load(y[n] + i);
#pragma GCC unroll 2
            for (int r = 0; r < kRows; ++r) {
                const F row = load(rows[r] + i);
#pragma GCC unroll 8
                for (int n = 0; n < N; ++n) sums[r * kColumns + n] += row * each[n];
            }
        }
        float found[W];
        store(found, sums_of(sums));
        for (int r = 0; r < kRows; ++r)
            std::memcpy(scores + (m + r) * stride, found + r * kColumns, kColumns * sizeof(float));
    }
}

// Adds the gradients of a block of outputs, g' x, to them, and g y to those of the inputs, which are not touched.
template <int N>
void learn_block(const float* const* x, int M, float* const* y, Index width, const float* g, Index stride, float* dx,
                 bool fresh) {
    for (Index i = 0; i < width; i += W) {
        F each[N], change[N] = {};
#pragma GCC unroll 8
        for (int n = 0; n < N; ++n) each[n] = load(y[n] + i);
        for (int m = 0; m < M; ++m) {
            const F row = load(x[m] + i);
            F sum = fresh ? F{} : load(dx + m * width + i);
#pragma GCC unroll 8
            for (int n = 0; n < N; ++n) {
                const F factor = every(g[m * stride + n]);
                sum += factor * each[n];
                change[n] += factor * row;
            }
            store(dx + m * width + i, sum);
        }
        // Read again: the same output may stand in a block twice.
#pragma GCC unroll 8
        for (int n = 0; n < N; ++n) store(y[n] + i, load(y[n] + i) + change[n]);
    }
}

template <template <int> class Do, class... Arguments>
ELMAN_INLINE void of_size(int n, Arguments... arguments) {
    switch (n) {
        case 1: return Do<1>::call(arguments...);
        case 2: return Do<2>::call(arguments...);
        case 3: return Do<3>::call(arguments...);
        case 4: return Do<4>::call(arguments...);
        default: break;
    }
    if constexpr (kColumns == 8) switch (n) {
            case 5: return Do<5>::call(arguments...);
            case 6: return Do<6>::call(arguments...);
            case 7: return Do<7>::call(arguments...);
            default: return Do<8>::call(arguments...);
        }
}

template <int N>
struct ScoreBlock {
    template <class... A>
    static void call(A... a) {
        score_block<N>(a...);
    }
};

template <int N>
struct LearnBlock {
    template <class... A>
    static void call(A... a) {
        learn_block<N>(a...);
    }
};

// Scores become rate (label - logistic(score)); returns the loss where it is asked for.
double logistic_errors(float* scores, int M, int N, Index stride, const float* labels, float rate, bool counts) {
    double loss = 0;
    for (int m = 0; m < M; ++m) {
        double product = 1;
        registers(N, [&](Index n, int lanes) {
            float* s = scores + m * stride + n;
            const F error = load_some(labels + n, lanes) - logistic(load_some(s, lanes));
            store_some(s, error * rate, lanes);
            if (counts)
                for (int lane = 0; lane < lanes; ++lane) {
                    const float right = 1 - std::fabs(error[lane]);
                    product *= right < kLeast ? kLeast : right;  // a NaN stays one
                    if (product < 1e-200) loss -= std::log(product), product = 1;
                }
        });
        if (counts) loss -= std::log(product);
    }
    return loss;
}

// Scores become rate (label - softmax(scores)), the label being 1 for `right` and else 0.
double softmax_errors(float* scores, int M, int N, Index stride, int right, float rate) {
    double loss = 0;
    for (int m = 0; m < M; ++m) {
        float* s = scores + m * stride;
        float top = s[0];
        for (int n = 1; n < N; ++n) top = s[n] > top ? s[n] : top;
        const float own = s[right] - top;
        double sum = 0;
        registers(N, [&](Index n, int lanes) {
            const F e = exponential(load_some(s + n, lanes) - top);
            store_some(s + n, e, lanes);
            for (int lane = 0; lane < lanes; ++lane) sum += e[lane];
        });
        loss += std::log(sum) - own;
        const float factor = static_cast<float>(-rate / sum);
        registers(N, [&](Index n, int lanes) { store_some(s + n, load_some(s + n, lanes) * factor, lanes); });
        s[right] += rate;
    }
    return loss;
}

ELMAN_INLINE void add_row(float* to, const float* from, Index width, float factor) {
    for (Index i = 0; i < width; i += W) store(to + i, load(to + i) + load(from + i) * factor);
}

ELMAN_INLINE void fetch_row(const float* row, Index width) {
    for (Index i = 0; i < width; i += 16) __builtin_prefetch(row + i, 1);
}

// What a place of a sentence is about: which words are looked at, and which outputs they are to score.
class Place {
  public:
    Place(const EmbedNetwork& network, const EmbedWork& work) : net(network), work(work) {}

    // How far to look at place `at`, and the negative words; what will be needed is fetched.
    void prepare(int at, int length, std::uint64_t& state) {
        const int half = at & 1;
        work.reach[half] =
            net.dynamic ? 1 + static_cast<int>((draw(state) >> 32) % std::uint64_t(net.window)) : net.window;
        const int word = work.sentence[at];
        if (net.objective == Objective::negative) {
            int* drawn = work.drawn + half * net.negatives;
            for (int n = 0; n < net.negatives; ++n) {
                const std::uint64_t random = draw(state);
                const auto entry = static_cast<std::int32_t>(((random >> 32) * std::uint64_t(net.entries)) >> 32);
                const auto own = static_cast<std::uint32_t>(random) <= net.chance[entry];
                drawn[n] = net.first + (own ? entry : net.alias[entry]);
                fetch_row(net.output + drawn[n] * net.width, net.width);
            }
            fetch_row(net.output + word * net.width, net.width);
        } else if (net.objective == Objective::hierarchical) {
            for (Index n = net.places[word]; n < net.places[word + 1]; ++n)
                fetch_row(net.output + net.nodes[n] * net.width, net.width);
        }
        if (!net.starts && at + net.window < length)
            fetch_row(net.input + work.sentence[at + net.window] * net.width, net.width);
    }

    // The outputs of place `at`; their number.
    int outputs(int at) {
        const int word = work.sentence[at];
        if (net.objective == Objective::softmax) return net.words - net.first;  // they are all, and never change
        int N = 0;
        const auto add = [&](Index row, float label) {
            work.y[N] = net.output + row * net.width;
            work.labels[N++] = label;
        };
        if (net.objective == Objective::negative) {
            add(word, 1);
            const int* drawn = work.drawn + (at & 1) * net.negatives;
            for (int n = 0; n < net.negatives; ++n)
                if (drawn[n] != word) add(drawn[n], 0);
        } else {
            for (Index n = net.places[word]; n < net.places[word + 1]; ++n) add(net.nodes[n], 1.0f - net.codes[n]);
        }
        return N;
    }

    // The words around place `at`.
    template <class Each>
    ELMAN_INLINE void around(int at, int length, Each each) const {
        const int reach = work.reach[at & 1];
        const int begin = at > reach ? at - reach : 0, end = at + reach + 1 < length ? at + reach + 1 : length;
        for (int other = begin; other < end; ++other)
            if (other != at) each(work.sentence[other]);
    }

    // The inputs of place `at`; their number.
    int inputs(int at, int length) {
        int M = 0, words = 0;
        around(at, length, [&](int) { ++words; });
        if (!words) return 0;
        if (net.cbow) std::memset(work.vectors, 0, sizeof(float) * net.width);
        around(at, length, [&](int word) {
            if (net.cbow) return add_vector(word, 1.0f / words, work.vectors);
            if (net.starts) {
                float* made = work.vectors + M * net.width;
                std::memset(made, 0, sizeof(float) * net.width);
                add_vector(word, 1, made);
                work.x[M++] = made;
            } else {
                work.x[M++] = net.input + word * net.width;
            }
        });
        if (net.cbow) work.x[M++] = work.vectors;
        return M;
    }

    // Gradients of the inputs to the rows that these were made of.
    void learn(int at, int length) {
        int m = 0, words = 0;
        around(at, length, [&](int) { ++words; });
        around(at, length, [&](int word) {
            const float* gradient = work.gradients + (net.cbow ? 0 : m++) * net.width;
            const float factor = net.cbow ? 1.0f / words : 1.0f;
            if (!net.starts) return add_row(net.input + word * net.width, gradient, net.width, factor);
            const Index begin = net.starts[word], end = net.starts[word + 1];
            const float share = factor / std::sqrt(static_cast<float>(end - begin));
            for (Index n = begin; n < end; ++n)
                add_row(net.input + net.rows[n] * net.width, gradient, net.width, share);
        });
    }

  private:
    void add_vector(int word, float factor, float* to) const {
        if (!net.starts) return add_row(to, net.input + word * net.width, net.width, factor);
        const Index begin = net.starts[word], end = net.starts[word + 1];
        const float share = factor / std::sqrt(static_cast<float>(end - begin));
        for (Index n = begin; n < end; ++n) add_row(to, net.input + net.rows[n] * net.width, net.width, share);
    }

    const EmbedNetwork& net;
    const EmbedWork& work;
};

}  // namespace

// One pass over some ids of a text.
void embed(const EmbedNetwork& net, const EmbedWork& work, const int* ids, Index count, float rate, std::uint64_t seed,
           EmbedSeen& seen) {
    std::uint64_t state = seed;
    Place place(net, work);
    if (net.objective == Objective::softmax)
        for (int n = net.first; n < net.words; ++n) work.y[n - net.first] = net.output + n * net.width;
    Index places = 0;
    for (Index next = 0; next < count;) {
        int length = 0;
        while (next < count && length < kSentence) {
            const int id = ids[next++];
            if (id < net.first) {
                if (id == net.end) break;
                continue;
            }
            if (net.keep[id] == 0xFFFFFFFFu || (draw(state) >> 32) <= net.keep[id]) work.sentence[length++] = id;
        }
        seen.words += length;
        if (length < 2) continue;
        place.prepare(0, length, state);
        for (int at = 0; at < length; ++at) {
            if (at + 1 < length) place.prepare(at + 1, length, state);
            const int M = place.inputs(at, length), N = place.outputs(at);
            if (!M || !N) continue;
            const Index stride = (N + kBlock - 1) / kBlock * kBlock;
            for (int n = 0; n < N; n += kColumns)
                of_size<ScoreBlock>(N - n < kColumns ? N - n : kColumns, work.x, M, work.y + n, net.width,
                                    work.scores + n, stride);
            const bool counts = places++ % kSampled == 0;
            double loss;
            if (net.objective == Objective::softmax)
                loss = softmax_errors(work.scores, M, N, stride, work.sentence[at] - net.first, rate);
            else loss = logistic_errors(work.scores, M, N, stride, work.labels, rate, counts);
            if (counts) seen.loss += loss, seen.counted += M;
            for (int n = 0; n < N; n += kColumns)
                of_size<LearnBlock>(N - n < kColumns ? N - n : kColumns, work.x, M, work.y + n, net.width,
                                    static_cast<const float*>(work.scores + n), stride, work.gradients, n == 0);
            place.learn(at, length);
        }
    }
}

}  // namespace elman::ELMAN_ISA
