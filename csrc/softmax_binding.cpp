// The loss of a softmax as Python sees it; see softmax_kernel.cpp.
#include "arguments.hpp"
#include "bindings.hpp"
#include "dispatch.hpp"
#include "threads.hpp"

namespace elman {
namespace {

// The losses of some rows, whose logits become their gradients.
void cross_entropy(Floats logits, const Ids& target_ids, Floats losses, double smoothing, int threads) {
    if (logits.ndim() != 2) refuse("logits", "should have two dimensions");
    const Index N = static_cast<Index>(logits.shape(0)), V = static_cast<Index>(logits.shape(1));
    checked_threads(threads);
    const std::vector<std::int64_t> targets = copied(target_ids);
    if (targets.size() != std::size_t(N)) refuse("targets", "should be " + std::to_string(N));
    of_size("losses", losses, std::size_t(N));
    for (const std::int64_t target : targets)
        if (target < 0 || target >= V)
            throw std::out_of_range("target " + std::to_string(target) + " is not from 0 to " + std::to_string(V - 1));
    nb::gil_scoped_release unlocked;
    auto body = [&](int index, int count) {
        for (Index n = N * index / count; n < N * (index + 1) / count; ++n)
            losses.data()[n] =
                static_cast<float>(kernels().cross_entropy(logits.data() + n * V, V, targets[n], smoothing));
    };
    parallel(threads, body);
}

}  // namespace

void bind_softmax(nb::module_& m) {
    // What is written to must not be a copy that nanobind made to have it in the right type.
    m.def("cross_entropy", cross_entropy, nb::arg("logits").noconvert(), nb::arg("targets").noconvert(),
          nb::arg("losses").noconvert(), nb::arg("smoothing"), nb::arg("threads"),
          "The loss of each row; the logits become its gradient; see softmax_kernel.cpp.");
}

}  // namespace elman
