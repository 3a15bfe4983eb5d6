#include "sampler.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

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

Sampler::Sampler(const Kernels& kernels, int vocabulary)
    : kernels_(kernels),
      vocabulary_(vocabulary),
      padded_(padded(vocabulary, kernels.lanes)),
      z_(static_cast<std::size_t>(padded_)),
      w_(static_cast<std::size_t>(padded_)) {}

void Sampler::make_room(const Sampling& sampling) {
    if (sampling.top_k) best_.reserve(static_cast<std::size_t>(vocabulary_));
    if (sampling.top_p < 1) border_.resize(static_cast<std::size_t>(vocabulary_));
}

void Sampler::use(const Sampling& sampling, const std::vector<int>& suppressed) {
    sampling_ = sampling;
    if (sampling_.top_k >= vocabulary_) sampling_.top_k = 0;
    suppressed_ = &suppressed;
}

int Sampler::choose(const float* logits, const Seen* seen, std::uint64_t stream, std::uint64_t step) {
    double top = kernels_.to_double(logits, padded_, z_.data());
    if (!(top < kInfinity)) return kNotFinite;
    if (seen) penalise(logits, *seen);
    for (const int id : *suppressed_) z_[static_cast<std::size_t>(id)] = -kInfinity;
    if (seen || !suppressed_->empty()) top = *std::max_element(z_.begin(), z_.begin() + vocabulary_);
    if (top == -kInfinity) return kNothingLeft;
    if (!(top < kInfinity)) return kNotFinite;
    if (sampling_.temperature == 0)
        return static_cast<int>(std::find(z_.begin(), z_.begin() + vocabulary_, top) - z_.begin());
    kernels_.apply_temperature(z_.data(), padded_, top, sampling_.temperature);
    if (sampling_.top_k) keep_top_k();
    kernels_.exponentials(z_.data(), padded_, w_.data());
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
    if (!(sum > 0 && sum < kInfinity)) return kNotFinite;  // else no id may be found
    return static_cast<int>(std::upper_bound(w_.begin(), w_.begin() + vocabulary_, u * sum) - w_.begin());
}

// A few of many are kept in a heap, which hardly ever changes; else the vocabulary is divided around the k-th.
double Sampler::kth_largest() {
    const auto end = z_.begin() + vocabulary_;
    const Index k = sampling_.top_k;
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

// The others become -inf: what is above the k-th largest stays, and of those equal to it the lowest ids until there are
// k.
void Sampler::keep_top_k() {
    const double least = kth_largest();
    const auto end = z_.begin() + vocabulary_;
    Index equal = sampling_.top_k - std::count_if(z_.begin(), end, [=](double z) { return z > least; });
    for (auto z = z_.begin(); z != end; ++z)
        if (*z < least || (*z == least && equal-- <= 0)) *z = -kInfinity;
}

namespace {

// Falling numbers in bins: a larger one is never behind a smaller one, equal ones are in the same.
struct Bins {
    static constexpr int kCount = 128;
    double top, scale;
    int of(double z) const {
        const double place = (top - z) * scale;
        return place < kCount - 1 ? static_cast<int>(place) : kCount - 1;
    }
};

// The bin in which the border falls; `before`, the weight of all that is ranked higher, grows by that of the bins
// before it.
int border_bin(const double* mass, double limit, double& before) {
    int bin = 0;
    while (bin < Bins::kCount - 1 && before + mass[bin] < limit) before += mass[bin++];
    return bin;
}

}  // namespace

// Ids are put into bins by falling z, and only those of the bin in which the border falls into finer ones, until they
// are few, or all equal: then they are ranked. No branch depends on a number that nobody can foresee.
void Sampler::keep_top_p() {
    constexpr int kFew = 24;  // that are as quickly sorted
    const double* z = z_.data();
    double *w = w_.data(), mass[Bins::kCount] = {}, total = 0, before = 0;
    int *border = border_.data(), count = 0;
    Bins bins{0, 4};
    const auto divide = [&](int last,
                            int id) {  // what lies behind the border is dropped, what lies at it looked at again
        const int bin = bins.of(z[id]);
        w[id] = bin > last ? 0 : w[id];
        border[count] = id;
        count += bin == last;
    };
    for (int id = 0; id < vocabulary_; ++id) mass[bins.of(z[id])] += w[id];
    for (const double each : mass) total += each;
    const double limit = sampling_.top_p * total;
    int last = border_bin(mass, limit, before);
    for (int id = 0; id < vocabulary_; ++id) divide(last, id);
    bool equal = false;
    while (count > kFew) {
        double most = -kInfinity, least = kInfinity;
        for (int i = 0; i < count; ++i) most = std::max(most, z[border[i]]), least = std::min(least, z[border[i]]);
        bins = {most, Bins::kCount / (most - least)};  // 0 where some are -inf: they alone are in the last bin
        equal = most == least;
        if (equal || !(bins.scale < kInfinity)) break;
        std::fill_n(mass, Bins::kCount, 0.0);
        for (int i = 0; i < count; ++i) mass[bins.of(z[border[i]])] += w[border[i]];
        last = border_bin(mass, limit, before);
        const int some = std::exchange(count, 0);
        for (int i = 0; i < some; ++i) divide(last, border[i]);
    }
    if (!equal) std::sort(border, border + count, [=](int a, int b) { return z[a] > z[b] || (z[a] == z[b] && a < b); });
    for (int i = 0; i < count; ++i) {
        const double weight = w[border[i]];
        if (before >= limit) w[border[i]] = 0;
        before += weight;
    }
}

}  // namespace elman
