// The Viterbi algorithm as Python sees it.
#include "arguments.hpp"
#include "bindings.hpp"
#include "threads.hpp"
#include "viterbi.hpp"

namespace elman {
namespace {

nb::tuple best_paths(const Numbers& emissions, const Ids& lengths, const Numbers& start, const Numbers& transitions,
                     const Numbers& end) {
    Index rows;
    const auto many = checked_lengths(lengths, rows);
    const std::size_t tags = start.size();
    if (tags == 0 || tags > kMostSize || transitions.size() != tags * tags || end.size() != tags ||
        emissions.size() != static_cast<std::size_t>(rows) * tags)
        refuse("the scores should be those of as many tags everywhere");
    const Chain chain{static_cast<int>(tags), start.data(), transitions.data(), end.data()};
    const Index square = static_cast<Index>(tags) * chain.tags;
    std::vector<std::int64_t> paths(static_cast<std::size_t>(rows));
    std::vector<float> scores(many.size());
    {
        nb::gil_scoped_release unlocked;
        Interrupt interrupt;
        Index row = 0;
        for (std::size_t i = 0; i < many.size() && !interrupt.stops(0, many[i] * square); row += many[i++])
            scores[i] = viterbi(chain, emissions.data() + row * chain.tags, many[i], paths.data() + row);
        interrupt.check();
    }
    return nb::make_tuple(to_python(std::move(paths), {static_cast<std::size_t>(rows)}),
                          to_python(std::move(scores), {many.size()}));
}

}  // namespace

void bind_viterbi(nb::module_& m) {
    m.def("viterbi", best_paths, nb::arg("emissions"), nb::arg("lengths").noconvert(), nb::arg("start"),
          nb::arg("transitions"), nb::arg("end"), "The best tags of texts one after the other, and their scores.");
}

}  // namespace elman
