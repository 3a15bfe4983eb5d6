// Continuing prompts, all of them as one batch.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "engine.hpp"
#include "sampler.hpp"

namespace elman {

class Interrupt;

struct GenerationRequest {
    std::vector<std::vector<int>> prompts;  // none of them empty
    Index length;                           // new ids of each row, at most
    Sampling sampling;
    std::vector<int> stop_ids, suppressed;
    std::uint64_t first_stream = 0;
    int label = 0;
};

class Generation {
  public:
    Generation(std::shared_ptr<const Engine> engine, GenerationRequest request, int threads);

    // Go on until `steps` steps have given new ids, or all rows are finished. The new ids are steps x rows, -1 where a
    // row has none. Failures are told by the first call that has nothing else to tell: std::invalid_argument where
    // every id is suppressed, std::runtime_error where logits are not finite. What a call made that a signal ended
    // comes first in the next. One thread at a time: std::runtime_error for a second.
    std::vector<int> advance(int steps);

    void end(int row);  // it gets no more ids; one thread at a time, likewise
    int rows() const { return static_cast<int>(request_.prompts.size()); }

  private:
    std::unique_lock<std::mutex> alone();
    void make_room(int steps);
    void read_shared();
    void prepare();
    void advance_in_region(int steps, Interrupt& interrupt, int index, int count);
    void choose(int index, int count);
    void take();
    void drop_finished();
    std::vector<int> handed_out(int steps);

    std::shared_ptr<const Engine> engine_;
    GenerationRequest request_;
    int threads_;
    Stream stream_;
    std::vector<Sampler> samplers_;        // one for each thread
    std::vector<char> stops_;              // V: whether an id ends a row
    std::vector<Seen> seen_;               // of each row; empty without a penalty
    std::vector<int> active_;              // rows that go on, in the order of the stream
    std::vector<int> places_;              // of those that go on; memory of `drop_finished`
    std::vector<Index> written_;           // new ids of each row
    std::vector<int> last_, chosen_;       // of each row; of each place in the stream
    std::vector<char> finished_;           // of each row
    Index read_ = 0;                       // ids that every row has read
    bool begun_ = false, writes_ = false;  // whether a row gets a new id from the step under way
    bool done_ = false;
    int failure_ = 0;
    std::vector<int> written_ids_;  // that were not handed out yet: steps x rows
    int steps_done_ = 0;
    std::mutex busy_;
};

}  // namespace elman
