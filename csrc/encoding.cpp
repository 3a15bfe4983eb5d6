// The encoder of whole texts and the Viterbi search as Python sees them. Everything is checked here or in the constructor.
#include <nanobind/stl/shared_ptr.h>

#include "encoder.hpp"
#include "given.hpp"
#include "runtime.hpp"
#include "threads.hpp"
#include "viterbi.hpp"

namespace elman {
namespace {

using Numbers = ContiguousArray<float>;

Pooling pooling_named(const std::string& name) {
    return named<Pooling>("pooling", name,
                          {{"steps", Pooling::steps}, {"last", Pooling::last}, {"mean", Pooling::mean},
                           {"max", Pooling::max}, {"attention", Pooling::attention}});
}

std::shared_ptr<Encoder> make_encoder(const nb::dict& description) {
    Given given(description);
    EncoderWeights weights{};
    weights.cell = cell_named(given.text("cell"));
    weights.hidden = given.size("hidden");
    weights.directions = given.size("directions");
    weights.inputs = given.size("inputs");
    weights.ids = given.size("ids");
    weights.residual = given.flag("residual");
    weights.dense = given.flag("dense");
    if (weights.hidden < 1) refuse("a size is not above zero");
    weights.pooling = pooling_named(given.text("pooling"));
    weights.query = given.matrix("query");
    weights.query_bias = given.numbers("query_bias", weights.query.rows);
    weights.query_vector = given.numbers("query_vector", weights.query.rows);
    weights.head = given.matrix("head");
    weights.head_bias = given.numbers("head_bias", weights.head.rows);
    const auto parts = given.parts("parts");
    const Index H = weights.hidden, gates = weight_blocks(weights.cell) * H;
    std::vector<Given> kept;
    kept.reserve(parts.size());
    for (const nb::dict& each : parts) {
        Given& part = kept.emplace_back(each);
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

// The steps of each text, and of all.
std::vector<int> checked_lengths(const Ids& lengths, Index& rows) {
    if (lengths.ndim() != 1) refuse("the lengths should be a list");
    const auto found = checked_ids("the lengths", lengths, static_cast<Index>(lengths.size()), kMostSteps + 1);
    rows = 0;
    for (const int length : found) {
        if (length < 1) refuse("a text should have a step or more");
        rows += length;
    }
    if (rows < 1 || rows > kMostSteps) refuse("there should be 1 to " + std::to_string(kMostSteps) + " steps");
    return found;
}

nb::ndarray<nb::numpy, float> run(const Encoder& encoder, const Texts& texts, Index rows, int threads) {
    const auto answers = static_cast<std::size_t>(encoder.pooled() ? texts.count : rows);
    const auto width = static_cast<std::size_t>(encoder.width());
    std::vector<float> found(answers * width);
    {
        nb::gil_scoped_release unlocked;
        encoder.run(texts, found.data(), threads);
    }
    return to_python(std::move(found), {answers, width});
}

nb::ndarray<nb::numpy, float> read_vectors(const Encoder& encoder, const Numbers& vectors, const Ids& lengths, int threads) {
    Index rows;
    const auto many = checked_lengths(lengths, rows);
    if (!encoder.inputs() || vectors.ndim() != 2 || static_cast<Index>(vectors.shape(0)) != rows ||
        static_cast<Index>(vectors.shape(1)) != encoder.inputs())
        refuse("the vectors should be " + std::to_string(rows) + " x " + std::to_string(encoder.inputs()));
    const Texts texts{static_cast<int>(many.size()), many.data(), vectors.data(), nullptr};
    return run(encoder, texts, rows, checked_threads(threads));
}

nb::ndarray<nb::numpy, float> read_ids(const Encoder& encoder, const Ids& ids, const Ids& lengths, int threads) {
    Index rows;
    const auto many = checked_lengths(lengths, rows);
    const auto read = checked_ids("the ids", ids, rows, encoder.ids());
    const Texts texts{static_cast<int>(many.size()), many.data(), nullptr, read.data()};
    return run(encoder, texts, rows, checked_threads(threads));
}

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

void bind_encoder(nb::module_& m) {
    nb::class_<Encoder>(m, "Encoder", "Packed layers that read whole texts; see elman.runtime.")
        .def_prop_ro("inputs", &Encoder::inputs)
        .def_prop_ro("ids", &Encoder::ids)
        .def("read_vectors", read_vectors, nb::arg("vectors"), nb::arg("lengths").noconvert(), nb::arg("threads"))
        .def("read_ids", read_ids, nb::arg("ids").noconvert(), nb::arg("lengths").noconvert(), nb::arg("threads"));
    m.def("make_encoder", make_encoder, nb::arg("description"), "Pack the weights of layers; see elman/runtime/encoder.py.");
    m.def("viterbi", best_paths, nb::arg("emissions"), nb::arg("lengths").noconvert(), nb::arg("start"), nb::arg("transitions"),
          nb::arg("end"), "The best tags of texts one after the other, and their scores.");
}

}  // namespace elman
