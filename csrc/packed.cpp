#include "packed.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <cstdlib>
#include <new>

namespace elman {
namespace {

// Where row `unit` of block `block` stands among the columns of all panels.
Index panel_place(int blocks, int block, Index unit, int lanes) {
    return unit / lanes * lanes * blocks + static_cast<Index>(block) * lanes + unit % lanes;
}

// Calls put(column among all panels, row of the matrix) for each row.
template <class Put>
void for_rows(int blocks, Index units, int lanes, Put put) {
    for (int block = 0; block < blocks; ++block)
        for (Index unit = 0; unit < units; ++unit) put(panel_place(blocks, block, unit, lanes), block * units + unit);
}

}  // namespace

void* allocate_pages(Index bytes) {
    constexpr Index kPage = Index(2) << 20;
    if (bytes < kPage) return allocate(bytes);
    const auto size = static_cast<std::size_t>((bytes + kPage - 1) / kPage * kPage);
    void* memory = std::aligned_alloc(kPage, size);
    if (!memory) throw std::bad_alloc();
#if defined(__linux__)
    madvise(memory, size, MADV_HUGEPAGE);  // a wish: small pages do as well, a little slower
#endif
    return memory;
}

PackedMatrix::PackedMatrix(const Plain& from, int blocks, const std::vector<Index>& parts, int lanes) {
    const Index units = from.rows / blocks, columns = padded(units, lanes) * blocks;
    std::vector<Index> place;  // of each column of `from` in the padded vector
    Index size = 0;
    for (const Index part : parts) {
        for (Index i = 0; i < part; ++i) place.push_back(size + i);
        size += padded(part, lanes);
    }
    matrix_.blocks = blocks;
    matrix_.units = static_cast<int>(units);
    matrix_.size = static_cast<int>(size);
    // Registers of a panel: a whole one of each gate, or four, the last panel having what is left.
    const Index registers = columns / lanes;
    const auto panel_of = [&](Index column, Index& panel_column, Index& width) {
        const Index most = blocks > 1 ? blocks : 4;
        const Index panel = column / lanes / most;
        const Index left = registers - panel * most;
        panel_column = panel * most * lanes;
        width = (left < most ? left : most) * lanes;
    };
    if (from.numbers) {
        numbers_ = Buffer<float>(columns * size);
        for_rows(blocks, units, lanes, [&](Index column, Index row) {
            Index begin, width;
            panel_of(column, begin, width);
            float* to = numbers_ + begin * size + (column - begin);
            for (Index k = 0; k < from.columns; ++k) to[place[k] * width] = from.numbers[row * from.columns + k];
        });
        matrix_.data = numbers_.get();
        return;
    }
    bytes_ = Buffer<std::int8_t>(columns * size);
    scale_ = Buffer<float>(columns);
    total_ = Buffer<std::int32_t>(columns);
    for_rows(blocks, units, lanes, [&](Index column, Index row) {
        Index begin, width;
        panel_of(column, begin, width);
        std::int8_t* to = bytes_ + begin * size + (column - begin) * 4;
        for (Index k = 0; k < from.columns; ++k) {
            const std::int8_t weight = from.bytes[row * from.columns + k];
            to[place[k] / 4 * width * 4 + place[k] % 4] = weight;
            total_[column] += weight;
        }
        scale_[column] = from.scale[row];
    });
    matrix_.data = bytes_.get();
    matrix_.scale = scale_;
    matrix_.total = total_;
}

Buffer<float> pack_rows(const float* from, Index rows, int blocks, Index units, int lanes, float filler) {
    const Index columns = padded(units, lanes) * blocks;
    Buffer<float> packed(rows * columns);
    for (Index row = 0; row < rows; ++row) {
        float* to = packed + row * columns;
        if (filler != 0)
            for (Index i = 0; i < columns; ++i) to[i] = filler;
        for_rows(blocks, units, lanes, [&](Index column, Index i) { to[column] = from[row * blocks * units + i]; });
    }
    return packed;
}

}  // namespace elman
