// What the forward and the backward pass of a layer share: whose sequences are whose, and the memory and products of a
// core.
//
// Sequences do not see each other, so each core takes some of them through all steps and never waits for another core.
// Each number is summed up in the same order whatever the tile or the core, so results do not depend on either.
#pragma once

#include "dispatch.hpp"
#include "panels.hpp"
#include "recurrence_kernel.hpp"
#include "threads.hpp"

namespace elman::ELMAN_ISA {

template <class T>
class Memory {  // aligned, freed at the end of its scope
  public:
    explicit Memory(Index count) : data_(static_cast<T*>(allocate(count * static_cast<Index>(sizeof(T))))) {}
    ~Memory() { release(data_); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    operator T*() const { return data_; }

  private:
    T* data_;
};

// The sequences of one direction that one core runs.
struct Share {
    int direction, begin, end;
};

// What a core computes with besides the layer.
template <class T>
struct Member {
    int index;
    T* sums;   // kChunk x 4 registers
    T* inner;  // kChunk x H; with a projection
    Interrupt& interrupt;
};

// The memory of all cores, asked for before they begin: where there is no more, only the caller can say so.
template <class T>
class Room {
  public:
    explicit Room(const Layer<T>& layer)
        : inner_(layer.direction[0].weight_hr ? static_cast<Index>(kChunk) * layer.hidden : 0),
          memory_(layer.threads * (kSums + inner_)) {}
    Member<T> member(int index, Interrupt& interrupt) const {
        T* begin = memory_ + index * (kSums + inner_);
        return {index, begin, begin + kSums, interrupt};
    }

  private:
    static constexpr Index kSums = static_cast<Index>(kChunk) * kMostVectors * kLanes<T>;
    Index inner_;
    Memory<T> memory_;
};

inline int sequence_length(const Index* offsets, int steps, int row) {
    int low = 0, high = steps;  // the first step that has no such row
    while (low < high) {
        const int middle = (low + high) / 2;
        if (offsets[middle + 1] - offsets[middle] > row) low = middle + 1;
        else high = middle;
    }
    return low;
}

// Calls run(share) for the shares of core `index` of `count`: contiguous sequences with an equal number of steps.
template <class T, class Run>
void for_shares(const Layer<T>& layer, int index, int count, Run run) {
    const Index total = 2 * layer.offsets[layer.steps] * layer.directions;
    Index done = 0;  // twice the steps before this sequence
    for (int direction = 0; direction < layer.directions; ++direction) {
        Share share{direction, layer.batch, 0};
        for (int row = 0; row < layer.batch; ++row) {
            const int length = sequence_length(layer.offsets, layer.steps, row);
            if ((done + length) * count / total == index) {  // its middle falls into this core's part
                share.begin = row < share.begin ? row : share.begin;
                share.end = row + 1;
            }
            done += 2 * static_cast<Index>(length);
        }
        if (share.begin < share.end) run(share);
    }
}

// Calls run(s, t, first row, rows) for step t, the s-th in their order, a chunk of its rows at a time.
template <class T, class Run>
void for_chunks(const Layer<T>& layer, const Share& share, const Member<T>& member, bool last_first, Run run) {
    const Index products = static_cast<Index>(weight_blocks(layer.cell)) * layer.hidden *
                           (static_cast<Index>(layer.input_size) + layer.output_size);
    for (int s = 0; s < layer.steps; ++s) {
        const int t = last_first ? layer.steps - 1 - s : s;
        const int rows = static_cast<int>(layer.offsets[t + 1] - layer.offsets[t]);
        const int end = rows < share.end ? rows : share.end;
        const int count = end - share.begin, chunks = (count + kChunk - 1) / kChunk;
        for (int i = 0; i < chunks; ++i) {
            const Range chunk = share_of(count, i, chunks);
            if (member.interrupt.stops(member.index, products * (chunk.end - chunk.begin))) return;
            run(s, t, share.begin + chunk.begin, chunk.end - chunk.begin);
        }
    }
}

// A copy of a state, or zeros where there is none.
template <class T>
void copy_state(T* to, const T* from, Index count) {
    if (from) std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
    else std::memset(to, 0, static_cast<std::size_t>(count) * sizeof(T));
}

// The sums of one panel to their columns of some rows.
template <class T>
void write_panel(const Panels<T>& panels, int p, int rows, const T* sums, T* to, Index stride) {
    const Index width = panels.vectors(p) * kLanes<T>;
    for (int r = 0; r < rows; ++r)
        std::memcpy(to + r * stride + panels.first_column(p), sums + r * width,
                    static_cast<std::size_t>(panels.columns(p)) * sizeof(T));
}

// `to` (rows x N) = `a` (rows x K) times a packed matrix.
template <class T>
void multiply_matrix(const Panels<T>& panels, const T* packed, const T* a, Index a_stride, int rows, T* sums, T* to,
                     Index stride) {
    for (int p = 0; p < panels.count(); ++p) {
        multiply_panel(panels.vectors(p), a, a_stride, rows, packed + panels.offset(p), panels.K, sums);
        write_panel(panels, p, rows, sums, to, stride);
    }
}

}  // namespace elman::ELMAN_ISA
