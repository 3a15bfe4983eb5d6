// From a row of logits to the next id, as docs/sampling.md specifies.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "dispatch.hpp"

namespace elman {

struct Sampling {
    double temperature = 1;         // 0: the likeliest id
    Index top_k = 0;                // 0: all
    double top_p = 1;               // 1: all
    double repetition_penalty = 1;  // 1: none
    std::uint64_t seed = 0;
};

// The number in [0, 1) that belongs to a seed, a stream and a step.
double uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t step);

// The ids that a text has, for the repetition penalty.
class Seen {
  public:
    explicit Seen(int vocabulary) : marks_(static_cast<std::size_t>(vocabulary)) {}
    void add(int id) {
        if (marks_[static_cast<std::size_t>(id)]) return;
        marks_[static_cast<std::size_t>(id)] = true;
        ids_.push_back(id);
    }
    void make_room(std::size_t more) {  // so that `add` allocates nothing
        const std::size_t wanted = std::min(marks_.size(), ids_.size() + more);
        if (ids_.capacity() < wanted) ids_.reserve(std::max(wanted, 2 * ids_.size()));
    }
    const std::vector<int>& ids() const { return ids_; }

  private:
    std::vector<bool> marks_;
    std::vector<int> ids_;
};

// Chooses ids; its memory serves one thread.
class Sampler {
  public:
    static constexpr int kNothingLeft = -1, kNotFinite = -2;

    Sampler(const Kernels& kernels, int vocabulary);

    void make_room(const Sampling& sampling);  // so that choosing with these settings allocates nothing

    // The settings of the calls that follow, for which there is room; `suppressed` must stay where it is.
    void use(const Sampling& sampling, const std::vector<int>& suppressed);

    // The id after `logits` (padded to whole registers with -inf), or one of the two failures above. `seen` may be
    // null.
    int choose(const float* logits, const Seen* seen, std::uint64_t stream, std::uint64_t step);

  private:
    void penalise(const float* logits, const Seen& seen);
    int draw(double u);
    double kth_largest();
    void keep_top_k();
    void keep_top_p();

    const Kernels& kernels_;
    Sampling sampling_;
    const std::vector<int>* suppressed_ = nullptr;
    int vocabulary_;
    Index padded_;
    std::vector<double> z_, w_;  // what the ids' weights are the exponential of; the weights, then their running sum
    std::vector<double> best_;   // for the search of the k-th largest
    std::vector<int> border_;    // the ids among which top-p ends, and room for all
};

}  // namespace elman
