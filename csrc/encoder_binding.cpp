// The encoder of whole texts as Python sees it. Everything is checked here or in the constructor.
#include <nanobind/stl/shared_ptr.h>

#include "arguments.hpp"
#include "bindings.hpp"
#include "encoder.hpp"

namespace elman {
namespace {

Pooling pooling_named(const std::string& name) {
    return named<Pooling>("pooling", name,
                          {{"steps", Pooling::steps},
                           {"last", Pooling::last},
                           {"mean", Pooling::mean},
                           {"max", Pooling::max},
                           {"attention", Pooling::attention},
                           {"last-max-mean", Pooling::last_max_mean}});
}

std::shared_ptr<Encoder> make_encoder(const nb::dict& description) {
    Arguments arguments(description);
    EncoderWeights weights{};
    weights.cell = cell_named(arguments.text("cell"));
    weights.hidden = arguments.size("hidden");
    weights.directions = arguments.size("directions");
    weights.inputs = arguments.size("inputs");
    weights.ids = arguments.size("ids");
    weights.residual = arguments.flag("residual");
    weights.dense = arguments.flag("dense");
    if (weights.hidden < 1) refuse("a size is not above zero");
    weights.pooling = pooling_named(arguments.text("pooling"));
    weights.query = arguments.matrix("query");
    weights.query_bias = arguments.numbers("query_bias", weights.query.rows);
    weights.query_vector = arguments.numbers("query_vector", weights.query.rows);
    weights.head = arguments.matrix("head");
    weights.head_bias = arguments.numbers("head_bias", weights.head.rows);
    const auto parts = arguments.parts("parts");
    const Index H = weights.hidden, gates = weight_blocks(weights.cell) * H;
    std::vector<Arguments> kept;
    kept.reserve(parts.size());
    for (const nb::dict& each : parts) {
        Arguments& part = kept.emplace_back(each);
        DirectionWeights from;
        from.input = part.matrix("input");
        from.hidden = part.matrix("hidden");
        from.bias = part.numbers("bias", gates);
        from.table = part.numbers("table", weights.ids * gates);
        from.hidden_bias = part.numbers("hidden_bias", H);
        weights.parts.push_back(from);
    }
    nb::gil_scoped_release unlocked;
    return std::make_shared<Encoder>(weights);
}

// The answers; and, where it is asked for, the states after the last steps.
nb::tuple run(const Encoder& encoder, const Texts& texts, Index rows, int threads, bool final) {
    const auto answers = static_cast<std::size_t>(encoder.pooled() ? texts.count : rows);
    const auto width = static_cast<std::size_t>(encoder.width());
    const std::vector<std::size_t> shape = {static_cast<std::size_t>(encoder.states()),
                                            static_cast<std::size_t>(texts.count),
                                            static_cast<std::size_t>(encoder.hidden())};
    std::vector<float> found(answers * width), states[2];
    Finals finals;
    for (int part = 0; final && part < encoder.state_parts(); ++part) {
        states[part].resize(shape[0] * shape[1] * shape[2]);
        finals.parts[part] = states[part].data();
    }
    {
        nb::gil_scoped_release unlocked;
        encoder.run(texts, found.data(), finals, threads);
    }
    nb::list kept;
    for (int part = 0; final && part < encoder.state_parts(); ++part)
        kept.append(to_python(std::move(states[part]), shape));
    return nb::make_tuple(to_python(std::move(found), {answers, width}), nb::tuple(kept));
}

void check_rows(const char* what, const Numbers& given, Index rows, Index width) {
    if (!width || given.ndim() != 2 || static_cast<Index>(given.shape(0)) != rows ||
        static_cast<Index>(given.shape(1)) != width)
        refuse(std::string(what) + " should be " + std::to_string(rows) + " x " + std::to_string(width));
}

nb::tuple read_vectors(const Encoder& encoder, const Numbers& vectors, const Ids& lengths, int threads, bool final) {
    Index rows;
    const auto many = checked_lengths(lengths, rows);
    check_rows("the vectors", vectors, rows, encoder.inputs());
    const Texts texts{static_cast<int>(many.size()), many.data(), vectors.data(), nullptr};
    return run(encoder, texts, rows, checked_threads(threads), final);
}

nb::tuple read_ids(const Encoder& encoder, const Ids& ids, const Ids& lengths, int threads, bool final) {
    Index rows;
    const auto many = checked_lengths(lengths, rows);
    const auto read = checked_ids("the ids", ids, rows, encoder.ids());
    const Texts texts{static_cast<int>(many.size()), many.data(), nullptr, read.data()};
    return run(encoder, texts, rows, checked_threads(threads), final);
}

nb::ndarray<nb::numpy, float> gates(const Encoder& encoder, const Numbers& vectors, int threads) {
    if (!encoder.has_gates()) refuse("the vectors are seen by other layers too, or there are none");
    const auto rows = vectors.ndim() ? vectors.shape(0) : 0, width = static_cast<std::size_t>(encoder.gates_width());
    check_rows("the vectors", vectors, static_cast<Index>(rows), encoder.inputs());
    const int most = checked_threads(threads);
    std::vector<float> found(rows * width);
    {
        nb::gil_scoped_release unlocked;
        encoder.gates(vectors.data(), static_cast<Index>(rows), found.data(), most);
    }
    return to_python(std::move(found), {rows, width});
}

// `ids` are rows of `gates`, which are what the function of that name gave.
nb::tuple read_gates(const Encoder& encoder, const Numbers& gates, const Ids& ids, const Ids& lengths, int threads,
                     bool final) {
    if (!encoder.has_gates()) refuse("the vectors are seen by other layers too, or there are none");
    Index rows;
    const auto many = checked_lengths(lengths, rows);
    const auto known = static_cast<Index>(gates.ndim() ? gates.shape(0) : 0);
    check_rows("the gates", gates, known, encoder.gates_width());
    const auto read = checked_ids("the ids", ids, rows, known);
    const Texts texts{static_cast<int>(many.size()), many.data(), nullptr, read.data(), gates.data()};
    return run(encoder, texts, rows, checked_threads(threads), final);
}

}  // namespace

void bind_encoder(nb::module_& m) {
    nb::class_<Encoder>(m, "Encoder", "Packed layers that read whole texts; see elman.runtime.")
        .def_prop_ro("inputs", &Encoder::inputs)
        .def_prop_ro("ids", &Encoder::ids)
        .def("read_vectors", read_vectors, nb::arg("vectors"), nb::arg("lengths").noconvert(), nb::arg("threads"),
             nb::arg("final") = false)
        .def("read_ids", read_ids, nb::arg("ids").noconvert(), nb::arg("lengths").noconvert(), nb::arg("threads"),
             nb::arg("final") = false)
        .def_prop_ro("has_gates", &Encoder::has_gates)
        .def("gates", gates, nb::arg("vectors"), nb::arg("threads"))
        .def("read_gates", read_gates, nb::arg("gates").noconvert(), nb::arg("ids").noconvert(),
             nb::arg("lengths").noconvert(), nb::arg("threads"), nb::arg("final") = false);
    m.def("make_encoder", make_encoder, nb::arg("description"),
          "Pack the weights of layers; see elman/runtime/encoder.py.");
}

}  // namespace elman
