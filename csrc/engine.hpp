// A trained language model, packed and never changed again, and the memory in which rows of text are read by it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "barrier.hpp"
#include "packed.hpp"
#include "spare.hpp"

namespace elman {

// The weights of a layer as they come in: PyTorch's order of gates, row-major.
struct LayerWeights {
    Plain input;                         // gates*H x what the layer sees; none where `table` holds all of it
    Plain hidden;                        // gates*H x P
    Plain projection;                    // P x H; none without
    const float* bias = nullptr;         // gates*H
    const float* table = nullptr;        // V x gates*H: token and bias; null where the token is multiplied out
    const float* labels = nullptr;       // labels x gates*H; null where there is no label, or it is multiplied out
    const float* hidden_bias = nullptr;  // H; GRU only
};

struct Weights {
    Cell cell;
    int vocabulary, hidden, output, labels;
    bool residual, dense;
    int token_size = 0, label_size = 0, fed_size = 0;  // of what the first layer sees, where it is needed as a vector
    Plain tokens;                                      // V x token_size
    const float* label_vectors = nullptr;              // labels x label_size
    std::vector<LayerWeights> layers;
    Plain bridge, softmax;  // softmax: V x what it sees
    const float* bridge_bias = nullptr;
    bool bridge_tanh = false;             // the softmax sees the hyperbolic tangent of the bridge
    std::vector<Index> bridge_parts;      // sizes of the vectors that the bridge sees side by side; none: the output
    const float* softmax_bias = nullptr;  // V
    const float* initial = nullptr;       // the state before the first step, `state_size` numbers
};

class Stream;

// Several threads of a program may use one at once.
class Engine {
  public:
    // Copies all that it needs. The kernels are those in use now. Throws std::invalid_argument where shapes do not fit.
    explicit Engine(const Weights& weights);
    ~Engine();

    const Kernels& kernels() const { return kernels_; }
    const StreamNetwork& network() const { return network_; }
    int vocabulary() const { return network_.vocabulary; }
    int labels() const { return labels_; }
    Index state_size() const { return state_size_; }  // numbers of a row's state: for each layer h, then c
    const float* initial() const { return initial_.data(); }
    Index bytes() const { return bytes_; }      // of the weights that a step of one row reads
    int threads_for(int rows, int most) const;  // as many of `most` as make a step quicker
    int hidden() const { return hidden_; }
    int output() const { return output_; }

    // The log-probabilities of the next id (B x V) and the states (B x state_size) after reading one id a row.
    void step(int rows, const int* ids, const int* labels, const float* states, float* log_probs, float* after,
              int threads) const;

    // The log-probability of each target (B x T) after the inputs up to its place (B x T); states are changed in place.
    void score(int rows, Index steps, const int* inputs, const int* targets, const int* labels, float* states,
               double* log_probs, int threads) const;

  private:
    void add_layer(const Weights& weights, std::size_t depth);
    void check_seen(const Weights& weights) const;

    const Kernels& kernels_;
    StreamNetwork network_{};
    int hidden_, output_, labels_;
    Index state_size_, bytes_ = 0;
    std::vector<StreamLayer> layers_;
    std::vector<PackedMatrix> matrices_;
    std::vector<Buffer<float>> rows_;
    Buffer<std::int8_t> token_bytes_;
    std::vector<float> initial_;
    mutable Spare<Stream> streams_;  // for `step`

    Matrix keep(const Plain& from, int blocks, const std::vector<Index>& parts);
    const float* keep_rows(const float* from, Index rows, int blocks, Index units, float filler = 0);
};

// Rows of text that are read side by side: their state, and room to compute in.
class Stream {
  public:
    // `rows` texts; logits are made for up to `vectors` at a time, or with 0 in the caller's own memory.
    Stream(const Engine& engine, int rows, int vectors, int threads);

    void begin();                                     // every row at the initial state
    void load(const float* states, Index apart = 0);  // B x state_size, or rows so far apart
    void save(float* states, Index apart = 0) const;
    void load_row(int row, const float* state);
    void save_row(int row, float* state) const;
    void gather(
        const std::vector<int>& rows);  // go on with these rows: a later or equal one in each place, or the first
    void set_rows(int rows) { work_.rows = rows; }
    int rows() const { return work_.rows; }
    int* ids() { return ids_.data(); }
    int* labels() { return labels_.data(); }
    void feed(const float* rows, Index apart) { work_.fed = rows, work_.fed_stride = apart; }
    int threads() const { return static_cast<int>(scratch_.size()); }
    int capacity() const { return work_.capacity; }

    // The next four are called by every thread of a region, with its number and the number of threads.
    void step(int index, int count) { engine_.kernels().stream_step(engine_.network(), work_, index, count); }
    void logits(const float* top, int rows, int index, int count) {
        logits(top, stride(), rows, logits_, index, count);
    }
    void logits(const float* top, Index apart, int rows, float* to, int index, int count) {
        engine_.kernels().stream_logits(engine_.network(), work_, top, apart, rows, to, index, count);
    }
    bool wait(int count, bool stop = false) { return barrier_.wait(count, stop); }
    void turn(int index) {  // after a step, by one of them: the next state becomes the present one
        if (index == 0) work_.turn = 1 - work_.turn;
    }

    const float* top() const;                               // what the last layer gives after a step, before the turn
    const float* bridged() const { return work_.bridged; }  // what the softmax saw, where there is a bridge to it
    float* h(int depth, int row) const;                     // of the present state
    Index stride() const { return engine_.network().output; }
    const float* row_logits(int row) const { return logits_ + row * padded_; }
    Index padded() const { return padded_; }

  private:
    float* c(int depth, int row) const;
    template <class Numbers, class Copy>
    void row_of_states(int row, Numbers* state, Copy copy) const;

    const Engine& engine_;
    StreamWork work_{};
    Barrier barrier_;
    Index padded_;  // vocabulary
    std::vector<int> ids_, labels_;
    std::vector<Buffer<float>> floats_;
    std::vector<Buffer<std::uint8_t>> bytes_;
    std::vector<StreamScratch> scratch_;
    float* logits_ = nullptr;
};

}  // namespace elman
