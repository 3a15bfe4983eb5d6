// Weights in the order in which the streaming kernels read them.
#pragma once

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "dispatch.hpp"
#include "engine_kernel.hpp"

namespace elman {

// Throws std::invalid_argument for weights whose shapes do not fit together.
inline void require(bool fits, const std::string& what) {
    if (!fits) throw std::invalid_argument(what + " does not fit the rest of the network");
}

// Memory for numbers that are read over and over: in large pages where it is large. Throws std::bad_alloc; `release`
// frees it.
void* allocate_pages(Index bytes);

// Memory that begins at a cache line, all zeros.
template <class T>
class Buffer {
  public:
    Buffer() = default;
    explicit Buffer(Index count) : data_(static_cast<T*>(allocate_pages(count * static_cast<Index>(sizeof(T))))) {
        std::memset(static_cast<void*>(data_.get()), 0, static_cast<std::size_t>(count) * sizeof(T));
    }
    T* get() const { return data_.get(); }
    operator T*() const { return data_.get(); }

  private:
    struct Release {
        void operator()(T* memory) const { release(memory); }
    };
    std::unique_ptr<T, Release> data_;
};

inline Index padded(Index size, int lanes) { return (size + lanes - 1) / lanes * lanes; }

// A matrix as it comes in: row-major, float32, or int8 with one scale a row.
struct Plain {
    const float* numbers = nullptr;
    const std::int8_t* bytes = nullptr;
    const float* scale = nullptr;
    Index rows = 0, columns = 0;
    explicit operator bool() const { return numbers || bytes; }
};

// The memory of a packed matrix.
class PackedMatrix {
  public:
    PackedMatrix() = default;

    // The columns are those of one vector, or of several that lie side by side, each padded: `parts` has their sizes.
    PackedMatrix(const Plain& from, int blocks, const std::vector<Index>& parts, int lanes);
    const Matrix& matrix() const { return matrix_; }

  private:
    Matrix matrix_;
    Buffer<float> numbers_, scale_;
    Buffer<std::int8_t> bytes_;
    Buffer<std::int32_t> total_;
};

// Rows of blocks * units numbers (a bias, a table) in the order of the panels of a matrix; `filler` in the padding.
Buffer<float> pack_rows(const float* from, Index rows, int blocks, Index units, int lanes, float filler = 0);

}  // namespace elman
