// The best continuations of a beam search as Python sees them; see beam_kernel.hpp.
#include "arguments.hpp"
#include "bindings.hpp"
#include "dispatch.hpp"
#include "threads.hpp"

namespace elman {
namespace {

nb::tuple best_continuations(const Numbers& log_probs, const ContiguousArray<double>& running,
                             const Ids& first_hypotheses, Index best, int threads) {
    constexpr Index kMost = 1 << 24;  // continuations of all sentences
    const std::vector<std::int64_t> first = copied(first_hypotheses);
    checked_threads(threads);
    if (log_probs.ndim() != 2 || running.size() != log_probs.shape(0) || first.size() < 2)
        refuse("log_probs should be N x V, running N and first B + 1");
    const std::size_t sentences = first.size() - 1;
    if (best < 1 || best > kMost / static_cast<Index>(sentences))
        refuse("best should be 1 to " + std::to_string(kMost) + " divided by the number of sentences");
    const std::size_t count = sentences * static_cast<std::size_t>(best);
    for (std::size_t b = 0; b < sentences; ++b)
        if (first[b] < 0 || first[b] >= first[b + 1]) refuse("first should rise");
    if (first.back() != static_cast<std::int64_t>(running.size())) refuse("first should end with N");
    std::vector<double> top(count);
    std::vector<std::int64_t> parents(count), tokens(count);
    const Continuations all{static_cast<Index>(log_probs.shape(1)),
                            best,
                            log_probs.data(),
                            running.data(),
                            first.data(),
                            top.data(),
                            parents.data(),
                            tokens.data()};
    {
        nb::gil_scoped_release unlocked;
        auto body = [&](int index, int members) {
            const auto at = [&](int part) { return static_cast<Index>(sentences) * part / members; };
            kernels().best_continuations(all, at(index), at(index + 1));
        };
        parallel(threads, body);
    }
    const std::vector<std::size_t> shape{sentences, static_cast<std::size_t>(best)};
    return nb::make_tuple(to_python(std::move(top), shape), to_python(std::move(parents), shape),
                          to_python(std::move(tokens), shape));
}

}  // namespace

void bind_beam(nb::module_& m) {
    m.def("best_continuations", best_continuations, nb::arg("log_probs"), nb::arg("running"),
          nb::arg("first").noconvert(), nb::arg("best"), nb::arg("threads"),
          "The best continuations of each sentence; see continuations.hpp.");
}

}  // namespace elman
