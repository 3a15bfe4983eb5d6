#include "continuous.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "threads.hpp"

namespace elman {
namespace {

constexpr Index kReadIds = 64;  // of prompts that are read before others get their next id

void check(const Engine& engine, const TextRequest& request) {
    const auto within = [&](const std::vector<int>& ids, const char* what) {
        for (const int id : ids)
            if (id < 0 || id >= engine.vocabulary())
                throw std::invalid_argument(std::string(what) + " must lie in 0 to " +
                                            std::to_string(engine.vocabulary() - 1) + ", the vocabulary, not " +
                                            std::to_string(id));
    };
    if (request.prompt.empty()) throw std::invalid_argument("the prompt is empty");
    if (request.samples < 1 || request.length < 1) throw std::invalid_argument("there is nothing to write");
    within(request.prompt, "the ids of a prompt");
    within(request.stop_ids, "stop ids");
    within(request.suppressed, "suppressed ids");
    if (engine.labels() && (request.label < 0 || request.label >= engine.labels()))
        throw std::invalid_argument("the label must lie in 0 to " + std::to_string(engine.labels() - 1) + ", not " +
                                    std::to_string(request.label));
}

}  // namespace

struct ContinuousBatch::Row {
    long text;
    std::shared_ptr<const TextRequest> request;
    std::uint64_t stream;
    std::unique_ptr<Seen> seen;  // null without a penalty
    Index written = 0;
    int last, chosen = 0;
    bool finished = false;
    double log_prob = 0, entropy = 0;  // of the id that was chosen, where it is told
    int rank = 0;
    std::vector<std::pair<float, int>> others;  // the likeliest: logit and id
    double total = 0;                           // what a logit's log-probability is less by
};

struct ContinuousBatch::Prompt {
    std::shared_ptr<const TextRequest> request;
    std::vector<Row> rows;
    std::size_t read = 0;
};

ContinuousBatch::ContinuousBatch(std::shared_ptr<const Engine> engine, int threads)
    : engine_(std::move(engine)), threads_(threads) {
    for (int i = 0; i < threads_; ++i) samplers_.emplace_back(engine_->kernels(), engine_->vocabulary());
}

ContinuousBatch::~ContinuousBatch() = default;

std::unique_lock<std::mutex> ContinuousBatch::alone() const {
    std::unique_lock<std::mutex> lock(busy_, std::try_to_lock);
    if (!lock) throw std::runtime_error("these texts are being written by another thread: one at a time");
    return lock;
}

int ContinuousBatch::rows() const {
    const auto lock = alone();
    std::size_t count = rows_.size();
    for (const Prompt& prompt : prompts_) count += prompt.rows.size();
    return static_cast<int>(count);
}

// --- Coming and going -----------------------------------------------------------------------------------------------

// Room for so many rows, those that are there kept.
void ContinuousBatch::fit(std::unique_ptr<Stream>& stream, std::size_t rows) {
    const int before = stream ? stream->rows() : 0;
    if (stream && stream->capacity() >= static_cast<int>(rows)) return;
    std::size_t capacity = 8;
    while (capacity < rows) capacity *= 2;
    auto larger = std::make_unique<Stream>(*engine_, static_cast<int>(capacity), static_cast<int>(capacity), threads_);
    larger->set_rows(before);
    if (before) {
        std::vector<float> states(static_cast<std::size_t>(before) * static_cast<std::size_t>(engine_->state_size()));
        stream->save(states.data());
        larger->load(states.data());
        std::copy_n(stream->labels(), before, larger->labels());
    }
    stream = std::move(larger);
}

long ContinuousBatch::add(TextRequest given) {
    const auto lock = alone();
    check(*engine_, given);
    auto request = std::make_shared<const TextRequest>(std::move(given));
    Prompt prompt{request, {}, 0};
    const long first = next_;
    for (int i = 0; i < request->samples; ++i) {
        Row row{first + i, request, request->first_stream + static_cast<std::uint64_t>(i), nullptr, 0, 0};
        row.last = request->prompt.back();
        if (request->sampling.repetition_penalty != 1) {
            row.seen = std::make_unique<Seen>(engine_->vocabulary());
            for (const int id : request->prompt) row.seen->add(id);
        }
        if (request->alternatives > 0) row.others.reserve(static_cast<std::size_t>(request->alternatives) + 1);
        prompt.rows.push_back(std::move(row));
    }
    for (Sampler& sampler : samplers_) sampler.make_room(request->sampling);
    next_ += request->samples;
    if (request->prompt.size() == 1) {
        begin_to_write(prompt, engine_->initial());
    } else {
        fit(reading_, prompts_.size() + 1);
        const int place = static_cast<int>(prompts_.size());
        reading_->set_rows(place + 1);
        reading_->load_row(place, engine_->initial());
        reading_->labels()[place] = request->label;
        prompts_.push_back(std::move(prompt));
    }
    return first;
}

// The samples of a prompt, of which all but the last id has been read.
void ContinuousBatch::begin_to_write(Prompt& prompt, const float* state) {
    fit(writing_, rows_.size() + prompt.rows.size());
    for (Row& row : prompt.rows) {
        const int place = static_cast<int>(rows_.size());
        writing_->set_rows(place + 1);
        writing_->load_row(place, state);
        writing_->labels()[place] = prompt.request->label;
        rows_.push_back(std::move(row));
    }
}

void ContinuousBatch::remove(long text) {
    const auto lock = alone();
    for (Row& row : rows_)
        if (row.text == text) {
            row.finished = true;
            places_.reserve(rows_.size());
            return drop_finished();
        }
    std::vector<int> kept;
    std::vector<Prompt> still;
    for (std::size_t place = 0; place < prompts_.size(); ++place) {
        auto& rows = prompts_[place].rows;
        rows.erase(std::remove_if(rows.begin(), rows.end(), [=](const Row& row) { return row.text == text; }),
                   rows.end());
        if (rows.empty()) continue;
        kept.push_back(static_cast<int>(place));
        still.push_back(std::move(prompts_[place]));
    }
    if (kept.size() != prompts_.size()) reading_->gather(kept);
    prompts_ = std::move(still);
}

// Within a region as well: nothing is allocated.
void ContinuousBatch::drop_finished() {
    places_.clear();
    for (std::size_t place = 0; place < rows_.size(); ++place)
        if (!rows_[place].finished) {
            if (places_.size() != place) rows_[places_.size()] = std::move(rows_[place]);
            places_.push_back(static_cast<int>(place));
        }
    writing_->gather(places_);
    rows_.erase(rows_.begin() + static_cast<Index>(places_.size()), rows_.end());
}

// --- Reading --------------------------------------------------------------------------------------------------------

void ContinuousBatch::read_prompts() {
    if (prompts_.empty()) return;
    Stream& stream = *reading_;
    const auto rows = static_cast<Index>(prompts_.size());
    Index steps = std::max<Index>(1, kReadIds / rows);
    for (const Prompt& prompt : prompts_)  // none of them further than to its last id
        steps = std::min(steps, static_cast<Index>(prompt.request->prompt.size() - 1 - prompt.read));
    auto body = [&](int index, int count) {
        for (Index t = 0; t < steps; ++t) {
            if (index == 0)
                for (std::size_t place = 0; place < prompts_.size(); ++place)
                    stream.ids()[place] = prompts_[place].request->prompt[prompts_[place].read++];
            stream.wait(count);
            stream.step(index, count);
            stream.turn(index);
            stream.wait(count);
        }
    };
    parallel(engine_->threads_for(static_cast<int>(rows), threads_), body);
    std::vector<float> state(static_cast<std::size_t>(engine_->state_size()));
    std::vector<int> kept;
    std::vector<Prompt> still;
    for (std::size_t place = 0; place < prompts_.size(); ++place) {
        Prompt& prompt = prompts_[place];
        if (prompt.read + 1 < prompt.request->prompt.size()) {
            kept.push_back(static_cast<int>(place));
            still.push_back(std::move(prompt));
            continue;
        }
        stream.save_row(static_cast<int>(place), state.data());
        begin_to_write(prompt, state.data());
    }
    if (kept.size() != prompts_.size()) stream.gather(kept);
    prompts_ = std::move(still);
}

// --- Writing --------------------------------------------------------------------------------------------------------

NewIds ContinuousBatch::advance(int steps) {
    const auto lock = alone();
    read_prompts();
    if (!rows_.empty()) write(prompts_.empty() ? steps : 1);
    interrupted_.store(false, std::memory_order_relaxed);
    return std::exchange(made_, {});
}

// All that a call needs, before its region: what throws there ends the program.
void ContinuousBatch::make_room(int steps) {
    const std::size_t count = static_cast<std::size_t>(steps) * rows_.size();
    std::size_t others = 0;
    for (Row& row : rows_) {
        if (row.seen) row.seen->make_room(static_cast<std::size_t>(steps) + 1);
        others += static_cast<std::size_t>(std::max(0, row.request->alternatives));
    }
    made_.texts.reserve(count);
    for (auto* numbers : {&made_.ids, &made_.ends, &made_.rank, &made_.counts}) numbers->reserve(count);
    for (auto* numbers : {&made_.log_prob, &made_.entropy}) numbers->reserve(count);
    made_.other_ids.reserve(others * static_cast<std::size_t>(steps));
    made_.other_log_probs.reserve(others * static_cast<std::size_t>(steps));
    places_.reserve(rows_.size());
}

void ContinuousBatch::write(int steps) {
    make_room(steps);
    for (std::size_t place = 0; place < rows_.size(); ++place) writing_->ids()[place] = rows_[place].last;
    stops_ = false;
    auto body = [&](int index, int count) { write_in_region(steps, index, count); };
    parallel(engine_->threads_for(static_cast<int>(rows_.size()), threads_), body);
}

void ContinuousBatch::write_in_region(int steps, int index, int count) {
    Stream& stream = *writing_;
    for (int t = 0; t < steps; ++t) {
        stream.step(index, count);
        stream.logits(stream.top(), stream.rows(), index, count);
        stream.wait(count);
        choose(index, count);
        stream.wait(count);
        if (index == 0) {
            take();
            stops_ = rows_.empty() || interrupted_.load(std::memory_order_relaxed);
        }
        stream.wait(count);
        if (stops_) return;
    }
}

void ContinuousBatch::choose(int index, int count) {
    Sampler& sampler = samplers_[static_cast<std::size_t>(index)];
    for (auto place = static_cast<std::size_t>(index); place < rows_.size(); place += static_cast<std::size_t>(count)) {
        Row& row = rows_[place];
        sampler.use(row.request->sampling, row.request->suppressed);
        row.chosen = sampler.choose(writing_->row_logits(static_cast<int>(place)), row.seen.get(), row.stream,
                                    static_cast<std::uint64_t>(row.written));
        if (row.request->alternatives >= 0 && row.chosen >= 0) tell(place);
    }
}

// What the model thought of the id that was chosen.
void ContinuousBatch::tell(std::size_t place) {
    Row& row = rows_[place];
    const float* logits = writing_->row_logits(static_cast<int>(place));
    const LogSum sum = engine_->kernels().log_sum(logits, writing_->padded());
    row.total = sum.top + std::log(sum.sum);
    const float own = logits[row.chosen];
    const auto most = static_cast<std::size_t>(row.request->alternatives);
    row.others.clear();
    row.rank = 1;
    double mean = 0;  // of the logits
    for (int id = 0; id < engine_->vocabulary(); ++id) {
        const float logit = logits[id];
        if (logit > own || (logit == own && id < row.chosen)) ++row.rank;
        if (std::isfinite(logit)) mean += std::exp(logit - row.total) * logit;
        if (most == 0 || (row.others.size() == most && logit <= row.others.back().first)) continue;
        const auto at = std::upper_bound(row.others.begin(), row.others.end(), logit,
                                         [](float one, const auto& other) { return one > other.first; });
        row.others.insert(at, {logit, id});
        if (row.others.size() > most) row.others.pop_back();
    }
    row.log_prob = own - row.total;
    row.entropy = row.total - mean;
}

// The step is done: note the new ids, and take rows that are finished away.
void ContinuousBatch::take() {
    bool some_finished = false;
    for (Row& row : rows_) {
        const auto& stops = row.request->stop_ids;
        int id = row.chosen, end = id < 0 ? id : NewIds::kGoesOn;
        if (id >= 0) {
            ++row.written;
            row.last = id;
            if (row.seen) row.seen->add(id);
            if (std::find(stops.begin(), stops.end(), id) != stops.end()) end = NewIds::kStopped;
            else if (row.written == row.request->length) end = NewIds::kFull;
        }
        const bool told = row.request->alternatives >= 0 && id >= 0;
        made_.texts.push_back(row.text);
        made_.ids.push_back(end == NewIds::kStopped || id < 0 ? -1 : id);
        made_.ends.push_back(end);
        made_.log_prob.push_back(told ? row.log_prob : 0);
        made_.rank.push_back(told ? row.rank : 0);
        made_.entropy.push_back(told ? row.entropy : 0);
        made_.counts.push_back(told ? static_cast<int>(row.others.size()) : 0);
        if (told)
            for (const auto& [logit, other] : row.others) {
                made_.other_ids.push_back(other);
                made_.other_log_probs.push_back(logit - row.total);
            }
        row.finished = end != NewIds::kGoesOn;
        some_finished = some_finished || row.finished;
    }
    writing_->turn(0);
    if (some_finished) drop_finished();
    for (std::size_t place = 0; place < rows_.size(); ++place) writing_->ids()[place] = rows_[place].last;
}

}  // namespace elman
