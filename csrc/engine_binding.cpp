// The streaming runtime as Python sees it: elman._kernels.Engine, Generation and ContinuousBatch. Everything is checked
// here or in the constructors, so that no array, however damaged, can make the kernels read what is not theirs.
#include <nanobind/stl/shared_ptr.h>

#include <cstring>
#include <limits>

#include "bindings.hpp"
#include "continuous.hpp"
#include "generation.hpp"
#include "network_arguments.hpp"

namespace elman {
namespace {

using States = nb::ndarray<const float, nb::ndim<2>, nb::device::cpu, nb::c_contig>;
using OutputArray = nb::ndarray<float, nb::ndim<2>, nb::device::cpu, nb::c_contig>;

// --- Making an engine -----------------------------------------------------------------------------------------------

std::shared_ptr<Engine> make_engine(const nb::dict& description) {
    Arguments arguments(description);
    std::vector<Arguments> kept;
    const Weights weights = network_of(arguments, kept);
    nb::gil_scoped_release unlocked;
    return std::make_shared<Engine>(weights);
}

// --- Using one ------------------------------------------------------------------------------------------------------

// How many rows there are.
Index checked_states(const Engine& engine, const States& states) {
    if (static_cast<Index>(states.shape(1)) != engine.state_size())
        refuse("a state should have " + std::to_string(engine.state_size()) + " numbers a row");
    return checked_rows(states.shape(0));
}

// None where the engine has none.
std::vector<int> checked_labels(const Engine& engine, const Ids& labels, Index rows) {
    return checked_ids("the labels", labels, engine.labels() ? rows : 0, engine.labels());
}

const int* or_null(const std::vector<int>& labels) { return labels.empty() ? nullptr : labels.data(); }

void check_finite(const float* states, Index count) {
    constexpr std::uint32_t exponent = 0x7F800000;
    bool finite = true;
    for (Index i = 0; i < count; ++i) {
        std::uint32_t bits;
        std::memcpy(&bits, states + i, sizeof bits);
        finite = finite & ((bits & exponent) != exponent);
    }
    if (!finite) refuse("a state must have finite numbers only: this one is damaged, or the model is");
}

// What comes out is written to arrays of the caller's: to make them takes Python longer than a step.
void step(const Engine& engine, const Ids& ids, const Ids& labels, const States& states, OutputArray log_probs,
          OutputArray after, int threads) {
    const Index rows = checked_states(engine, states);
    checked_threads(threads);
    const auto read = checked_ids("the ids", ids, rows, engine.vocabulary());
    const auto label = checked_labels(engine, labels, rows);
    if (static_cast<Index>(log_probs.shape(0)) != rows || static_cast<Index>(log_probs.shape(1)) != engine.vocabulary())
        refuse("log_probs should be " + std::to_string(rows) + " x " + std::to_string(engine.vocabulary()));
    if (static_cast<Index>(after.shape(0)) != rows || static_cast<Index>(after.shape(1)) != engine.state_size())
        refuse("after should be " + std::to_string(rows) + " x " + std::to_string(engine.state_size()));
    nb::gil_scoped_release unlocked;
    engine.step(static_cast<int>(rows), read.data(), or_null(label), states.data(), log_probs.data(), after.data(),
                threads);
    check_finite(after.data(), rows * engine.state_size());
}

nb::tuple score(const Engine& engine, const Ids& inputs, const Ids& targets, const Ids& labels, const States& begin,
                int threads) {
    const Index rows = checked_states(engine, begin);
    checked_threads(threads);
    if (inputs.ndim() != 2 || static_cast<Index>(inputs.shape(0)) != rows)
        refuse("the inputs should have a row for each row of the state");
    const auto steps = static_cast<Index>(inputs.shape(1));
    if (steps > kMostSteps) refuse("there should be " + std::to_string(kMostSteps) + " steps at most");
    const auto read = checked_ids("the inputs", inputs, rows * steps, engine.vocabulary());
    const auto expected = checked_ids("the targets", targets, rows * steps, engine.vocabulary());
    const auto label = checked_labels(engine, labels, rows);
    std::vector<float> states(begin.data(), begin.data() + begin.size());
    std::vector<double> log_probs(static_cast<std::size_t>(rows * steps));
    {
        nb::gil_scoped_release unlocked;
        engine.score(static_cast<int>(rows), steps, read.data(), expected.data(), or_null(label), states.data(),
                     log_probs.data(), threads);
        check_finite(states.data(), rows * engine.state_size());
    }
    return nb::make_tuple(to_python(std::move(log_probs), {begin.shape(0), inputs.shape(1)}),
                          to_python(std::move(states), {begin.shape(0), begin.shape(1)}));
}

Sampling checked_sampling(double temperature, Index top_k, double top_p, double repetition_penalty,
                          std::uint64_t seed) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (!(temperature >= 0 && temperature < infinity && top_k >= 0 && top_p > 0 && top_p <= 1 &&
          repetition_penalty > 0 && repetition_penalty < infinity))
        refuse("a setting of the sampling is out of its range");
    return {temperature, top_k, top_p, repetition_penalty, seed};
}

std::shared_ptr<Generation> generate(std::shared_ptr<Engine> engine, std::vector<std::vector<int>> prompts,
                                     Index length, double temperature, Index top_k, double top_p,
                                     double repetition_penalty, std::uint64_t seed, std::vector<int> stop_ids,
                                     std::vector<int> suppressed, std::uint64_t first_stream, int label, int threads) {
    if (!engine) refuse("there is no engine");
    checked_threads(threads);
    GenerationRequest request{std::move(prompts),
                              length,
                              checked_sampling(temperature, top_k, top_p, repetition_penalty, seed),
                              std::move(stop_ids),
                              std::move(suppressed),
                              first_stream,
                              label};
    nb::gil_scoped_release unlocked;
    return std::make_shared<Generation>(std::move(engine), std::move(request), threads);
}

nb::ndarray<nb::numpy, int> advance(Generation& generation, int steps) {
    if (steps < 1 || steps > 1 << 16) refuse("steps should be 1 to 65536");
    std::vector<int> written;
    {
        nb::gil_scoped_release unlocked;
        written = generation.advance(steps);
    }
    const auto rows = static_cast<std::size_t>(generation.rows()), count = written.size() / rows;
    return to_python(std::move(written), {count, rows});
}

// --- Texts that come and go -----------------------------------------------------------------------------------------

std::shared_ptr<ContinuousBatch> continuous_batch(std::shared_ptr<Engine> engine, int threads) {
    if (!engine) refuse("there is no engine");
    checked_threads(threads);
    return std::make_shared<ContinuousBatch>(std::move(engine), threads);
}

long add(ContinuousBatch& batch, std::vector<int> prompt, int samples, Index length, double temperature, Index top_k,
         double top_p, double repetition_penalty, std::uint64_t seed, std::vector<int> stop_ids,
         std::vector<int> suppressed, std::uint64_t first_stream, int label, int alternatives) {
    if (samples > kMostRows) refuse("there should be " + std::to_string(kMostRows) + " samples at most");
    if (alternatives < -1 || alternatives > 1024) refuse("alternatives should be 0 to 1024, or -1");
    return batch.add({std::move(prompt), samples, length,
                      checked_sampling(temperature, top_k, top_p, repetition_penalty, seed), std::move(stop_ids),
                      std::move(suppressed), first_stream, label, alternatives});
}

template <class T>
nb::ndarray<nb::numpy, T> in_a_row(std::vector<T>& numbers) {
    const std::size_t count = numbers.size();
    return to_python(std::move(numbers), {count});
}

nb::tuple advance_batch(ContinuousBatch& batch, int steps) {
    if (steps < 1 || steps > 1 << 12) refuse("steps should be 1 to 4096");
    NewIds made;
    {
        nb::gil_scoped_release unlocked;
        made = batch.advance(steps);
    }
    return nb::make_tuple(in_a_row(made.texts), in_a_row(made.ids), in_a_row(made.ends), in_a_row(made.log_prob),
                          in_a_row(made.rank), in_a_row(made.entropy), in_a_row(made.counts), in_a_row(made.other_ids),
                          in_a_row(made.other_log_probs));
}

}  // namespace

void bind_engine(nb::module_& m) {
    nb::class_<Engine>(m, "Engine", "A packed language model; see elman.runtime.")
        .def_prop_ro("vocabulary", &Engine::vocabulary)
        .def_prop_ro("labels", &Engine::labels)
        .def_prop_ro("state_size", &Engine::state_size)
        .def("step", step, nb::arg("ids").noconvert(), nb::arg("labels").noconvert(), nb::arg("states"),
             nb::arg("log_probs").noconvert(), nb::arg("after").noconvert(), nb::arg("threads"))
        .def("score", score, nb::arg("inputs").noconvert(), nb::arg("targets").noconvert(),
             nb::arg("labels").noconvert(), nb::arg("states"), nb::arg("threads"));
    nb::class_<Generation>(m, "Generation", "Prompts that are being continued; see elman.runtime.")
        .def("advance", advance, nb::arg("steps"))
        .def("end", &Generation::end, nb::arg("row"));
    m.def("make_engine", make_engine, nb::arg("description"),
          "Pack the weights of a network; see elman/runtime/network.py.");
    m.def("generate", generate, nb::arg("engine"), nb::arg("prompts"), nb::arg("length"), nb::arg("temperature"),
          nb::arg("top_k"), nb::arg("top_p"), nb::arg("repetition_penalty"), nb::arg("seed"), nb::arg("stop_ids"),
          nb::arg("suppressed"), nb::arg("first_stream"), nb::arg("label"), nb::arg("threads"),
          "Begin to continue prompts.");
    nb::class_<ContinuousBatch>(m, "ContinuousBatch", "Texts that come and go while they are written; elman.runtime.")
        .def("add", add, nb::arg("prompt"), nb::arg("samples"), nb::arg("length"), nb::arg("temperature"),
             nb::arg("top_k"), nb::arg("top_p"), nb::arg("repetition_penalty"), nb::arg("seed"), nb::arg("stop_ids"),
             nb::arg("suppressed"), nb::arg("first_stream"), nb::arg("label"), nb::arg("alternatives"))
        .def("remove", &ContinuousBatch::remove, nb::arg("text"))
        .def("advance", advance_batch, nb::arg("steps"))
        .def("interrupt", &ContinuousBatch::interrupt)
        .def_prop_ro("rows", &ContinuousBatch::rows);
    m.def("continuous_batch", continuous_batch, nb::arg("engine"), nb::arg("threads"), "A batch without texts yet.");
}

}  // namespace elman
