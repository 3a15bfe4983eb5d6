// One layer through all steps, as Python sees it; see recurrence_kernel.hpp. Tensors come in by DLPack and are checked
// here.
#include <limits>
#include <map>

#include "arguments.hpp"
#include "bindings.hpp"
#include "dispatch.hpp"

namespace elman {
namespace {

// The tensors of one direction, by name. They are kept until the kernel has run.
class Tensors {
  public:
    Tensors(const nb::dict& tensors) {
        for (auto [key, tensor] : tensors) {
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
    Array output;    // N x D*P; backwards: its gradient
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
void set_direction(const Request& r, const Layer<T>& layer, const Tensors& tensors, Direction<T>& d) {
    const Index N = r.offsets.back(), H = layer.hidden, P = layer.output_size, G = weight_blocks(layer.cell);
    const Index I = r.input_size;  // 0 where the projected input comes in
    d.input = I && !r.backward ? tensors.get<T>("input", N, I) : nullptr;
    d.weight_ih = I ? tensors.get<T>("weight_ih", G * H, I) : nullptr;
    d.weight_hh = tensors.get<T>("weight_hh", G * H, P);
    d.weight_hr = P != H ? tensors.get<T>("weight_hr", P, H) : nullptr;
    d.gates = G > 1 ? tensors.get<T>("gates", N, G * H) : nullptr;
    d.before = tensors.find<T>("before", N, P);
    d.last = G == 1 ? tensors.find<T>("last", layer.batch, P) : nullptr;
    d.cells = layer.cell == Cell::lstm ? tensors.find<T>("cells", N, H) : nullptr;
    d.inner = layer.cell == Cell::gru || d.weight_hr ? tensors.find<T>("inner", N, H) : nullptr;
    if (r.backward) return;
    d.bias_ih = tensors.find<T>("bias_ih", 1, G * H);
    d.bias_hh = tensors.find<T>("bias_hh", 1, G * H);
}

template <class T>
void set_gradient(const Request& r, const Layer<T>& layer, const Tensors& tensors, const Direction<T>& d,
                  Gradient<T>& g) {
    const Index N = r.offsets.back();
    const bool lstm = layer.cell == Cell::lstm;
    if (!d.before && !lstm) refuse("before", "is missing");
    if (!d.inner && layer.cell == Cell::gru) refuse("inner", "is missing");
    if (!d.last && weight_blocks(layer.cell) == 1) refuse("last", "is missing");
    if (!d.cells && lstm) refuse("cells", "is missing");
    g.d_gates = tensors.get<T>("d_gates", N, static_cast<Index>(gradient_blocks(layer.cell)) * layer.hidden);
    g.d_input = d.weight_ih ? tensors.get<T>("d_input", N, r.input_size) : nullptr;
    g.d_hidden = d.weight_hr ? tensors.get<T>("d_hidden", N, layer.output_size) : nullptr;
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
    if (hidden > kMostSize || output_size > kMostSize)
        refuse("hidden", "should be at most " + std::to_string(kMostSize));
    if (input_size < 0 || input_size > kMostSize) refuse("input_size", "should be 0 to " + std::to_string(kMostSize));
    if (directions.empty() || directions.size() > 2) refuse("directions", "should be one or two");
    Request request{cell,   input_size, hidden, output_size, checked_threads(threads), offsets_of(batch_sizes, output),
                    output, states,     {},     backward};
    for (const nb::dict& each : directions) request.directions.emplace_back(each);
    if (output.dtype() == nb::dtype<float>()) run<float>(request);
    else if (output.dtype() == nb::dtype<double>()) run<double>(request);
    else refuse("output", "should be float32 or float64");
}

}  // namespace

void bind_recurrence(nb::module_& m) {
    m.def("recurrence", recurrence, nb::arg("backward"), nb::arg("mode"), nb::arg("input_size"), nb::arg("hidden"),
          nb::arg("output_size"), nb::arg("threads"), nb::arg("batch_sizes"), nb::arg("output"), nb::arg("states"),
          nb::arg("directions"),
          "The forward or the backward pass of one layer; see recurrence_kernel.hpp for the tensors.");
}

}  // namespace elman
