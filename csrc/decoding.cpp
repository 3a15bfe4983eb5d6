// The decoder of translators and the heart of the beam search as Python sees them. Everything is checked here or in the
// constructor.
#include <nanobind/stl/shared_ptr.h>

#include "continuations.hpp"
#include "decoder.hpp"
#include "given.hpp"
#include "layers.hpp"
#include "runtime.hpp"
#include "threads.hpp"

namespace elman {
namespace {

using Numbers = ContiguousArray<float>;

Score score_named(const std::string& name) {
    return named<Score>("score", name,
                        {{"none", Score::none}, {"dot", Score::dot}, {"cosine", Score::cosine},
                         {"additive", Score::additive}, {"location", Score::location}});
}

Looks looks_named(const std::string& name) {
    return named<Looks>("looks", name, {{"never", Looks::never}, {"before", Looks::before}, {"after", Looks::after}});
}

std::shared_ptr<Decoder> make_decoder(const nb::dict& description) {
    Given given(description);
    std::vector<Given> kept;
    Weights weights = network_of(given, kept);
    weights.fed_size = given.size("fed_size");
    weights.bridge_tanh = true;
    weights.bridge_parts = given.sizes("bridge_parts");
    LookWeights look{};
    look.looks = looks_named(given.text("looks"));
    look.feeds_readout = given.flag("feeds_readout");
    look.score = score_named(given.text("score"));
    look.scale = given.number("scale");
    look.sees_token = given.flag("sees_token");
    look.reads_token = given.flag("reads_token");
    look.key_size = given.size("key_size");
    look.state_size = given.size("memory_size");
    look.query = given.matrix("query");
    look.query_bias = given.numbers("query_bias", look.query.rows);
    look.v = given.numbers("v", look.query.rows);
    nb::gil_scoped_release unlocked;
    return std::make_shared<Decoder>(weights, look);
}

// The logits are written to `logits`, which has room for at least as many rows as there are.
nb::tuple step(const Decoder& decoder, const Ids& ids, const ContiguousArray<int>& owners, const Numbers& states,
               const Numbers& keys, const Numbers& memory, const ContiguousArray<int>& lengths,
               nb::ndarray<float, nb::device::cpu, nb::c_contig> logits, int threads) {
    const std::size_t rows = ids.size();
    checked_rows(rows);
    checked_threads(threads);
    if (keys.ndim() != 3 || memory.ndim() != 3 || states.ndim() != 2 || logits.ndim() != 2)
        refuse("keys and memory should be B x S x size, states and logits matrices");
    const std::size_t sources = memory.shape(0), places = memory.shape(1);
    if (sources > kMostSize || places > kMostSize) refuse("there are too many sources, or too many places in one");
    const bool looks = decoder.memory_size() > 0;
    if (states.shape(0) != rows || static_cast<Index>(states.shape(1)) != decoder.state_size())
        refuse("a state should have " + std::to_string(decoder.state_size()) + " numbers a row");
    if (looks && (static_cast<Index>(memory.shape(2)) != decoder.memory_size() || keys.shape(0) != sources ||
                  keys.shape(1) != places || static_cast<Index>(keys.shape(2)) != decoder.key_size()))
        refuse("the memory does not fit the decoder");
    if (logits.shape(0) < rows || static_cast<Index>(logits.shape(1)) != decoder.padded_vocabulary())
        refuse("the logits should be " + std::to_string(decoder.padded_vocabulary()) + " numbers a row");
    const auto read = checked_ids("the ids", ids, static_cast<Index>(rows), decoder.vocabulary());
    const auto owned = checked_ids("the owners", owners, static_cast<Index>(rows), static_cast<Index>(sources));
    const auto there = checked_ids("the lengths", lengths, static_cast<Index>(sources), static_cast<Index>(places) + 1);
    for (const int length : there)
        if (length < 1) refuse("a source should have a place or more");
    const Memory seen{static_cast<int>(sources), static_cast<int>(places), decoder.key_size(), decoder.memory_size(),
                      keys.data(), memory.data(), there.data()};
    std::vector<float> after(states.data(), states.data() + states.size());
    std::vector<float> weights(looks ? rows * places : 0);
    {
        nb::gil_scoped_release unlocked;
        decoder.step(static_cast<int>(rows), read.data(), owned.data(), seen, after.data(), weights.data(), logits.data(),
                     threads);
    }
    return nb::make_tuple(to_python(std::move(after), {rows, states.shape(1)}),
                          to_python(std::move(weights), {rows, looks ? places : 0}));
}

nb::tuple best_continuations(const Numbers& log_probs, const ContiguousArray<double>& running, const Ids& given, Index best,
                             int threads) {
    constexpr Index kMost = 1 << 24;  // continuations of all sentences
    const std::vector<std::int64_t> first = copied(given);
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
    const Continuations all{static_cast<Index>(log_probs.shape(1)), best, log_probs.data(), running.data(), first.data(),
                            top.data(), parents.data(), tokens.data()};
    {
        nb::gil_scoped_release unlocked;
        auto body = [&](int index, int members) {
            const auto at = [&](int part) { return static_cast<Index>(sentences) * part / members; };
            kernels().continue_best(all, at(index), at(index + 1));
        };
        parallel(threads, body);
    }
    const std::vector<std::size_t> shape{sentences, static_cast<std::size_t>(best)};
    return nb::make_tuple(to_python(std::move(top), shape), to_python(std::move(parents), shape),
                          to_python(std::move(tokens), shape));
}

}  // namespace

void bind_decoder(nb::module_& m) {
    nb::class_<Decoder>(m, "Decoder", "The packed decoder of a translator; see elman.runtime.")
        .def_prop_ro("state_size", &Decoder::state_size)
        .def_prop_ro("padded_vocabulary", &Decoder::padded_vocabulary)
        .def("step", step, nb::arg("ids").noconvert(), nb::arg("owners").noconvert(), nb::arg("states"),
             nb::arg("keys"), nb::arg("memory"), nb::arg("lengths").noconvert(), nb::arg("logits").noconvert(),
             nb::arg("threads"));
    m.def("make_decoder", make_decoder, nb::arg("description"),
          "Pack the weights of a decoder; see elman/runtime/decoder.py.");
    m.def("best_continuations", best_continuations, nb::arg("log_probs"), nb::arg("running"),
          nb::arg("first").noconvert(), nb::arg("best"), nb::arg("threads"),
          "The best continuations of each sentence; see continuations.hpp.");
}

}  // namespace elman
