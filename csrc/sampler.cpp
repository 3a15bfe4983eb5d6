#include "sampler.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "packed.hpp"

namespace elman {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::uint64_t splitmix64(std::uint64_t s, std::uint64_t n) {
    std::uint64_t z = s + (n + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

}  // namespace

double uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t step) {
    return static_cast<double>(splitmix64(splitmix64(splitmix64(seed, 0), stream), step) >> 11) * 0x1p-53;
}

Sampler::Sampler(const Kernels& kernels, const Sampling& sampling, const std::vector<int>& suppressed, int vocabulary)
    : kernels_(kernels),
      sampling_(sampling),
      suppressed_(suppressed),
      vocabulary_(vocabulary),
      padded_(padded(vocabulary, kernels.lanes)),
      z_(static_cast<std::size_t>(padded_)),
      w_(static_cast<std::size_t>(padded_)) {
    if (sampling_.top_k >= vocabulary) sampling_.top_k = 0;
    if (sampling_.top_k) best_.reserve(static_cast<std::size_t>(vocabulary));  // nothing is allocated while choosing
    if (sampling_.top_p < 1) border_.reserve(static_cast<std::size_t>(vocabulary));
}

int Sampler::choose(const float* logits, const Seen* seen, std::uint64_t stream, std::uint64_t step) {
    double top = kernels_.widen(logits, padded_, z_.data());
    if (!(top < kInfinity)) return kNotFinite;
    if (seen) penalise(logits, *seen);
    for (const int id : suppressed_) z_[static_cast<std::size_t>(id)] = -kInfinity;
    if (seen || !suppressed_.empty()) top = *std::max_element(z_.begin(), z_.begin() + vocabulary_);
    if (top == -kInfinity) return kNothingLeft;
    if (sampling_.temperature == 0)
        return static_cast<int>(std::find(z_.begin(), z_.begin() + vocabulary_, top) - z_.begin());
    kernels_.cool(z_.data(), padded_, top, sampling_.temperature);
    if (sampling_.top_k) keep_top_k();
    kernels_.weigh(z_.data(), padded_, w_.data());
    if (sampling_.top_p < 1) keep_top_p();
    return draw(uniform(sampling_.seed, stream, step));
}

// The penalty falls on log-probabilities, so the logits are made into those first.
void Sampler::penalise(const float* logits, const Seen& seen) {
    const LogSum sum = kernels_.log_sum(logits, padded_);
    const double total = sum.top + std::log(sum.sum), penalty = sampling_.repetition_penalty;
    for (double& z : z_) z -= total;
    for (const int id : seen.ids()) {
        double& z = z_[static_cast<std::size_t>(id)];
        z = z > 0 ? z / penalty : z * penalty;
    }
}

int Sampler::draw(double u) {
    double sum = 0;
    for (int id = 0; id < vocabulary_; ++id) w_[static_cast<std::size_t>(id)] = sum += w_[static_cast<std::size_t>(id)];
    return static_cast<int>(std::upper_bound(w_.begin(), w_.begin() + vocabulary_, u * sum) - w_.begin());
}

// A few of many are kept in a heap, which hardly ever changes; else the vocabulary is divided around the k-th.
double Sampler::kth_largest() {
    const auto end = z_.begin() + vocabulary_;
    const long k = sampling_.top_k;
    if (k > vocabulary_ / 16) {
        best_.assign(z_.begin(), end);
        std::nth_element(best_.begin(), best_.begin() + (k - 1), best_.end(), std::greater<>());
        return best_[static_cast<std::size_t>(k - 1)];
    }
    best_.assign(z_.begin(), z_.begin() + k);
    std::make_heap(best_.begin(), best_.end(), std::greater<>());
    for (auto z = z_.begin() + k; z != end; ++z)
        if (*z > best_.front()) {
            std::pop_heap(best_.begin(), best_.end(), std::greater<>());
            best_.back() = *z;
            std::push_heap(best_.begin(), best_.end(), std::greater<>());
        }
    return best_.front();
}

// The others become -inf: what is above the k-th largest stays, and of those equal to it the lowest ids until there are k.
void Sampler::keep_top_k() {
    const double least = kth_largest();
    const auto end = z_.begin() + vocabulary_;
    long equal = sampling_.top_k - std::count_if(z_.begin(), end, [=](double z) { return z > least; });
    for (auto z = z_.begin(); z != end; ++z)
        if (*z < least || (*z == least && equal-- <= 0)) *z = -kInfinity;
}

// Ids are put into bins by falling z, so that only those of the bin in which the border falls have to be ranked.
void Sampler::keep_top_p() {
    constexpr int kBins = 128;
    const auto bin_of = [](double z) { return z > -31.75 ? static_cast<int>(-z * 4) : kBins - 1; };
    double mass[kBins] = {};
    for (int id = 0; id < vocabulary_; ++id) mass[bin_of(z_[static_cast<std::size_t>(id)])] += w_[static_cast<std::size_t>(id)];
    double total = 0;
    for (const double each : mass) total += each;
    const double wanted = sampling_.top_p * total;
    double before = 0;  // the weight of all that is ranked higher
    int last = 0;
    while (last < kBins - 1 && before + mass[last] < wanted) before += mass[last++];
    border_.clear();
    for (int id = 0; id < vocabulary_; ++id) {
        const int bin = bin_of(z_[static_cast<std::size_t>(id)]);
        if (bin == last) border_.push_back(id);
        if (bin > last) w_[static_cast<std::size_t>(id)] = 0;
    }
    std::sort(border_.begin(), border_.end(), [&](int a, int b) {
        const double first = z_[static_cast<std::size_t>(a)], second = z_[static_cast<std::size_t>(b)];
        return first > second || (first == second && a < b);
    });
    for (const int id : border_) {
        const double weight = w_[static_cast<std::size_t>(id)];
        if (before >= wanted) w_[static_cast<std::size_t>(id)] = 0;
        before += weight;
    }
}

}  // namespace elman
