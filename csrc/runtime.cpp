// The streaming runtime as Python sees it: elman._kernels.Engine and Writing. Everything is checked here or in the two
// constructors, so that no array, however damaged, can make the kernels read what is not theirs.
#include <nanobind/stl/shared_ptr.h>

#include "layers.hpp"
#include "runtime.hpp"
#include "writing.hpp"

namespace elman {
namespace {

using States = nb::ndarray<const float, nb::ndim<2>, nb::device::cpu, nb::c_contig>;

// --- Making an engine -----------------------------------------------------------------------------------------------

std::shared_ptr<Engine> make_engine(const nb::dict& description) {
    Given given(description);
    std::vector<Given> kept;
    const Weights weights = network_of(given, description, kept);
    nb::gil_scoped_release unlocked;
    return std::make_shared<Engine>(weights);
}

// --- Using one ------------------------------------------------------------------------------------------------------

// The rows' states, to be changed; and their labels, null where the engine has none.
std::vector<float> checked_states(const Engine& engine, const States& states) {
    if (static_cast<long>(states.shape(1)) != engine.state_size())
        refuse("a state should have " + std::to_string(engine.state_size()) + " numbers a row");
    if (states.shape(0) == 0 || states.shape(0) > 1u << 24) refuse("there should be 1 to 16777216 rows");
    return std::vector<float>(states.data(), states.data() + states.size());
}

const int* checked_labels(const Engine& engine, const Ids& labels, std::size_t rows) {
    if (!engine.labels()) return nullptr;
    check_ids("the labels", labels, static_cast<long>(rows), engine.labels());
    return labels.data();
}

nb::tuple step(const Engine& engine, const Ids& ids, const Ids& labels, const States& given, int threads) {
    std::vector<float> states = checked_states(engine, given);
    const std::size_t rows = given.shape(0), vocabulary = static_cast<std::size_t>(engine.vocabulary());
    check_ids("the ids", ids, static_cast<long>(rows), engine.vocabulary());
    const int* label = checked_labels(engine, labels, rows);
    std::vector<float> log_probs(rows * vocabulary);
    {
        nb::gil_scoped_release unlocked;
        engine.step(static_cast<int>(rows), ids.data(), label, states.data(), log_probs.data(), threads);
    }
    return nb::make_tuple(to_python(std::move(log_probs), {rows, vocabulary}),
                          to_python(std::move(states), {rows, given.shape(1)}));
}

nb::tuple score(const Engine& engine, const Ids& inputs, const Ids& targets, const Ids& labels, const States& given,
                int threads) {
    std::vector<float> states = checked_states(engine, given);
    const std::size_t rows = given.shape(0);
    if (inputs.ndim() != 2 || inputs.shape(0) != rows) refuse("the inputs should have a row for each row of the state");
    const std::size_t steps = inputs.shape(1);
    check_ids("the inputs", inputs, static_cast<long>(rows * steps), engine.vocabulary());
    check_ids("the targets", targets, static_cast<long>(rows * steps), engine.vocabulary());
    const int* label = checked_labels(engine, labels, rows);
    std::vector<double> log_probs(rows * steps);
    {
        nb::gil_scoped_release unlocked;
        engine.score(static_cast<int>(rows), static_cast<long>(steps), inputs.data(), targets.data(), label,
                     states.data(), log_probs.data(), threads);
    }
    return nb::make_tuple(to_python(std::move(log_probs), {rows, steps}),
                          to_python(std::move(states), {rows, given.shape(1)}));
}

std::shared_ptr<Writing> write(std::shared_ptr<Engine> engine, std::vector<std::vector<int>> prompts, long length,
                               double temperature, long top_k, double top_p, double repetition_penalty,
                               std::uint64_t seed, std::vector<int> stop_ids, std::vector<int> suppressed,
                               std::uint64_t first_stream, int label, int threads) {
    if (!(temperature >= 0 && top_k >= 0 && top_p > 0 && top_p <= 1 && repetition_penalty > 0))
        refuse("a setting of the sampling is out of its range");
    WritingRequest request{std::move(prompts),  length, {temperature, top_k, top_p, repetition_penalty, seed},
                           std::move(stop_ids), std::move(suppressed), first_stream, label};
    nb::gil_scoped_release unlocked;
    return std::make_shared<Writing>(std::move(engine), std::move(request), threads < 1 ? 1 : threads);
}

nb::ndarray<nb::numpy, int> advance(Writing& writing, int steps) {
    if (steps < 1 || steps > 1 << 16) refuse("steps should be 1 to 65536");
    std::vector<int> told;
    {
        nb::gil_scoped_release unlocked;
        told = writing.advance(steps);
    }
    const auto rows = static_cast<std::size_t>(writing.rows()), count = told.size() / rows;
    return to_python(std::move(told), {count, rows});
}

}  // namespace

void bind_runtime(nb::module_& m) {
    nb::class_<Engine>(m, "Engine", "A packed language model; see elman.runtime.")
        .def_prop_ro("vocabulary", &Engine::vocabulary)
        .def_prop_ro("labels", &Engine::labels)
        .def_prop_ro("state_size", &Engine::state_size)
        .def("threads_for", &Engine::threads_for, nb::arg("rows"), nb::arg("most"))
        .def("step", step, nb::arg("ids"), nb::arg("labels"), nb::arg("states"), nb::arg("threads"))
        .def("score", score, nb::arg("inputs"), nb::arg("targets"), nb::arg("labels"), nb::arg("states"), nb::arg("threads"));
    nb::class_<Writing>(m, "Writing", "Prompts that are being continued; see elman.runtime.")
        .def("advance", advance, nb::arg("steps"))
        .def("end", &Writing::end, nb::arg("row"));
    m.def("make_engine", make_engine, nb::arg("description"), "Pack the weights of a network; see elman/runtime/network.py.");
    m.def("write", write, nb::arg("engine"), nb::arg("prompts"), nb::arg("length"), nb::arg("temperature"), nb::arg("top_k"),
          nb::arg("top_p"), nb::arg("repetition_penalty"), nb::arg("seed"), nb::arg("stop_ids"), nb::arg("suppressed"),
          nb::arg("first_stream"), nb::arg("label"), nb::arg("threads"), "Begin to continue prompts.");
}

}  // namespace elman
