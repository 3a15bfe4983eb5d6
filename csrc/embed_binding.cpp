// Training word vectors as Python sees it; see embed_kernel.cpp.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>

#include "arguments.hpp"
#include "bindings.hpp"
#include "dispatch.hpp"
#include "threads.hpp"

namespace elman {
namespace {

template <class T>
using Table = ContiguousArray<T>;

constexpr Index kMostOutputs = 1 << 22, kMostWindow = 1000;

// Begins of consecutive parts of a list, one for each word, and its end.
void check_parts(const char* name, const std::vector<std::int64_t>& parts, std::size_t words, std::size_t total) {
    if (parts.size() != words + 1 || parts.front() != 0 || parts.back() != static_cast<std::int64_t>(total))
        refuse(name, "should be V + 1 numbers, from 0 to the number of all parts");
    for (std::size_t i = 0; i < words; ++i)
        if (parts[i] > parts[i + 1]) refuse(name, "should rise");
}

void check_below(const char* name, const std::vector<std::int32_t>& numbers, Index below) {
    for (const std::int32_t number : numbers)
        if (number < 0 || number >= below) refuse(name, "should be 0 to " + std::to_string(below - 1));
}

// What learns: the tables of a vocabulary, and memory for each thread. The weights are Python's.
class Embedder {
  public:
    Embedder(const nb::dict& description, const Table<std::uint32_t>& keep, const Table<std::uint32_t>& chance,
             const Table<std::int32_t>& alias, const Table<std::int64_t>& places, const Table<std::int32_t>& nodes,
             const Table<std::int8_t>& codes, const Table<std::int64_t>& starts, const Table<std::int32_t>& rows)
        : keep_(copied(keep)),
          chance_(copied(chance)),
          alias_(copied(alias)),
          places_(copied(places)),
          nodes_(copied(nodes)),
          codes_(copied(codes)),
          starts_(copied(starts)),
          rows_(copied(rows)) {
        const Arguments asked(description);
        net_.size = asked.size("size");
        net_.words = asked.size("words");
        net_.first = asked.size("first");
        net_.end = asked.size("end");
        net_.window = asked.size("window");
        net_.negatives = asked.size("negatives");
        net_.cbow = asked.flag("cbow");
        net_.dynamic = asked.flag("dynamic");
        input_rows_ = asked.size("input_rows");
        output_rows_ = asked.size("output_rows");
        net_.objective = named<Objective>("objective", asked.text("objective"),
                                          {{"softmax", Objective::softmax},
                                           {"negative", Objective::negative},
                                           {"hierarchical", Objective::hierarchical}});
        check();
    }

    nb::tuple learn(Floats input, Floats output, const Ids& ids, float rate, std::uint64_t seed, int threads) {
        checked_threads(threads);
        EmbedNetwork net = net_;
        net.width = (net.size + 15) / 16 * 16;
        if (input.ndim() != 2 || static_cast<Index>(input.shape(0)) != input_rows_ ||
            static_cast<Index>(input.shape(1)) != net.width)
            refuse("input", "should be " + std::to_string(input_rows_) + " x " + std::to_string(net.width));
        if (output.ndim() != 2 || static_cast<Index>(output.shape(0)) != output_rows_ ||
            static_cast<Index>(output.shape(1)) != net.width)
            refuse("output", "should be " + std::to_string(output_rows_) + " x " + std::to_string(net.width));
        if (!(rate >= 0 && std::isfinite(rate))) refuse("rate", "should be 0 or more");
        const std::vector<int> read = checked_ids("the ids", ids, static_cast<Index>(ids.size()), net.words);
        net.input = input.data();
        net.output = output.data();
        const auto count = static_cast<Index>(read.size());
        const auto wanted = static_cast<std::size_t>(threads);
        std::vector<std::unique_ptr<Memory>> memories;
        for (std::size_t i = 0; i < wanted; ++i) memories.push_back(std::make_unique<Memory>(net));
        std::vector<EmbedSeen> seen(wanted);
        {
            nb::gil_scoped_release unlocked;
            // A thread that is held up has others take its share; what is random follows from the place in the text.
            std::atomic<Index> next{0};
            auto body = [&](int index, int) {
                for (Index part; (part = next.fetch_add(1)) * kSentence < count;) {
                    const Index begin = part * kSentence, end = std::min<Index>(begin + kSentence, count);
                    kernels().embed(net, memories[index]->work, read.data() + begin, end - begin, rate,
                                    seed + 0xD1B54A32D192ED03ull * static_cast<std::uint64_t>(part), seen[index]);
                }
            };
            parallel(threads, body);
        }
        EmbedSeen all{};
        for (const EmbedSeen& each : seen) {
            all.loss += each.loss;
            all.counted += each.counted;
            all.words += each.words;
        }
        return nb::make_tuple(all.loss, all.counted, all.words);
    }

  private:
    struct Memory {
        explicit Memory(const EmbedNetwork& net)
            : integers(kSentence + 2 + 2 * net.negatives),
              x(2 * net.window + 2),
              y(net.outputs),
              numbers(net.outputs + 16 + 2 * (2 * net.window + 2) * net.width +
                      (2 * net.window + 2) * ((net.outputs + kBlock) / kBlock * kBlock)) {
            int* whole = integers.data();
            float* at = numbers.data();
            const Index rows = 2 * net.window + 2;
            float* labels = at;
            float* vectors = labels + net.outputs + 16;
            float* gradients = vectors + rows * net.width;
            work = {whole,   whole + kSentence, whole + kSentence + 2,       x.data(), y.data(), labels,
                    vectors, gradients,         gradients + rows * net.width};
        }
        std::vector<int> integers;
        std::vector<const float*> x;
        std::vector<float*> y;
        std::vector<float> numbers;
        EmbedWork work;
    };

    void check() {
        const auto words = static_cast<std::size_t>(net_.words);
        if (net_.size < 1 || net_.size > 1 << 16) refuse("size", "should be 1 to 65536");
        if (net_.first >= net_.words) refuse("first", "should be less than words");
        if (net_.window < 1 || net_.window > kMostWindow) refuse("window", "should be 1 to 1000");
        if (input_rows_ < net_.words) refuse("input_rows", "should be words or more");
        if (keep_.size() != words) refuse("keep", "should be V numbers");
        Index outputs = net_.words - net_.first;
        if (net_.objective == Objective::negative) {
            if (net_.negatives < 1 || net_.negatives > 1000) refuse("negatives", "should be 1 to 1000");
            if (alias_.size() != std::size_t(outputs) || chance_.size() != alias_.size())
                refuse("alias", "should be a number for each word, as chance");
            check_below("alias", alias_, outputs);
            net_.entries = static_cast<int>(outputs);
            outputs = 1 + net_.negatives;
        } else {
            net_.negatives = 0;
        }
        if (net_.objective == Objective::hierarchical) {
            check_parts("places", places_, words, nodes_.size());
            if (codes_.size() != nodes_.size()) refuse("codes", "should be as many as nodes");
            check_below("nodes", nodes_, output_rows_);
            outputs = 0;
            for (std::size_t i = 0; i < words; ++i) outputs = std::max<Index>(outputs, places_[i + 1] - places_[i]);
        } else if (output_rows_ != net_.words) {
            refuse("output_rows", "should be words");
        }
        if (outputs > kMostOutputs) refuse("words", "are too many");
        net_.outputs = static_cast<int>(outputs);
        if (!starts_.empty()) {
            check_parts("starts", starts_, words, rows_.size());
            check_below("rows", rows_, input_rows_);
            for (std::size_t i = std::size_t(net_.first); i < words; ++i)
                if (starts_[i] == starts_[i + 1]) refuse("starts", "should give each word a row");
        }
        net_.keep = keep_.data();
        net_.chance = chance_.data();
        net_.alias = alias_.data();
        net_.places = places_.data();
        net_.nodes = nodes_.data();
        net_.codes = codes_.data();
        net_.starts = starts_.empty() ? nullptr : starts_.data();
        net_.rows = rows_.data();
    }

    EmbedNetwork net_{};
    Index input_rows_, output_rows_;
    std::vector<std::uint32_t> keep_, chance_;
    std::vector<std::int32_t> alias_;
    std::vector<std::int64_t> places_;
    std::vector<std::int32_t> nodes_;
    std::vector<std::int8_t> codes_;
    std::vector<std::int64_t> starts_;
    std::vector<std::int32_t> rows_;
};

}  // namespace

void bind_embed(nb::module_& m) {
    nb::class_<Embedder>(m, "Embedder", "Learns word vectors; see elman/tasks/embed.py.")
        .def(nb::init<const nb::dict&, const Table<std::uint32_t>&, const Table<std::uint32_t>&,
                      const Table<std::int32_t>&, const Table<std::int64_t>&, const Table<std::int32_t>&,
                      const Table<std::int8_t>&, const Table<std::int64_t>&, const Table<std::int32_t>&>(),
             nb::arg("description"), nb::arg("keep").noconvert(), nb::arg("chance").noconvert(),
             nb::arg("alias").noconvert(), nb::arg("places").noconvert(), nb::arg("nodes").noconvert(),
             nb::arg("codes").noconvert(), nb::arg("starts").noconvert(), nb::arg("rows").noconvert())
        .def("learn", &Embedder::learn, nb::arg("input").noconvert(), nb::arg("output").noconvert(),
             nb::arg("ids").noconvert(), nb::arg("rate"), nb::arg("seed"), nb::arg("threads"),
             "Learn from some ids: (a sample of the loss, the pairs in it, words that were kept).");
}

}  // namespace elman
