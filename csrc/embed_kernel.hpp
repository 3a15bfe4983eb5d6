// Word vectors (word2vec): what a thread learns from its part of a text.
#pragma once

#include <cstdint>

#include "index.hpp"

namespace elman {

enum class Objective { softmax, negative, hierarchical };

constexpr int kSentence = 1024;  // words of a sentence that are looked at together; a longer one is cut
constexpr int kBlock = 8;        // outputs that are computed together; rows of scores are padded to whole blocks

// Weights are read and written by all threads at once, without locks (Niu et al. 2011): a word is rarely touched by two
// of them. Rows are `width` numbers apart, a whole number of registers; behind `size` they are zeros, and stay so.
struct EmbedNetwork {
    Index size, width;
    float *input, *output;  // V + n-grams, and V (of the hierarchical softmax: inner nodes)
    int words, first;       // V; ids below `first` are special: they have no vectors
    int end;                // the special id that ends a sentence; other special ones are passed over

    Objective objective;
    bool cbow;     // one example a place: all words around it together, not one by one
    int window;    // words on either side
    bool dynamic;  // the window of a place is 1 to `window`, by chance

    // The chance to be kept, times 2^32 - 1, of each word.
    const std::uint32_t* keep;
    // Negative sampling by the alias method (Walker 1974): an entry stands for itself with a chance, times 2^32 - 1,
    // and else for its alias. Entry 0 is the word `first`.
    int negatives, entries;
    const std::uint32_t* chance;
    const std::int32_t* alias;
    // The hierarchical softmax: the inner nodes above word w are nodes[places[w]] to nodes[places[w + 1]], codes are 1
    // where the way goes right.
    const std::int64_t* places;
    const std::int32_t* nodes;
    const std::int8_t* codes;
    // Rows of the input whose sum, by the root of their number, is the vector of word w: rows[starts[w]] to
    // rows[starts[w + 1]]; null where that is row w alone.
    const std::int64_t* starts;
    const std::int32_t* rows;

    int outputs;  // the most that an example has: V, 1 + negatives, or the longest way
};

// A thread's memory.
struct EmbedWork {
    int *sentence, *reach, *drawn;                 // kSentence, 2, 2 x negatives
    const float** x;                               // 2 window + 2
    float** y;                                     // outputs
    float *labels, *vectors, *gradients, *scores;  // outputs; 2 window + 2 rows of `width`; the same; rows of scores
};

struct EmbedSeen {
    double loss;           // a sample of it
    Index counted, words;  // pairs of an input and a right output in that sample; words that were kept
};

}  // namespace elman
