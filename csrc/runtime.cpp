// The streaming runtime as Python sees it: elman._kernels.Engine and Writing. Everything is checked here or in the two
// constructors, so that no array, however damaged, can make the kernels read what is not theirs.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <stdexcept>

#include "runtime.hpp"
#include "writing.hpp"

namespace nb = nanobind;

namespace elman {
namespace {

using Array = nb::ndarray<nb::device::cpu>;
using Ids = nb::ndarray<const int, nb::device::cpu, nb::c_contig>;
using States = nb::ndarray<const float, nb::ndim<2>, nb::device::cpu, nb::c_contig>;

[[noreturn]] void refuse(const std::string& why) { throw std::invalid_argument(why); }

// --- Making an engine -----------------------------------------------------------------------------------------------

// A dictionary of sizes and arrays. The arrays are kept as long as it lives.
class Given {
  public:
    explicit Given(const nb::dict& values) : values_(values) {}

    int size(const char* name) const { return nb::cast<int>(get(name)); }
    bool flag(const char* name) const { return nb::cast<bool>(get(name)); }
    std::string text(const char* name) const { return nb::cast<std::string>(get(name)); }

    // Exactly `count` numbers, or null where there is None.
    const float* numbers(const char* name, long count) {
        const nb::object value = get(name);
        if (value.is_none()) return nullptr;
        const Array array = keep<float>(name, value);
        if (static_cast<long>(array.size()) != count)
            refuse(std::string(name) + " should have " + std::to_string(count) + " numbers");
        return static_cast<const float*>(array.data());
    }

    // A matrix of float32, or a pair of an int8 matrix and a scale for each of its rows; empty where there is None.
    Plain matrix(const char* name) {
        const nb::object value = get(name);
        if (value.is_none()) return {};
        Plain plain;
        const bool pair = nb::isinstance<nb::tuple>(value);
        const Array array = pair ? keep<std::int8_t>(name, value[0]) : keep<float>(name, value);
        if (array.ndim() != 2 || array.size() == 0) refuse(std::string(name) + " should be a matrix");
        plain.rows = static_cast<long>(array.shape(0));
        plain.columns = static_cast<long>(array.shape(1));
        if (pair) {
            plain.bytes = static_cast<const std::int8_t*>(array.data());
            const Array scale = keep<float>(name, value[1]);
            if (static_cast<long>(scale.size()) != plain.rows) refuse(std::string(name) + " should have a scale a row");
            plain.scale = static_cast<const float*>(scale.data());
        } else {
            plain.numbers = static_cast<const float*>(array.data());
        }
        return plain;
    }

  private:
    nb::object get(const char* name) const {
        if (!values_.contains(name)) refuse(std::string(name) + " is missing");
        return values_[name];
    }

    template <class T>
    Array keep(const char* name, const nb::handle& value) {
        Array array = nb::cast<Array>(value);
        if (array.dtype() != nb::dtype<T>()) refuse(std::string(name) + " has another type of number than it should");
        long step = 1;
        for (std::size_t i = array.ndim(); i-- > 0; step *= static_cast<long>(array.shape(i)))
            if (array.shape(i) > 1 && array.stride(i) != step) refuse(std::string(name) + " should be contiguous");
        kept_.push_back(array);
        return array;
    }

    nb::dict values_;
    std::vector<Array> kept_;
};

std::shared_ptr<Engine> make_engine(const nb::dict& description) {
    static const std::map<std::string, Cell> cells = {
        {"RNN_TANH", Cell::tanh_rnn}, {"RNN_RELU", Cell::relu_rnn}, {"LSTM", Cell::lstm}, {"GRU", Cell::gru}};
    Given given(description);
    Weights weights{};
    const auto cell = cells.find(given.text("cell"));
    if (cell == cells.end()) refuse("cell should be RNN_TANH, RNN_RELU, LSTM or GRU");
    weights.cell = cell->second;
    weights.vocabulary = given.size("vocabulary");
    weights.hidden = given.size("hidden");
    weights.output = given.size("output");
    weights.labels = given.size("labels");
    weights.residual = given.flag("residual");
    weights.dense = given.flag("dense");
    weights.token_size = given.size("token_size");
    weights.label_size = given.size("label_size");
    if (weights.residual && weights.dense) refuse("connections are either residual or dense");
    if (weights.vocabulary < 1 || weights.hidden < 1 || weights.output < 1 || weights.labels < 0 || weights.label_size < 0)
        refuse("a size is not above zero");
    weights.tokens = given.matrix("tokens");
    weights.label_vectors = given.numbers("label_vectors", static_cast<long>(weights.labels) * weights.label_size);
    weights.bridge = given.matrix("bridge");
    weights.bridge_bias = given.numbers("bridge_bias", weights.bridge.rows);
    weights.softmax = given.matrix("softmax");
    weights.softmax_bias = given.numbers("softmax_bias", weights.vocabulary);

    const auto layers = nb::cast<std::vector<nb::dict>>(description["layers"]);
    const long H = weights.hidden, gates = weight_blocks(weights.cell) * H;
    const long state = weights.output + (weights.cell == Cell::lstm ? H : 0);
    weights.initial = given.numbers("initial", static_cast<long>(layers.size()) * state);
    std::vector<Given> kept;
    kept.reserve(layers.size());
    for (const nb::dict& each : layers) {
        Given& layer = kept.emplace_back(each);
        LayerWeights from;
        from.input = layer.matrix("input");
        from.hidden = layer.matrix("hidden");
        from.projection = layer.matrix("projection");
        from.bias = layer.numbers("bias", gates);
        from.table = layer.numbers("table", weights.vocabulary * gates);
        from.labels = layer.numbers("labels", weights.labels * gates);
        from.hidden_bias = layer.numbers("hidden_bias", H);
        weights.layers.push_back(from);
    }
    nb::gil_scoped_release unlocked;
    return std::make_shared<Engine>(weights);
}

// --- Using one ------------------------------------------------------------------------------------------------------

template <class T>
nb::ndarray<nb::numpy, T> to_python(std::vector<T>&& numbers, std::vector<std::size_t> shape) {
    auto* owned = new std::vector<T>(std::move(numbers));
    nb::capsule owner(owned, [](void* memory) noexcept { delete static_cast<std::vector<T>*>(memory); });
    return nb::ndarray<nb::numpy, T>(owned->data(), shape.size(), shape.data(), owner);
}

void check_ids(const char* what, const Ids& ids, long count, int below) {
    if (static_cast<long>(ids.size()) != count) refuse(std::string(what) + " should be " + std::to_string(count));
    for (std::size_t i = 0; i < ids.size(); ++i)
        if (ids.data()[i] < 0 || ids.data()[i] >= below)
            refuse(std::string(what) + " must lie in 0 to " + std::to_string(below - 1) + ", not " +
                   std::to_string(ids.data()[i]));
}

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
