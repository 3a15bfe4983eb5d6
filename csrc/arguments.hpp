// What Python hands over, checked: arrays of the right type and size, so that no kernel reads what is not there.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "packed.hpp"

namespace elman {

namespace nb = nanobind;

using Array = nb::ndarray<nb::device::cpu>;
using Constant = nb::ndarray<nb::ro, nb::device::cpu>;
template <class T>
using ContiguousArray = nb::ndarray<const T, nb::device::cpu, nb::c_contig>;
using Ids = ContiguousArray<std::int64_t>;
using Numbers = ContiguousArray<float>;
using Floats = nb::ndarray<float, nb::device::cpu, nb::c_contig>;  // that are written to

constexpr int kMostThreads = 1024;

[[noreturn]] inline void refuse(const std::string& why) { throw std::invalid_argument(why); }

[[noreturn]] inline void refuse(const std::string& name, const std::string& why) { refuse(name + " " + why); }

inline int checked_threads(int threads) {
    if (threads < 1 || threads > kMostThreads) refuse("threads should be 1 to " + std::to_string(kMostThreads));
    return threads;
}

inline int checked_rows(std::size_t rows) {
    if (rows < 1 || rows > kMostRows) refuse("there should be 1 to " + std::to_string(kMostRows) + " rows");
    return static_cast<int>(rows);
}

inline const float* of_size(const std::string& name, const Floats& array, std::size_t count) {
    if (array.size() != count) refuse(name, "should have " + std::to_string(count) + " numbers");
    return array.data();
}

// An array that another thread may overwrite as soon as the lock is released: what is checked is this copy of it.
template <class T>
std::vector<T> copied(const ContiguousArray<T>& array) {
    return std::vector<T>(array.data(), array.data() + array.size());
}

// A copy likewise, of `count` numbers from 0 to `below` - 1.
template <class T>
std::vector<int> checked_ids(const char* what, const ContiguousArray<T>& ids, Index count, Index below) {
    if (static_cast<Index>(ids.size()) != count) refuse(std::string(what) + " should be " + std::to_string(count));
    std::vector<int> found(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const T id = *const_cast<const volatile T*>(ids.data() + i);  // read once
        if (id < 0 || id >= below)
            refuse(std::string(what) + " must lie in 0 to " + std::to_string(below - 1) + ", not " +
                   std::to_string(id));
        found[i] = static_cast<int>(id);
    }
    return found;
}

// The steps of each text, and of all.
inline std::vector<int> checked_lengths(const Ids& lengths, Index& rows) {
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

// A dictionary of sizes and arrays. The arrays are kept as long as it lives.
class Arguments {
  public:
    explicit Arguments(const nb::dict& values) : values_(values) {}

    int size(const char* name) const {
        const int size = cast<int>(name, "a whole number");
        if (size < 0 || size > kMostSize) refuse(std::string(name) + " should be 0 to " + std::to_string(kMostSize));
        return size;
    }
    float number(const char* name) const { return cast<float>(name, "a number"); }
    bool flag(const char* name) const { return cast<bool>(name, "true or false"); }
    std::string text(const char* name) const { return cast<std::string>(name, "a text"); }
    std::vector<nb::dict> parts(const char* name) const { return cast<std::vector<nb::dict>>(name, "a list of parts"); }
    std::vector<Index> sizes(const char* name) const {
        auto sizes = cast<std::vector<Index>>(name, "a list of whole numbers");
        for (const Index size : sizes)
            if (size < 1 || size > kMostSize)
                refuse(std::string(name) + " should be 1 to " + std::to_string(kMostSize));
        return sizes;
    }

    // Exactly `count` numbers, or null where there is None.
    const float* numbers(const char* name, Index count) {
        const nb::object value = get(name);
        if (value.is_none()) return nullptr;
        const Constant array = keep<float>(name, value);
        if (static_cast<Index>(array.size()) != count)
            refuse(std::string(name) + " should have " + std::to_string(count) + " numbers");
        return static_cast<const float*>(array.data());
    }

    // A matrix of float32, or a pair of an int8 matrix and a scale for each of its rows; empty where there is None.
    Plain matrix(const char* name) {
        const nb::object value = get(name);
        if (value.is_none()) return {};
        Plain plain;
        const bool pair = nb::isinstance<nb::tuple>(value);
        if (pair && nb::len(value) != 2) refuse(std::string(name) + " should be a matrix and its scales");
        const Constant array = pair ? keep<std::int8_t>(name, value[0]) : keep<float>(name, value);
        if (array.ndim() != 2 || array.size() == 0) refuse(std::string(name) + " should be a matrix");
        plain.rows = static_cast<Index>(array.shape(0));
        plain.columns = static_cast<Index>(array.shape(1));
        if (pair) {
            plain.bytes = static_cast<const std::int8_t*>(array.data());
            const Constant scale = keep<float>(name, value[1]);
            if (static_cast<Index>(scale.size()) != plain.rows)
                refuse(std::string(name) + " should have a scale a row");
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
    T cast(const char* name, const char* what) const {
        T value;
        if (!nb::try_cast(get(name), value)) refuse(std::string(name) + " should be " + what);
        return value;
    }

    template <class T>
    Constant keep(const char* name, const nb::handle& value) {
        Constant array;
        if (value.is_none() || !nb::try_cast(value, array)) refuse(std::string(name) + " should be an array");
        if (array.dtype() != nb::dtype<T>()) refuse(std::string(name) + " has another type of number than it should");
        Index step = 1;
        for (std::size_t i = array.ndim(); i-- > 0; step *= static_cast<Index>(array.shape(i)))
            if (array.shape(i) > 1 && array.stride(i) != step) refuse(std::string(name) + " should be contiguous");
        kept_.push_back(array);
        return array;
    }

    nb::dict values_;
    std::vector<Constant> kept_;
};

// The value of a name; `what` it is of is said where there is no such name.
template <class T>
T named(const char* what, const std::string& name, const std::vector<std::pair<const char*, T>>& known) {
    std::string names;
    for (std::size_t i = 0; i < known.size(); ++i) {
        if (name == known[i].first) return known[i].second;
        names += (i == 0 ? "" : i + 1 == known.size() ? " or " : ", ") + std::string(known[i].first);
    }
    refuse(std::string(what) + " should be " + names);
}

inline Cell cell_named(const std::string& name) {
    return named<Cell>("cell", name,
                       {{"RNN_TANH", Cell::tanh_rnn},
                        {"RNN_RELU", Cell::relu_rnn},
                        {"RNN_LOGISTIC", Cell::logistic_rnn},
                        {"RNN_IDENTITY", Cell::identity_rnn},
                        {"LSTM", Cell::lstm},
                        {"GRU", Cell::gru}});
}

template <class T>
nb::ndarray<nb::numpy, T> to_python(std::vector<T>&& numbers, std::vector<std::size_t> shape) {
    auto* owned = new std::vector<T>(std::move(numbers));
    nb::capsule owner(owned, [](void* memory) noexcept { delete static_cast<std::vector<T>*>(memory); });
    return nb::ndarray<nb::numpy, T>(owned->data(), shape.size(), shape.data(), owner);
}

}  // namespace elman
