// Texts that are written side by side, each with settings of its own, and that come and go between any two ids:
// continuous batching.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "engine.hpp"
#include "sampler.hpp"

namespace elman {

// One prompt that is continued `samples` times.
struct TextRequest {
    std::vector<int> prompt;  // not empty
    int samples = 1;
    Index length;  // new ids of each, at most
    Sampling sampling;
    std::vector<int> stop_ids, suppressed;
    std::uint64_t first_stream = 0;  // sample i takes its random numbers from stream first_stream + i
    int label = 0;
    int alternatives = -1;  // so many of the likeliest ids are told beside each new one; -1: nothing is
};

// What one call has made, id by id in the order of the steps.
struct NewIds {
    enum End { kGoesOn = 0, kStopped = 1, kFull = 2, kNothingLeft = -1, kNotFinite = -2 };

    std::vector<long> texts;
    std::vector<int> ids;          // -1 where a text ended before a stop id, or failed
    std::vector<int> ends;         // an `End`
    std::vector<double> log_prob;  // of the id before temperature and penalties; 0 where nothing was to be told
    std::vector<int> rank;         // 1 for the likeliest
    std::vector<double> entropy;   // of the distribution, in nats
    std::vector<int> counts;       // alternatives of each id
    std::vector<int> other_ids;    // these, the likeliest first
    std::vector<double> other_log_probs;
};

class ContinuousBatch {
  public:
    ContinuousBatch(std::shared_ptr<const Engine> engine, int threads);
    ~ContinuousBatch();

    // Begin to continue a prompt; the number of its first sample, the others have the numbers behind it.
    long add(TextRequest request);
    void remove(long text);  // it gets no more ids; nothing happens where it has ended already
    int rows() const;        // texts that go on

    // Read some of the prompts that are not read yet; then make up to `steps` ids of each text, or one while there are
    // such prompts. Every call is short, whatever the length of a prompt.
    NewIds advance(int steps);

    // Makes a call of `advance` that is under way on another thread end after the present step; else the next one
    // after its first.
    void interrupt() { interrupted_.store(true, std::memory_order_relaxed); }

  private:
    struct Row;
    struct Prompt;

    std::unique_lock<std::mutex> alone() const;
    void fit(std::unique_ptr<Stream>& stream, std::size_t rows);
    void read_prompts();
    void begin_to_write(Prompt& prompt, const float* state);
    void write(int steps);
    void make_room(int steps);
    void write_in_region(int steps, int index, int count);
    void choose(int index, int count);
    void tell(std::size_t place);
    void take();
    void drop_finished();

    std::shared_ptr<const Engine> engine_;
    int threads_;
    std::unique_ptr<Stream> reading_, writing_;  // made when they are needed, larger ones when there are more rows
    std::vector<Prompt> prompts_;                // in the order of `reading_`
    std::vector<Row> rows_;                      // in the order of `writing_`
    std::vector<int> places_;                    // memory of `drop_finished`
    std::vector<Sampler> samplers_;              // one for each thread
    NewIds made_;
    long next_ = 0;
    std::atomic<bool> interrupted_{false};
    bool stops_ = false;  // by the first thread, for all
    mutable std::mutex busy_;
};

}  // namespace elman
