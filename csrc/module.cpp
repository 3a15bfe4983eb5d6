// The Python module elman._kernels. Tensors come in by DLPack and are checked here, so that the kernels need not be.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <stdexcept>

#include "dispatch.hpp"
#include "runtime.hpp"
#include "threads.hpp"

namespace nb = nanobind;
using Array = nb::ndarray<nb::device::cpu>;

namespace elman {
namespace {

const std::map<std::string, Cell> kCells = {
    {"RNN_TANH", Cell::tanh_rnn}, {"RNN_RELU", Cell::relu_rnn}, {"LSTM", Cell::lstm}, {"GRU", Cell::gru}};

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
    T* find(const std::string& name, long rows, long columns) const {
        const auto found = arrays_.find(name);
        return found == arrays_.end() ? nullptr : check<T>(name, found->second, rows, columns);
    }

    template <class T>
    T* get(const std::string& name, long rows, long columns) const {
        T* data = find<T>(name, rows, columns);
        if (!data) refuse(name, "is missing");
        return data;
    }

    template <class T>
    static T* check(const std::string& name, const Array& array, long rows, long columns) {
        if (array.dtype() != nb::dtype<T>()) refuse(name, "has another type of number than the rest");
        if (array.ndim() != 2 || long(array.shape(0)) != rows || long(array.shape(1)) != columns)
            refuse(name, "should be " + std::to_string(rows) + " x " + std::to_string(columns));
        if ((columns > 1 && array.stride(1) != 1) || (rows > 1 && array.stride(0) != columns))
            refuse(name, "should be contiguous");
        return static_cast<T*>(const_cast<void*>(static_cast<const void*>(array.data())));
    }

  private:
    std::map<std::string, Array> arrays_;
};

struct Request {
    Cell cell;
    int hidden, output_size, threads;
    std::vector<long> offsets;
    Array output;  // N x D*P; backwards: its gradient
    std::vector<Tensors> directions;
    bool backward;
};

template <class T>
void run(const Request& r) {
    const long N = r.offsets.back(), B = r.offsets[1], H = r.hidden, P = r.output_size;
    const long columns = gate_blocks(r.cell) * H;
    const int count = static_cast<int>(r.directions.size());
    Layer<T> layer{};
    layer.cell = r.cell;
    layer.steps = static_cast<int>(r.offsets.size()) - 1;
    layer.batch = static_cast<int>(B);
    layer.hidden = r.hidden;
    layer.output_size = r.output_size;
    layer.directions = count;
    layer.threads = r.threads;
    layer.output_stride = P * count;
    layer.offsets = r.offsets.data();
    T* output = Tensors::check<T>("output", r.output, N, P * count);
    const bool lstm = r.cell == Cell::lstm;
    for (int i = 0; i < count; ++i) {
        const Tensors& given = r.directions[i];
        Direction<T>& d = layer.direction[i];
        d.reverse = i == 1;
        d.weight_hh = given.get<T>("weight_hh", weight_blocks(r.cell) * H, P);
        d.weight_hr = P != H ? given.get<T>("weight_hr", P, H) : nullptr;
        d.gates = given.get<T>("gates", N, columns);
        d.before = given.find<T>("before", N, P);
        d.cells = lstm ? given.find<T>("cells", N, H) : nullptr;
        if (!r.backward) {
            d.bias = given.find<T>("bias", 1, columns);
            d.output = output + i * P;
            d.h = given.get<T>("h", B, P);
            d.c = lstm ? given.get<T>("c", B, H) : nullptr;
            d.inner = d.weight_hr ? given.find<T>("inner", N, H) : nullptr;
            continue;
        }
        Gradient<T>& g = layer.gradient[i];
        if (r.cell == Cell::gru && !d.before) refuse("before", "is missing");
        if (lstm && !d.cells) refuse("cells", "is missing");
        g.d_output = output + i * P;
        g.d_gates = given.get<T>("d_gates", N, columns);
        g.d_h = given.get<T>("d_h", B, P);
        g.c0 = lstm ? given.get<T>("c", B, H) : nullptr;
        g.d_c = lstm ? given.get<T>("d_c", B, H) : nullptr;
        g.d_hidden = d.weight_hr ? given.get<T>("d_hidden", N, P) : nullptr;
    }
    nb::gil_scoped_release unlocked;
    if constexpr (sizeof(T) == sizeof(float)) (r.backward ? kernels().backward_float : kernels().forward_float)(layer);
    else (r.backward ? kernels().backward_double : kernels().forward_double)(layer);
}

std::vector<long> offsets_of(const std::vector<long>& batch_sizes, const Array& output) {
    const long rows = output.ndim() == 2 ? static_cast<long>(output.shape(0)) : 0;
    if (batch_sizes.empty()) refuse("batch_sizes", "should have a step");
    std::vector<long> offsets{0};
    long before = batch_sizes.front();
    for (const long size : batch_sizes) {
        if (size < 1 || size > before) refuse("batch_sizes", "should be above zero and never rise");
        if (size > rows - offsets.back()) refuse("batch_sizes", "should have as many rows as the output");
        offsets.push_back(offsets.back() + size);
        before = size;
    }
    return offsets;
}

void recurrence(bool backward, const std::string& mode, int hidden, int output_size, int threads,
                const std::vector<long>& batch_sizes, Array output, const std::vector<nb::dict>& directions) {
    const auto cell = kCells.find(mode);
    if (cell == kCells.end()) refuse("mode", "should be RNN_TANH, RNN_RELU, LSTM or GRU");
    const bool projected = hidden != output_size;
    if (hidden < 1 || output_size < 1 || (projected && cell->second != Cell::lstm)) refuse("hidden", "does not fit");
    if (directions.empty() || directions.size() > 2) refuse("directions", "should be one or two");
    Request request{cell->second, hidden, output_size, threads < 1 ? 1 : threads, offsets_of(batch_sizes, output), output, {}, backward};
    for (const nb::dict& each : directions) request.directions.emplace_back(each);
    if (output.dtype() == nb::dtype<float>()) run<float>(request);
    else if (output.dtype() == nb::dtype<double>()) run<double>(request);
    else refuse("output", "should be float32 or float64");
}

}  // namespace
}  // namespace elman

NB_MODULE(_kernels, m) {
    m.def("instruction_sets", elman::instruction_sets, "What this processor can run, the lowest first.");
    m.def("instruction_set", [] { return std::string(elman::kernels().name); }, "The one in use.");
    m.def("use", elman::use, nb::arg("instruction_set"), "Choose one of `instruction_sets()`.");
    m.def("thread_library", [] { return std::string(elman::thread_library()); }, "Whose threads the kernels run on.");
    m.def("recurrence", elman::recurrence, nb::arg("backward"), nb::arg("mode"), nb::arg("hidden"),
          nb::arg("output_size"), nb::arg("threads"), nb::arg("batch_sizes"), nb::arg("output"), nb::arg("directions"),
          "Run one layer through all steps, or back; see recurrence.hpp for the tensors.");
    elman::bind_runtime(m);
}
