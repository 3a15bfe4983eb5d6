#include "generation.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "threads.hpp"

namespace elman {
namespace {

// How many ids all prompts begin with, short of any prompt's last.
Index shared_length(const std::vector<std::vector<int>>& prompts) {
    std::size_t shared = prompts.front().size() - 1;
    for (const auto& prompt : prompts) {
        shared = std::min(shared, prompt.size() - 1);
        const auto differ =
            std::mismatch(prompt.begin(), prompt.begin() + static_cast<Index>(shared), prompts.front().begin());
        shared = static_cast<std::size_t>(differ.first - prompt.begin());
    }
    return static_cast<Index>(shared);
}

void check(const Engine& engine, const GenerationRequest& request) {
    const auto within = [&](const std::vector<int>& ids, const char* what) {
        for (const int id : ids)
            if (id < 0 || id >= engine.vocabulary())
                throw std::invalid_argument(std::string(what) + " must lie in 0 to " +
                                            std::to_string(engine.vocabulary() - 1) + ", the vocabulary, not " +
                                            std::to_string(id));
    };
    if (request.prompts.empty()) throw std::invalid_argument("there is no prompt to continue");
    if (static_cast<Index>(request.prompts.size()) > kMostRows)
        throw std::invalid_argument("there should be " + std::to_string(kMostRows) + " prompts at most");
    for (const auto& prompt : request.prompts) {
        if (prompt.empty()) throw std::invalid_argument("a prompt is empty");
        within(prompt, "the ids of a prompt");
    }
    within(request.stop_ids, "stop ids");
    within(request.suppressed, "suppressed ids");
    if (engine.labels() && (request.label < 0 || request.label >= engine.labels()))
        throw std::invalid_argument("the label must lie in 0 to " + std::to_string(engine.labels() - 1) + ", not " +
                                    std::to_string(request.label));
}

GenerationRequest checked(const Engine& engine, GenerationRequest request) {
    check(engine, request);
    return request;
}

}  // namespace

Generation::Generation(std::shared_ptr<const Engine> engine, GenerationRequest request, int threads)
    : engine_(std::move(engine)),
      request_(checked(*engine_, std::move(request))),
      threads_(engine_->threads_for(rows(), threads)),
      stream_(*engine_, rows(), rows(), threads_),
      stops_(static_cast<std::size_t>(engine_->vocabulary())),
      written_(static_cast<std::size_t>(rows())),
      last_(static_cast<std::size_t>(rows())),
      chosen_(static_cast<std::size_t>(rows())),
      finished_(static_cast<std::size_t>(rows())) {
    for (int i = 0; i < threads_; ++i) {
        Sampler& sampler = samplers_.emplace_back(engine_->kernels(), engine_->vocabulary());
        sampler.make_room(request_.sampling);
        sampler.use(request_.sampling, request_.suppressed);
    }
    for (const int id : request_.stop_ids) stops_[static_cast<std::size_t>(id)] = 1;
    for (int row = 0; row < rows(); ++row) active_.push_back(row);
    if (request_.sampling.repetition_penalty != 1)
        for (const auto& prompt : request_.prompts) {
            Seen& seen = seen_.emplace_back(engine_->vocabulary());
            for (const int id : prompt) seen.add(id);
        }
    done_ = request_.length <= 0;
}

// What all prompts begin with is read once, as a single row.
void Generation::read_shared() {
    const Index shared = shared_length(request_.prompts);
    stream_.set_rows(1);
    stream_.begin();
    std::fill_n(stream_.labels(), rows(), request_.label);
    const int* ids = request_.prompts.front().data();
    Interrupt interrupt;
    auto body = [&](int index, int count) {
        for (Index t = 0; t < shared; ++t) {
            if (index == 0) stream_.ids()[0] = ids[t];
            if (stream_.wait(count, interrupt.stops(index, engine_->bytes()))) return;
            stream_.step(index, count);
            stream_.turn(index);
        }
    };
    parallel(engine_->threads_for(1, threads_), body);
    interrupt.check();
    stream_.gather(std::vector<int>(active_.size(), 0));
    read_ = shared;
    begun_ = true;
}

// What each row reads next, and whether any of them is at its end.
void Generation::prepare() {
    writes_ = false;
    for (std::size_t place = 0; place < active_.size(); ++place) {
        const auto row = static_cast<std::size_t>(active_[place]);
        const auto& prompt = request_.prompts[row];
        const auto size = static_cast<Index>(prompt.size());
        stream_.ids()[place] = read_ < size ? prompt[static_cast<std::size_t>(read_)] : last_[row];
        writes_ = writes_ || read_ >= size - 1;
    }
}

void Generation::choose(int index, int count) {
    for (auto place = static_cast<std::size_t>(index); place < active_.size();
         place += static_cast<std::size_t>(count)) {
        const auto row = static_cast<std::size_t>(active_[place]);
        if (read_ + 1 < static_cast<Index>(request_.prompts[row].size())) continue;
        chosen_[place] = samplers_[static_cast<std::size_t>(index)].choose(
            stream_.row_logits(static_cast<int>(place)), seen_.empty() ? nullptr : &seen_[row],
            request_.first_stream + row, static_cast<std::uint64_t>(written_[row]));
    }
}

// The step is done: hand the new ids out, and take rows that are finished away.
void Generation::take() {
    int* ids = written_ids_.data() + static_cast<Index>(steps_done_) * rows();
    bool any = false, some_finished = false;
    for (std::size_t place = 0; writes_ && place < active_.size(); ++place) {
        const auto row = static_cast<std::size_t>(active_[place]);
        if (read_ + 1 < static_cast<Index>(request_.prompts[row].size())) continue;
        const int id = chosen_[place];
        if (id < 0) {
            failure_ = id;
            done_ = true;
            std::fill_n(ids, rows(), -1);
            return;
        }
        ++written_[row];
        last_[row] = id;
        if (!seen_.empty()) seen_[row].add(id);
        if (stops_[static_cast<std::size_t>(id)]) {
            finished_[row] = 1;
        } else {
            ids[row] = id;
            any = true;
            finished_[row] = written_[row] == request_.length;
        }
        some_finished = some_finished || finished_[row];
    }
    if (any) ++steps_done_;
    ++read_;
    stream_.turn(0);
    if (some_finished) drop_finished();
    if (!done_) prepare();
}

// Within a region: nothing is allocated.
void Generation::drop_finished() {
    places_.clear();
    for (std::size_t place = 0; place < active_.size(); ++place)
        if (!finished_[static_cast<std::size_t>(active_[place])]) {
            active_[places_.size()] = active_[place];
            places_.push_back(static_cast<int>(place));
        }
    if (begun_) stream_.gather(places_);
    active_.resize(places_.size());
    done_ = done_ || active_.empty();
}

std::unique_lock<std::mutex> Generation::alone() {
    std::unique_lock<std::mutex> lock(busy_, std::try_to_lock);
    if (!lock) throw std::runtime_error("this text is being written by another thread: one at a time");
    return lock;
}

void Generation::end(int row) {
    const auto lock = alone();
    if (row < 0 || row >= rows()) throw std::invalid_argument("there is no such row");
    finished_[static_cast<std::size_t>(row)] = 1;
    drop_finished();
}

void Generation::advance_in_region(int steps, Interrupt& interrupt, int index, int count) {
    while (!done_ && steps_done_ < steps) {
        // Asked before the step, in which all threads wait for each other: after it the first may be ahead, in `take`.
        const bool writes = writes_, many = active_.size() > 1;
        const Index work = engine_->bytes() * stream_.rows();
        stream_.step(index, count);
        if (writes) {
            stream_.logits(stream_.top(), stream_.rows(), index, count);
            stream_.wait(count);
            if (many || index == 0) choose(index, count);
            if (many) stream_.wait(count);
        }
        if (index == 0) take();
        if (stream_.wait(count, interrupt.stops(index, work))) return;
    }
}

// All that a call needs, before its region: what throws there ends the program.
void Generation::make_room(int steps) {
    written_ids_.resize(static_cast<std::size_t>(std::max(steps, steps_done_)) * static_cast<std::size_t>(rows()), -1);
    places_.reserve(active_.size());
    for (Seen& seen : seen_) seen.make_room(static_cast<std::size_t>(steps) + 1);  // and one that ends the row
}

std::vector<int> Generation::advance(int steps) {
    const auto lock = alone();
    make_room(steps);
    if (!done_) {
        if (!begun_) read_shared();
        prepare();
        Interrupt interrupt;
        auto body = [&](int index, int count) { advance_in_region(steps, interrupt, index, count); };
        parallel(engine_->threads_for(static_cast<int>(active_.size()), threads_), body);
        interrupt.check();
    }
    if (steps_done_ == 0 && failure_ == Sampler::kNothingLeft)
        throw std::invalid_argument("every id is suppressed, so nothing can come next: suppress fewer");
    if (steps_done_ == 0 && failure_ == Sampler::kNotFinite)
        throw std::runtime_error("the model's logits are not finite numbers, so nothing can be chosen from them");
    return handed_out(std::min(steps, steps_done_));
}

// The first steps' ids; what an interrupted call made besides is kept.
std::vector<int> Generation::handed_out(int steps) {
    const auto end = written_ids_.begin() + static_cast<Index>(steps) * rows();
    std::vector<int> ids(written_ids_.begin(), end);
    written_ids_.erase(written_ids_.begin(), end);
    steps_done_ -= steps;
    return ids;
}

}  // namespace elman
