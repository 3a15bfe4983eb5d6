// A trained network that reads whole texts: packed, never changed again, and used by several threads of a program at
// once.
#pragma once

#include <vector>

#include "barrier.hpp"
#include "encoder_kernel.hpp"
#include "packed.hpp"
#include "spare.hpp"

namespace elman {

// The weights of one direction of a layer as they come in: PyTorch's order of gates, row-major.
struct DirectionWeights {
    Plain input;                         // gates*H x what the layer sees; none where there is a table
    Plain hidden;                        // gates*H x H
    const float* bias = nullptr;         // gates*H
    const float* table = nullptr;        // ids x gates*H; first layer only
    const float* hidden_bias = nullptr;  // H; GRU only
};

struct EncoderWeights {
    Cell cell;
    int hidden, directions;
    int inputs, ids;  // size of the vectors that are read, or how many ids there are; the other is 0
    bool residual, dense;
    std::vector<DirectionWeights> parts;  // layer by layer, both directions of each
    Pooling pooling;
    Plain query;  // attention: D*H columns
    const float* query_bias = nullptr;
    const float* query_vector = nullptr;
    Plain head;  // C x D*H; none without
    const float* head_bias = nullptr;
};

// The texts of one call: their rows lie one after the other, the vectors or ids of the first text, then those of the
// next.
struct Texts {
    int count;
    const int* lengths;            // each above zero
    const float* vectors;          // null where ids are read
    const int* ids;                // of the network's own table, or rows of `gates`
    const float* gates = nullptr;  // what `Encoder::gates` wrote
};

// Where the states after the last steps go, each L*D x count x H: h, and c of an LSTM. Null where nobody asks.
struct Finals {
    float* parts[2] = {nullptr, nullptr};
};

class Encoder {
  public:
    // Copies all that it needs. The kernels are those in use now. Throws std::invalid_argument where shapes do not fit.
    explicit Encoder(const EncoderWeights& weights);
    ~Encoder();

    int inputs() const { return inputs_; }
    int ids() const { return ids_; }
    bool pooled() const { return network_.pooling != Pooling::steps; }
    Index width() const {
        return width_;
    }  // numbers of an answer: one for each text where it is pooled, else for each row

    int hidden() const { return hidden_; }
    int states() const { return network_.layers * network_.directions; }     // how many there are of a text
    int state_parts() const { return network_.cell == Cell::lstm ? 2 : 1; }  // h, and c of an LSTM

    // What the first layer makes of vectors before it knows of others: rows of `gates_width` numbers, in the order of
    // the kernels in use. None where later layers see the vectors too, or where it reads ids.
    bool has_gates() const { return inputs_ && !network_.dense && !layers_.front().adds_input; }
    Index gates_width() const { return network_.directions * network_.columns; }
    void gates(const float* vectors, Index rows, float* gates, int threads) const;

    // Writes the answers, texts and rows in the order in which they came.
    void run(const Texts& texts, float* answers, const Finals& finals, int threads) const;

  private:
    struct Plan;  // the texts of a call, longest first
    class Room;   // the memory in which some texts are read

    void add_layer(const EncoderWeights& weights, std::size_t depth, const std::vector<Index>& parts);
    void add_ends(const EncoderWeights& weights);
    Matrix keep(const Plain& from, int blocks, const std::vector<Index>& parts);
    const float* keep_rows(const float* from, Index rows, int blocks, Index units);
    void lay(const float* from, float* to) const;
    std::unique_ptr<Room> take_room() const;
    void keep_room(std::unique_ptr<Room> room) const;
    void read(const Texts& texts, const Plan& plan, const std::vector<int>& chosen, float* answers,
              const Finals& finals, int threads, EncoderStop stop) const;

    const Kernels& kernels_;
    EncoderNetwork network_{};
    int hidden_, inputs_, ids_;
    Index width_, products_ = 0;  // products: multiplications of a row
    std::vector<Index> input_parts_;
    std::vector<EncoderLayer> layers_;
    std::vector<PackedMatrix> matrices_;
    std::vector<Buffer<float>> rows_;
    mutable Spare<Room> rooms_;
};

}  // namespace elman
