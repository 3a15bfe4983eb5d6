// The decoder of translators as Python sees it. Everything is checked here or in the constructor.
#include <nanobind/stl/shared_ptr.h>

#include "arguments.hpp"
#include "bindings.hpp"
#include "decoder.hpp"
#include "network_arguments.hpp"

namespace elman {
namespace {

Score score_named(const std::string& name) {
    return named<Score>("score", name,
                        {{"none", Score::none},
                         {"dot", Score::dot},
                         {"cosine", Score::cosine},
                         {"additive", Score::additive},
                         {"location", Score::location}});
}

Attends attends_named(const std::string& name) {
    return named<Attends>("attends", name,
                          {{"never", Attends::never}, {"before", Attends::before}, {"after", Attends::after}});
}

std::shared_ptr<Decoder> make_decoder(const nb::dict& description) {
    Arguments arguments(description);
    std::vector<Arguments> kept;
    Weights weights = network_of(arguments, kept);
    weights.fed_size = arguments.size("fed_size");
    weights.bridge_tanh = true;
    weights.bridge_parts = arguments.sizes("bridge_parts");
    AttendWeights attend{};
    attend.attends = attends_named(arguments.text("attends"));
    attend.feeds_readout = arguments.flag("feeds_readout");
    attend.score = score_named(arguments.text("score"));
    attend.scale = arguments.number("scale");
    attend.sees_token = arguments.flag("sees_token");
    attend.reads_token = arguments.flag("reads_token");
    attend.key_size = arguments.size("key_size");
    attend.state_size = arguments.size("memory_size");
    attend.query = arguments.matrix("query");
    attend.query_bias = arguments.numbers("query_bias", attend.query.rows);
    attend.v = arguments.numbers("v", attend.query.rows);
    nb::gil_scoped_release unlocked;
    return std::make_shared<Decoder>(weights, attend);
}

// What the decoder attends to, checked; `there` keeps the lengths.
Memory memory_of(const Decoder& decoder, const Numbers& keys, const Numbers& memory,
                 const ContiguousArray<int>& lengths, std::vector<int>& there) {
    if (keys.ndim() != 3 || memory.ndim() != 3) refuse("keys and memory should be B x S x size");
    const std::size_t sources = memory.shape(0), places = memory.shape(1);
    if (sources > kMostSize || places > kMostSize) refuse("there are too many sources, or too many places in one");
    if (decoder.memory_size() > 0 &&
        (static_cast<Index>(memory.shape(2)) != decoder.memory_size() || keys.shape(0) != sources ||
         keys.shape(1) != places || static_cast<Index>(keys.shape(2)) != decoder.key_size()))
        refuse("the memory does not fit the decoder");
    there = checked_ids("the lengths", lengths, static_cast<Index>(sources), static_cast<Index>(places) + 1);
    for (const int length : there)
        if (length < 1) refuse("a source should have a place or more");
    return {static_cast<int>(sources),
            static_cast<int>(places),
            decoder.key_size(),
            decoder.memory_size(),
            keys.data(),
            memory.data(),
            there.data()};
}

std::vector<float> states_of(const Decoder& decoder, const Numbers& states, std::size_t rows) {
    if (states.ndim() != 2 || states.shape(0) != rows || static_cast<Index>(states.shape(1)) != decoder.state_size())
        refuse("a state should have " + std::to_string(decoder.state_size()) + " numbers a row");
    return copied(states);
}

// The logits are written to `logits`, which has room for at least as many rows as there are.
nb::tuple step(const Decoder& decoder, const Ids& ids, const ContiguousArray<int>& owners, const Numbers& states,
               const Numbers& keys, const Numbers& memory, const ContiguousArray<int>& lengths, const Floats& logits,
               int threads) {
    const std::size_t rows = ids.size();
    checked_rows(rows);
    checked_threads(threads);
    std::vector<float> after = states_of(decoder, states, rows);
    std::vector<int> there;
    const Memory seen = memory_of(decoder, keys, memory, lengths, there);
    if (logits.ndim() != 2 || logits.shape(0) < rows ||
        static_cast<Index>(logits.shape(1)) != decoder.padded_vocabulary())
        refuse("the logits should be " + std::to_string(decoder.padded_vocabulary()) + " numbers a row");
    const auto read = checked_ids("the ids", ids, static_cast<Index>(rows), decoder.vocabulary());
    const auto owned = checked_ids("the owners", owners, static_cast<Index>(rows), seen.sources);
    const std::size_t places = decoder.memory_size() > 0 ? static_cast<std::size_t>(seen.places) : 0;
    std::vector<float> weights(rows * places);
    {
        nb::gil_scoped_release unlocked;
        decoder.step(static_cast<int>(rows), read.data(), owned.data(), seen, after.data(), weights.data(),
                     logits.data(), threads);
    }
    return nb::make_tuple(to_python(std::move(after), {rows, states.shape(1)}),
                          to_python(std::move(weights), {rows, places}));
}

// The ids of all texts in a row, how many each has, its log-probability, and whether it has come to its end.
nb::tuple greedy(const Decoder& decoder, const Numbers& states, const Numbers& keys, const Numbers& memory,
                 const ContiguousArray<int>& lengths, std::int64_t start, std::int64_t stop, std::int64_t shortest,
                 const Ids& never, const Ids& limits, int threads) {
    const std::size_t rows = limits.size();
    checked_rows(rows);
    checked_threads(threads);
    std::vector<float> first = states_of(decoder, states, rows);
    std::vector<int> there;
    const Memory seen = memory_of(decoder, keys, memory, lengths, there);
    if (static_cast<std::size_t>(seen.sources) != rows) refuse("there should be a limit for each source");
    for (const std::int64_t id : {start, stop})
        if (id < 0 || id >= decoder.vocabulary()) refuse("start and stop should be ids of the vocabulary");
    const GreedyRequest request{
        static_cast<int>(start), static_cast<int>(stop), static_cast<Index>(shortest),
        checked_ids("the forbidden ids", never, static_cast<Index>(never.size()), decoder.vocabulary()),
        checked_ids("the limits", limits, static_cast<Index>(rows), kMostSteps + 1)};
    for (const int limit : request.limits)
        if (limit < 1) refuse("a limit should be 1 or more");
    std::vector<Written> written;
    {
        nb::gil_scoped_release unlocked;
        written = decoder.greedy(request, seen, std::move(first), threads);
    }
    std::vector<std::int64_t> ids, counts;
    std::vector<double> log_probs;
    std::vector<std::uint8_t> finished;
    for (const Written& text : written) {
        ids.insert(ids.end(), text.ids.begin(), text.ids.end());
        counts.push_back(static_cast<std::int64_t>(text.ids.size()));
        log_probs.push_back(text.log_prob);
        finished.push_back(text.finished);
    }
    const std::size_t total = ids.size();
    return nb::make_tuple(to_python(std::move(ids), {total}), to_python(std::move(counts), {rows}),
                          to_python(std::move(log_probs), {rows}), to_python(std::move(finished), {rows}));
}

}  // namespace

void bind_decoder(nb::module_& m) {
    nb::class_<Decoder>(m, "Decoder", "The packed decoder of a translator; see elman.runtime.")
        .def_prop_ro("state_size", &Decoder::state_size)
        .def_prop_ro("padded_vocabulary", &Decoder::padded_vocabulary)
        .def("step", step, nb::arg("ids").noconvert(), nb::arg("owners").noconvert(), nb::arg("states"),
             nb::arg("keys"), nb::arg("memory"), nb::arg("lengths").noconvert(), nb::arg("logits").noconvert(),
             nb::arg("threads"))
        .def("greedy", greedy, nb::arg("states"), nb::arg("keys"), nb::arg("memory"), nb::arg("lengths").noconvert(),
             nb::arg("start"), nb::arg("stop"), nb::arg("shortest"), nb::arg("never").noconvert(),
             nb::arg("limits").noconvert(), nb::arg("threads"));
    m.def("make_decoder", make_decoder, nb::arg("description"),
          "Pack the weights of a decoder; see elman/runtime/decoder.py.");
}

}  // namespace elman
