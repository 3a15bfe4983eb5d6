// The attention that a network learns with, as Python sees it; see attention_kernel.hpp.
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <optional>

#include "arguments.hpp"
#include "bindings.hpp"
#include "dispatch.hpp"
#include "threads.hpp"

namespace elman {
namespace {

using Bytes = nb::ndarray<std::uint8_t, nb::device::cpu, nb::c_contig>;

// Without `d_query` the scores are written, with it read; `d_keys` and `d_v` are made both or not at all.
void additive_scores(const Floats& query, const Floats& keys, const Floats& v, const Bytes& padding,
                     const std::optional<Ids>& some_counts, Floats scores, const std::optional<Floats>& d_query,
                     const std::optional<Floats>& d_keys, const std::optional<Floats>& d_v, int threads) {
    if (query.ndim() != 3 || keys.ndim() != 3) refuse("query", "and keys should have three dimensions");
    const std::size_t B = keys.shape(0), S = keys.shape(1), K = keys.shape(2), T = query.shape(1);
    const bool backward = d_query.has_value();
    if (d_keys.has_value() != d_v.has_value() || (d_keys && !backward)) refuse("d_keys", "comes with d_query and d_v");
    if (padding.size() != B * S) refuse("padding", "should be B x S");
    checked_threads(threads);
    if (some_counts && some_counts->size() != B) refuse("counts", "should be B numbers");
    const std::vector<std::int64_t> counts = some_counts ? copied(*some_counts) : std::vector<std::int64_t>();
    for (const std::int64_t count : counts)
        if (count < 0 || count > std::int64_t(T)) refuse("counts", "should be from 0 to T");
    AdditiveScores a{Index(B),
                     Index(T),
                     Index(S),
                     Index(K),
                     of_size("query", query, B * T * K),
                     keys.data(),
                     of_size("v", v, K),
                     padding.data(),
                     some_counts ? counts.data() : nullptr,
                     scores.data(),
                     nullptr,
                     nullptr,
                     nullptr};
    of_size("scores", scores, B * T * S);
    if (backward) {
        of_size("d_query", *d_query, B * T * K);
        a.d_query = d_query->data();
    }
    if (d_keys) {
        of_size("d_keys", *d_keys, B * S * K), of_size("d_v", *d_v, std::size_t(threads) * K);
        a.d_keys = d_keys->data(), a.d_v = d_v->data();
    }
    nb::gil_scoped_release unlocked;
    std::vector<Index> work{0};  // of the sources before each
    for (std::size_t b = 0; b < B; ++b) {
        Index places = 0;
        for (std::size_t s = 0; s < S; ++s) places += !a.padding[b * S + s];
        work.push_back(work.back() + places * (a.counts ? a.counts[b] : a.queries) + 1);
    }
    auto body = [&](int index, int count) {
        const auto at = [&](int part) {
            return std::lower_bound(work.begin(), work.end(), work.back() * part / count) - work.begin();
        };
        kernels().additive_scores(a, backward, at(index), at(index + 1), index);
    };
    parallel(threads, body);
}

void contexts(const Floats& weights, const Floats& states, const Bytes& padding, const Floats& contexts, bool backward,
              int threads) {
    if (states.ndim() != 3 || weights.ndim() != 2) refuse("states", "should have three dimensions, weights two");
    const std::size_t B = states.shape(0), S = states.shape(1), M = states.shape(2), R = weights.shape(0);
    checked_threads(threads);
    if (R > B) refuse("weights", "should have no more rows than there are sources");
    if (padding.size() != B * S) refuse("padding", "should be B x S");
    of_size("weights", weights, R * S), of_size("contexts", contexts, R * M);
    const Contexts c{Index(S), Index(M), states.data(), padding.data(), weights.data(), contexts.data()};
    nb::gil_scoped_release unlocked;
    auto body = [&](int index, int count) {
        kernels().contexts(c, backward, Index(R) * index / count, Index(R) * (index + 1) / count);
    };
    parallel(threads, body);
}

}  // namespace

void bind_attention(nb::module_& m) {
    // What is written to must not be a copy that nanobind made to have it in the right type.
    m.def("additive_scores", additive_scores, nb::arg("query"), nb::arg("keys"), nb::arg("v"), nb::arg("padding"),
          nb::arg("counts").noconvert().none(), nb::arg("scores").noconvert(), nb::arg("d_query").noconvert().none(),
          nb::arg("d_keys").noconvert().none(), nb::arg("d_v").noconvert().none(), nb::arg("threads"),
          "Scores of additive attention, or their gradients; see attention_kernel.hpp.");
    m.def("contexts", contexts, nb::arg("weights").noconvert(), nb::arg("states"), nb::arg("padding"),
          nb::arg("contexts").noconvert(), nb::arg("backward"), nb::arg("threads"),
          "The contexts of rows, or the gradients of their weights; see attention_kernel.hpp.");
}

}  // namespace elman
