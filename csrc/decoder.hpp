// The decoder of a trained translator: packed, never changed again, and used by several threads of a program at once.
#pragma once

#include <vector>

#include "attend_kernel.hpp"
#include "engine.hpp"

namespace elman {

enum class Attends { never, before, after };  // with the state before the step, whose context it is fed; or after it

struct AttendWeights {
    Attends attends;
    bool feeds_readout;  // it is fed the readout of the step before
    Score score;
    float scale;
    bool sees_token;           // the query is of token and state
    bool reads_token;          // the readout is of the token too
    int key_size, state_size;  // of the memory; 0 where it never attends
    Plain query;               // none where the state is the query
    const float* query_bias = nullptr;
    const float* v = nullptr;
};

// What is asked of texts that are written greedily: the likeliest id, and again, to the stop id or the limit.
struct GreedyRequest {
    int start, stop;
    Index shortest;           // ids of a text at least, the stop id counted
    std::vector<int> never;   // ids that are not written
    std::vector<int> limits;  // ids of each text at most
};

struct Written {
    std::vector<int> ids;  // without the stop id
    double log_prob = 0;   // not finite where the logits were not, or every id was forbidden
    bool finished = false;
};

class Decoder {
  public:
    // Copies all that it needs. The layers are those of a stream, and its bridge to the softmax the readout of token,
    // state and context. Throws std::invalid_argument where shapes do not fit.
    Decoder(const Weights& weights, const AttendWeights& attend);
    ~Decoder();

    int vocabulary() const { return engine_.vocabulary(); }
    Index padded_vocabulary() const { return elman::padded(vocabulary(), engine_.kernels().lanes); }
    Index state_size() const { return engine_.state_size() + fed_; }  // of a row: for each layer h, then c; what is fed
    int key_size() const { return key_size_; }
    int memory_size() const { return memory_size_; }

    // The logits (R x padded vocabulary) after reading one id a row; states (R x state_size) are changed in place,
    // where each row attended is written to weights (R x S).
    void step(int rows, const int* ids, const int* owners, const Memory& memory, float* states, float* weights,
              float* logits, int threads) const;

    // A text for each source of the memory, from its state.
    std::vector<Written> greedy(const GreedyRequest& request, const Memory& memory, std::vector<float> states,
                                int threads) const;

  private:
    class Room;  // the memory in which a step is computed

    Engine engine_;
    Attends attends_;
    int key_size_, memory_size_;
    Index fed_;  // numbers of the readout that is fed; 0 where it is not
    AttendNetwork network_{};
    PackedMatrix query_;
    Buffer<float> query_bias_, v_;
    mutable Spare<Room> rooms_;
};

}  // namespace elman
