// The Python module elman._kernels. Tensors come in by DLPack and are checked here, so that the kernels need not be.
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>

#include "dispatch.hpp"
#include "given.hpp"
#include "runtime.hpp"
#include "threads.hpp"

namespace elman {
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
    throw std::invalid_argument(name + " " + why);
}

// The tensors of one direction, by name. They are kept until the kernel has run.
class Tensors {
  public:
    Tensors(const nb::dict& given) {
        for (auto [key, tensor] : given) {
            const auto name = nb::cast<std::string>(nb::str(key));
            Array array;
            if (tensor.is_none()) continue;
            if (!nb::try_cast(tensor, array)) refuse(name, "should be a tensor on the CPU that can be written to");
            arrays_.emplace(name, array);
        }
    }

    template <class T>
    T* find(const std::string& name, Index rows, Index columns) const {
        const auto found = arrays_.find(name);
        return found == arrays_.end() ? nullptr : check<T>(name, found->second, rows, columns);
    }

    template <class T>
    T* get(const std::string& name, Index rows, Index columns) const {
        T* data = find<T>(name, rows, columns);
        if (!data) refuse(name, "is missing");
        return data;
    }

    template <class T>
    static T* check(const std::string& name, const Array& array, Index rows, Index columns) {
        if (array.dtype() != nb::dtype<T>()) refuse(name, "has another type of number than the rest");
        Index stride = 1;  // what the next dimension's should be, the last one first
        for (std::size_t i = array.ndim(); i-- > 0; stride *= Index(array.shape(i)))
            if (array.shape(i) > 1 && array.stride(i) != stride) refuse(name, "should be contiguous");
        if (array.ndim() == 0 || Index(array.shape(array.ndim() - 1)) != columns || stride != rows * columns)
            refuse(name, "should be " + std::to_string(rows) + " x " + std::to_string(columns));
        return static_cast<T*>(const_cast<void*>(static_cast<const void*>(array.data())));
    }

  private:
    std::map<std::string, Array> arrays_;
};

struct Request {
    Cell cell;
    int input_size, hidden, output_size, threads;
    std::vector<Index> offsets;
    Array output;  // N x D*P; backwards: its gradient
    Tensors states;  // each D x B x size
    std::vector<Tensors> directions;
    bool backward;
};

template <class T>
void set_states(const Request& r, Layer<T>& layer) {
    const Index D = layer.directions, B = layer.batch, H = layer.hidden, P = layer.output_size;
    const bool lstm = layer.cell == Cell::lstm;
    for (int i = 0; i < layer.directions; ++i) {
        const auto find = [&](const char* name, Index size) {
            T* all = r.states.find<T>(name, D * B, size);
            return all ? all + i * B * size : nullptr;
        };
        Direction<T>& d = layer.direction[i];
        Gradient<T>& g = layer.gradient[i];
        d.c_0 = lstm ? find("c_0", H) : nullptr;
        if (r.backward) {
            g.d_h_n = find("d_h_n", P);
            g.d_h = find("d_h", P);
            g.d_c_n = lstm ? find("d_c_n", H) : nullptr;
            g.d_c = lstm ? find("d_c", H) : nullptr;
        } else {
            d.h_0 = find("h_0", P);
            d.h = r.states.get<T>("h", D * B, P) + i * B * P;
            d.c = lstm ? r.states.get<T>("c", D * B, H) + i * B * H : nullptr;
        }
    }
}

template <class T>
void set_direction(const Request& r, const Layer<T>& layer, const Tensors& given, Direction<T>& d) {
    const Index N = r.offsets.back(), H = layer.hidden, P = layer.output_size, G = weight_blocks(layer.cell);
    const Index I = r.input_size;  // 0 where the projected input is given
    d.input = I && !r.backward ? given.get<T>("input", N, I) : nullptr;
    d.weight_ih = I ? given.get<T>("weight_ih", G * H, I) : nullptr;
    d.weight_hh = given.get<T>("weight_hh", G * H, P);
    d.weight_hr = P != H ? given.get<T>("weight_hr", P, H) : nullptr;
    d.gates = G > 1 ? given.get<T>("gates", N, G * H) : nullptr;
    d.before = given.find<T>("before", N, P);
    d.last = G == 1 ? given.find<T>("last", layer.batch, P) : nullptr;
    d.cells = layer.cell == Cell::lstm ? given.find<T>("cells", N, H) : nullptr;
    d.inner = layer.cell == Cell::gru || d.weight_hr ? given.find<T>("inner", N, H) : nullptr;
    if (r.backward) return;
    d.bias_ih = given.find<T>("bias_ih", 1, G * H);
    d.bias_hh = given.find<T>("bias_hh", 1, G * H);
}

template <class T>
void set_gradient(const Request& r, const Layer<T>& layer, const Tensors& given, const Direction<T>& d, Gradient<T>& g) {
    const Index N = r.offsets.back();
    const bool lstm = layer.cell == Cell::lstm;
    if (!d.before && !lstm) refuse("before", "is missing");
    if (!d.inner && layer.cell == Cell::gru) refuse("inner", "is missing");
    if (!d.last && weight_blocks(layer.cell) == 1) refuse("last", "is missing");
    if (!d.cells && lstm) refuse("cells", "is missing");
    g.d_gates = given.get<T>("d_gates", N, static_cast<Index>(gradient_blocks(layer.cell)) * layer.hidden);
    g.d_input = d.weight_ih ? given.get<T>("d_input", N, r.input_size) : nullptr;
    g.d_hidden = d.weight_hr ? given.get<T>("d_hidden", N, layer.output_size) : nullptr;
}

template <class T>
void run(const Request& r) {
    const int count = static_cast<int>(r.directions.size());
    const Index P = r.output_size;
    Layer<T> layer{};
    layer.cell = r.cell;
    layer.steps = static_cast<int>(r.offsets.size()) - 1;
    layer.batch = static_cast<int>(r.offsets[1]);
    layer.input_size = r.input_size;
    layer.hidden = r.hidden;
    layer.output_size = r.output_size;
    layer.directions = count;
    layer.threads = r.threads;
    layer.output_stride = P * count;
    layer.offsets = r.offsets.data();
    T* output = Tensors::check<T>("output", r.output, r.offsets.back(), P * count);
    for (int i = 0; i < count; ++i) {
        Direction<T>& d = layer.direction[i];
        d.reverse = i == 1;
        set_direction(r, layer, r.directions[i], d);
        if (!r.backward) {
            d.output = output + i * P;
            continue;
        }
        set_gradient(r, layer, r.directions[i], d, layer.gradient[i]);
        layer.gradient[i].d_output = output + i * P;
    }
    set_states(r, layer);
    nb::gil_scoped_release unlocked;
    if constexpr (sizeof(T) == sizeof(float)) (r.backward ? kernels().backward_float : kernels().forward_float)(layer);
    else (r.backward ? kernels().backward_double : kernels().forward_double)(layer);
}

std::vector<Index> offsets_of(const std::vector<Index>& batch_sizes, const Array& output) {
    const Index columns = output.ndim() > 1 ? static_cast<Index>(output.shape(output.ndim() - 1)) : 0;
    const Index rows = columns > 0 ? static_cast<Index>(output.size()) / columns : 0;
    constexpr Index most = std::numeric_limits<int>::max();
    if (batch_sizes.empty()) refuse("batch_sizes", "should have a step");
    if (static_cast<Index>(batch_sizes.size()) > most || batch_sizes.front() > most)
        refuse("batch_sizes", "should be at most " + std::to_string(most) + ", and have as many steps at most");
    std::vector<Index> offsets{0};
    Index before = batch_sizes.front();
    for (const Index size : batch_sizes) {
        if (size < 1 || size > before) refuse("batch_sizes", "should be above zero and never rise");
        if (size > rows - offsets.back()) refuse("batch_sizes", "should have as many rows as the output");
        offsets.push_back(offsets.back() + size);
        before = size;
    }
    return offsets;
}

void recurrence(bool backward, const std::string& mode, int input_size, int hidden, int output_size, int threads,
                const std::vector<Index>& batch_sizes, Array output, const nb::dict& states,
                const std::vector<nb::dict>& directions) {
    const Cell cell = cell_named(mode);
    const bool projected = hidden != output_size;
    if (hidden < 1 || output_size < 1 || (projected && cell != Cell::lstm)) refuse("hidden", "does not fit");
    if (hidden > kMostSize || output_size > kMostSize) refuse("hidden", "should be at most " + std::to_string(kMostSize));
    if (input_size < 0 || input_size > kMostSize) refuse("input_size", "should be 0 to " + std::to_string(kMostSize));
    if (directions.empty() || directions.size() > 2) refuse("directions", "should be one or two");
    Request request{cell, input_size, hidden, output_size, checked_threads(threads),
                    offsets_of(batch_sizes, output), output, states, {}, backward};
    for (const nb::dict& each : directions) request.directions.emplace_back(each);
    if (output.dtype() == nb::dtype<float>()) run<float>(request);
    else if (output.dtype() == nb::dtype<double>()) run<double>(request);
    else refuse("output", "should be float32 or float64");
}

using Floats = nb::ndarray<float, nb::device::cpu, nb::c_contig>;

const float* of_size(const std::string& name, const Floats& array, std::size_t count) {
    if (array.size() != count) refuse(name, "should have " + std::to_string(count) + " numbers");
    return array.data();
}

using Bytes = nb::ndarray<std::uint8_t, nb::device::cpu, nb::c_contig>;

// Without `d_query` the scores are written, with it read; `d_keys` and `d_v` are made both or not at all.
void additive(const Floats& query, const Floats& keys, const Floats& v,
              const Bytes& padding,
              const std::optional<Ids>& given_counts, Floats scores,
              const std::optional<Floats>& d_query, const std::optional<Floats>& d_keys,
              const std::optional<Floats>& d_v, int threads) {
    if (query.ndim() != 3 || keys.ndim() != 3) refuse("query", "and keys should have three dimensions");
    const std::size_t B = keys.shape(0), S = keys.shape(1), K = keys.shape(2), T = query.shape(1);
    const bool backward = d_query.has_value();
    if (d_keys.has_value() != d_v.has_value() || (d_keys && !backward)) refuse("d_keys", "comes with d_query and d_v");
    if (padding.size() != B * S) refuse("padding", "should be B x S");
    checked_threads(threads);
    if (given_counts && given_counts->size() != B) refuse("counts", "should be B numbers");
    const std::vector<std::int64_t> counts = given_counts ? copied(*given_counts) : std::vector<std::int64_t>();
    for (const std::int64_t count : counts)
        if (count < 0 || count > std::int64_t(T)) refuse("counts", "should be from 0 to T");
    Additive a{Index(B), Index(T), Index(S), Index(K), of_size("query", query, B * T * K), keys.data(), of_size("v", v, K),
               padding.data(), given_counts ? counts.data() : nullptr, scores.data(), nullptr, nullptr, nullptr};
    of_size("scores", scores, B * T * S);
    if (backward) {
        of_size("d_query", *d_query, B * T * K);
        a.d_query = d_query->data();
    }
    if (d_keys) {
        of_size("d_keys", *d_keys, B * S * K), of_size("d_v", *d_v, std::size_t(threads) * K);
        a.d_keys = d_keys->data(), a.d_v = d_v->data();
    }
    nb::gil_scoped_release unlocked;
    std::vector<Index> work{0};  // of the sources before each
    for (std::size_t b = 0; b < B; ++b) {
        Index places = 0;
        for (std::size_t s = 0; s < S; ++s) places += !a.padding[b * S + s];
        work.push_back(work.back() + places * (a.counts ? a.counts[b] : a.queries) + 1);
    }
    auto body = [&](int index, int count) {
        const auto at = [&](int part) {
            return std::lower_bound(work.begin(), work.end(), work.back() * part / count) - work.begin();
        };
        kernels().additive(a, backward, at(index), at(index + 1), index);
    };
    parallel(threads, body);
}

void mixture(const Floats& weights, const Floats& states, const Bytes& padding, const Floats& seen, bool backward,
             int threads) {
    if (states.ndim() != 3 || weights.ndim() != 2) refuse("states", "should have three dimensions, weights two");
    const std::size_t B = states.shape(0), S = states.shape(1), M = states.shape(2), R = weights.shape(0);
    checked_threads(threads);
    if (R > B) refuse("weights", "should have no more rows than there are sources");
    if (padding.size() != B * S) refuse("padding", "should be B x S");
    of_size("weights", weights, R * S), of_size("seen", seen, R * M);
    const Mixture m{Index(S), Index(M), states.data(), padding.data(), weights.data(), seen.data()};
    nb::gil_scoped_release unlocked;
    auto body = [&](int index, int count) {
        kernels().mixture(m, backward, Index(R) * index / count, Index(R) * (index + 1) / count);
    };
    parallel(threads, body);
}

// The losses of some rows, whose logits become their gradients.
void surprise(Floats logits, const Ids& given, Floats losses, double smoothing, int threads) {
    if (logits.ndim() != 2) refuse("logits", "should have two dimensions");
    const Index N = static_cast<Index>(logits.shape(0)), V = static_cast<Index>(logits.shape(1));
    checked_threads(threads);
    const std::vector<std::int64_t> targets = copied(given);
    if (targets.size() != std::size_t(N)) refuse("targets", "should be " + std::to_string(N));
    of_size("losses", losses, std::size_t(N));
    for (const std::int64_t target : targets)
        if (target < 0 || target >= V)
            throw std::out_of_range("target " + std::to_string(target) + " is not from 0 to " + std::to_string(V - 1));
    nb::gil_scoped_release unlocked;
    auto body = [&](int index, int count) {
        for (Index n = N * index / count; n < N * (index + 1) / count; ++n)
            losses.data()[n] =
                static_cast<float>(kernels().surprise(logits.data() + n * V, V, targets[n], smoothing));
    };
    parallel(threads, body);
}

}  // namespace
}  // namespace elman

NB_MODULE(_kernels, m) {
    namespace nb = nanobind;
    m.def("instruction_sets", elman::instruction_sets, "What this processor can run, the lowest first.");
    m.def("instruction_set", [] { return std::string(elman::kernels().name); }, "The one in use.");
    m.def("use", elman::use, nb::arg("instruction_set"), "Choose one of `instruction_sets()`.");
    m.def("thread_library", [] { return std::string(elman::thread_library()); }, "Whose threads the kernels run on.");
    m.def("recurrence", elman::recurrence, nb::arg("backward"), nb::arg("mode"), nb::arg("input_size"),
          nb::arg("hidden"), nb::arg("output_size"), nb::arg("threads"), nb::arg("batch_sizes"), nb::arg("output"),
          nb::arg("states"), nb::arg("directions"),
          "Run one layer through all steps, or back; see recurrence.hpp for the tensors.");
    // What is written to must not be a copy that nanobind made to have it in the right type.
    m.def("additive", elman::additive, nb::arg("query"), nb::arg("keys"), nb::arg("v"), nb::arg("padding"),
          nb::arg("counts").noconvert().none(), nb::arg("scores").noconvert(), nb::arg("d_query").noconvert().none(),
          nb::arg("d_keys").noconvert().none(), nb::arg("d_v").noconvert().none(), nb::arg("threads"),
          "Scores of additive attention, or their gradients; see attention.hpp.");
    m.def("mixture", elman::mixture, nb::arg("weights").noconvert(), nb::arg("states"), nb::arg("padding"),
          nb::arg("seen").noconvert(), nb::arg("backward"), nb::arg("threads"),
          "What rows see, or their weights' gradients; see attention.hpp.");
    m.def("surprise", elman::surprise, nb::arg("logits").noconvert(), nb::arg("targets").noconvert(),
          nb::arg("losses").noconvert(),
          nb::arg("smoothing"), nb::arg("threads"), "The loss of each row; the logits become its gradient; see softmax.cpp.");
    elman::note_main_thread();
    elman::bind_runtime(m);
    elman::bind_encoder(m);
    elman::bind_decoder(m);
}
