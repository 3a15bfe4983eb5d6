#include "engine.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "threads.hpp"

namespace elman {
namespace {

Index bytes_of(const Plain& m) { return m.rows * m.columns * (m.numbers ? 4 : 1); }

}  // namespace

Engine::Engine(const Weights& weights)
    : kernels_(elman::kernels()), hidden_(weights.hidden), output_(weights.output), labels_(weights.labels) {
    const int lanes = kernels_.lanes;
    const auto depth = weights.layers.size();
    require(weights.vocabulary > 0 && hidden_ > 0 && output_ > 0 && labels_ >= 0 && depth > 0, "a size");
    require(weights.softmax && weights.softmax.rows == weights.vocabulary && weights.softmax_bias, "the softmax");
    require(output_ == hidden_ || weights.cell == Cell::lstm, "the projection");
    check_seen(weights);
    const bool lstm = weights.cell == Cell::lstm;
    state_size_ = static_cast<Index>(depth) * (output_ + (lstm ? hidden_ : 0));
    initial_.assign(static_cast<std::size_t>(state_size_), 0.0f);
    if (weights.initial) initial_.assign(weights.initial, weights.initial + state_size_);

    network_.cell = weights.cell;
    network_.layers = static_cast<int>(depth);
    network_.vocabulary = weights.vocabulary;
    network_.hidden = static_cast<int>(padded(hidden_, lanes));
    network_.output = static_cast<int>(padded(output_, lanes));
    network_.residual = weights.residual;
    network_.dense = weights.dense;
    network_.token_size = weights.token_size;
    network_.label_size = weights.label_size;
    network_.fed_size = weights.fed_size;
    network_.seen = static_cast<int>(padded(weights.token_size + weights.label_size + weights.fed_size, lanes));
    if (weights.tokens.numbers) {
        network_.tokens = keep_rows(weights.tokens.numbers, 1, 1, weights.tokens.rows * weights.tokens.columns);
    } else if (weights.tokens.bytes) {
        const Index count = weights.tokens.rows * weights.tokens.columns;
        token_bytes_ = Buffer<std::int8_t>(count);
        std::memcpy(token_bytes_, weights.tokens.bytes, static_cast<std::size_t>(count));
        network_.tokens = token_bytes_.get();
        network_.token_scale = keep_rows(weights.tokens.scale, 1, 1, weights.tokens.rows);
    }
    if (weights.label_size)
        network_.label_vectors =
            keep_rows(weights.label_vectors, 1, 1, static_cast<Index>(labels_) * weights.label_size);
    layers_.reserve(depth);
    for (std::size_t i = 0; i < depth; ++i) add_layer(weights, i);
    network_.layer = layers_.data();

    Index top = output_;
    if (weights.bridge) {
        const std::vector<Index> parts = weights.bridge_parts.empty() ? std::vector<Index>{top} : weights.bridge_parts;
        for (const Index part : parts) require(part > 0, "the bridge to the softmax");
        require(weights.bridge.columns == std::accumulate(parts.begin(), parts.end(), 0L) && weights.bridge_bias,
                "the bridge to the softmax");
        network_.bridge = keep(weights.bridge, 1, parts);
        network_.bridge_tanh = weights.bridge_tanh;
        network_.bridge_bias = keep_rows(weights.bridge_bias, 1, 1, weights.bridge.rows);
        top = weights.bridge.rows;
    }
    require(weights.softmax.columns == top, "the softmax");
    network_.softmax = keep(weights.softmax, 1, {top});
    network_.softmax_bias =
        keep_rows(weights.softmax_bias, 1, 1, weights.vocabulary, -std::numeric_limits<float>::infinity());
}

Engine::~Engine() = default;

void Engine::check_seen(const Weights& weights) const {
    require(weights.token_size >= 0 && weights.label_size >= 0 && weights.fed_size >= 0, "the embedding");
    require(!weights.fed_size || weights.token_size, "what is fed");
    require((weights.token_size > 0) == static_cast<bool>(weights.tokens), "the embedding");
    if (weights.tokens)
        require(weights.tokens.rows == weights.vocabulary && weights.tokens.columns == weights.token_size,
                "the embedding");
    require(!weights.label_size || (weights.label_vectors && labels_ && weights.token_size), "the embedding of labels");
}

void Engine::add_layer(const Weights& weights, std::size_t depth) {
    const LayerWeights& from = weights.layers[depth];
    const std::string name = "layer " + std::to_string(depth + 1);
    const int blocks = weight_blocks(weights.cell);
    const Index H = hidden_, P = output_, rows = blocks * H,
                seen = weights.token_size + weights.label_size + weights.fed_size;
    const bool first = depth == 0, tabled = from.table != nullptr;
    // Only what reads the token has a table: the first layer, or with dense connections every layer.
    require(!tabled || first || weights.dense, name);
    require(!from.labels || (tabled && labels_), name);
    require(!tabled || !labels_ || from.labels, name);
    std::vector<Index> parts;
    if ((first || weights.dense) && !tabled) parts.push_back(seen);
    if (!first) parts.insert(parts.end(), weights.dense ? depth : 1, P);
    Index columns = 0;
    for (const Index part : parts) columns += part;
    require(from.hidden && from.hidden.rows == rows && from.hidden.columns == P, name);
    require(static_cast<bool>(from.input) == !parts.empty(), name);
    if (from.input) require(columns > 0 && from.input.rows == rows && from.input.columns == columns, name);
    require(static_cast<bool>(from.projection) == (P != H), name);
    if (from.projection) require(from.projection.rows == P && from.projection.columns == H, name);
    require(from.bias && (weights.cell != Cell::gru || from.hidden_bias), name);

    StreamLayer layer{};
    layer.columns = padded(H, kernels_.lanes) * blocks;
    if (from.input) layer.input = keep(from.input, blocks, parts);
    layer.hidden = keep(from.hidden, blocks, {P});
    if (from.projection) layer.projection = keep(from.projection, 1, {H});
    layer.bias = keep_rows(from.bias, 1, blocks, H);
    if (tabled) layer.table = keep_rows(from.table, weights.vocabulary, blocks, H);
    if (from.labels) layer.labels = keep_rows(from.labels, labels_, blocks, H);
    if (weights.cell == Cell::gru) layer.hidden_bias = keep_rows(from.hidden_bias, 1, 1, H);
    layer.adds_input = weights.residual && (!first || seen == P);
    layers_.push_back(layer);
}

Matrix Engine::keep(const Plain& from, int blocks, const std::vector<Index>& parts) {
    bytes_ += bytes_of(from);
    return matrices_.emplace_back(from, blocks, parts, kernels_.lanes).matrix();
}

const float* Engine::keep_rows(const float* from, Index rows, int blocks, Index units, float filler) {
    return rows_.emplace_back(pack_rows(from, rows, blocks, units, kernels_.lanes, filler));
}

// A second core halves the time that reading the weights takes, and costs a few waits.
int Engine::threads_for(int rows, int most) const {
    constexpr Index kBytesWorthACore = 128 << 10;
    const Index worth = bytes_ * rows / kBytesWorthACore;
    return static_cast<int>(worth < 1 ? 1 : worth < most ? worth : most);
}

// --- Reading --------------------------------------------------------------------------------------------------------

Stream::Stream(const Engine& engine, int rows, int vectors, int threads)
    : engine_(engine),
      padded_(elman::padded(engine.vocabulary(), engine.kernels().lanes)),
      ids_(static_cast<std::size_t>(rows)),
      labels_(static_cast<std::size_t>(rows)),
      scratch_(static_cast<std::size_t>(threads)) {
    const StreamNetwork& network = engine.network();
    const int lanes = engine.kernels().lanes;
    const auto floats = [&](Index count) { return floats_.emplace_back(count).get(); };
    const Index states = static_cast<Index>(network.layers) * rows;
    if (vectors) logits_ = floats((vectors < rows ? rows : vectors) * padded_);
    if (vectors < rows) vectors = rows;
    work_.rows = work_.capacity = rows;
    work_.ids = ids_.data();
    work_.labels = engine.labels() ? labels_.data() : nullptr;
    for (float*& h : work_.h) h = floats(states * network.output);
    work_.c = network.cell == Cell::lstm ? floats(states * network.hidden) : nullptr;
    if (network.layer[0].projection) work_.inner = floats(static_cast<Index>(rows) * network.hidden);
    work_.seen_stride = network.seen + (network.dense ? static_cast<Index>(network.layers) * network.output : 0);
    if (work_.seen_stride) work_.seen = floats(rows * work_.seen_stride);
    if (network.residual) work_.outputs = floats(states * network.output);
    const Index bridged = network.bridge ? elman::padded(network.bridge.units, lanes) : 0;
    if (bridged) work_.bridged = floats(vectors * bridged);
    Index longest = work_.seen_stride;
    for (const Index size : {static_cast<Index>(network.hidden), static_cast<Index>(network.output), bridged,
                             static_cast<Index>(network.bridge.size)})
        longest = size > longest ? size : longest;
    for (StreamScratch& each : scratch_)
        for (int which = 0; which < 2; ++which) {
            each.sums[which] = floats(kStreamChunk * 4L * lanes);
            each.bytes[which] = bytes_.emplace_back(vectors * longest).get();
            each.scale[which] = floats(vectors);
        }
    work_.scratch = scratch_.data();
    work_.barrier = &barrier_;
}

float* Stream::h(int depth, int row) const {
    return work_.h[work_.turn] + (static_cast<Index>(depth) * work_.capacity + row) * engine_.network().output;
}

float* Stream::c(int depth, int row) const {
    return work_.c + (static_cast<Index>(depth) * work_.capacity + row) * engine_.network().hidden;
}

const float* Stream::top() const {
    const StreamNetwork& network = engine_.network();
    const float* last = network.residual ? work_.outputs : work_.h[1 - work_.turn];
    return last + (network.layers - 1L) * work_.capacity * network.output;
}

void Stream::begin() {
    std::vector<float> states;
    for (int row = 0; row < work_.rows; ++row)
        states.insert(states.end(), engine_.initial(), engine_.initial() + engine_.state_size());
    load(states.data());
}

// A row's numbers, layer by layer: copy(where they stand here, where they stand outside, how many, how many with the
// padding).
template <class Numbers, class Copy>
void Stream::row_of_states(int row, Numbers* state, Copy copy) const {
    for (int depth = 0; depth < engine_.network().layers; ++depth) {
        copy(h(depth, row), state, engine_.output(), engine_.network().output);
        state += engine_.output();
        if (!work_.c) continue;
        copy(c(depth, row), state, engine_.hidden(), engine_.network().hidden);
        state += engine_.hidden();
    }
}

void Stream::load_row(int row, const float* state) {
    row_of_states(row, state, [](float* here, const float* outside, int count, int padded) {
        std::memcpy(here, outside, static_cast<std::size_t>(count) * sizeof(float));
        // What is not finite spreads to the padding, and would stay there for the next row that is read in this memory.
        std::memset(here + count, 0, static_cast<std::size_t>(padded - count) * sizeof(float));
    });
}

void Stream::save_row(int row, float* state) const {
    row_of_states(row, state, [](const float* here, float* outside, int count, int) {
        std::memcpy(outside, here, static_cast<std::size_t>(count) * sizeof(float));
    });
}

void Stream::load(const float* states, Index apart) {
    for (int row = 0; row < work_.rows; ++row) load_row(row, states + row * (apart ? apart : engine_.state_size()));
}

void Stream::save(float* states, Index apart) const {
    for (int row = 0; row < work_.rows; ++row) save_row(row, states + row * (apart ? apart : engine_.state_size()));
}

void Stream::gather(const std::vector<int>& rows) {
    const StreamNetwork& network = engine_.network();
    work_.rows = static_cast<int>(rows.size());
    for (int row = 0; row < work_.rows; ++row) {
        const int from = rows[static_cast<std::size_t>(row)];
        if (from == row) continue;
        labels_[static_cast<std::size_t>(row)] = labels_[static_cast<std::size_t>(from)];
        for (int depth = 0; depth < network.layers; ++depth) {
            std::memcpy(h(depth, row), h(depth, from), static_cast<std::size_t>(network.output) * sizeof(float));
            if (work_.c)
                std::memcpy(c(depth, row), c(depth, from), static_cast<std::size_t>(network.hidden) * sizeof(float));
        }
    }
}

void Engine::step(int rows, const int* ids, const int* labels, const float* states, float* log_probs, float* after,
                  int threads) const {
    threads = threads_for(rows, threads);
    constexpr Index kMostLogits = 1 << 20;  // of a stream that is kept
    const auto fits = [&](const Stream& stream) { return stream.capacity() >= rows && stream.threads() >= threads; };
    std::unique_ptr<Stream> taken = streams_.take(fits);
    if (!taken) taken = std::make_unique<Stream>(*this, rows, rows, threads);
    Stream& stream = *taken;
    stream.set_rows(rows);
    stream.load(states);
    std::copy(ids, ids + rows, stream.ids());
    if (labels) std::copy(labels, labels + rows, stream.labels());
    auto body = [&](int index, int count) {
        stream.step(index, count);
        stream.logits(stream.top(), rows, index, count);
        stream.wait(count);
        for (int row = index; row < rows; row += count) {
            const float* from = stream.row_logits(row);
            float* to = log_probs + static_cast<Index>(row) * vocabulary();
            const LogSum sum = kernels_.log_sum(from, stream.padded());
            const double total = sum.top + std::log(sum.sum);
            for (int id = 0; id < vocabulary(); ++id)
                to[id] = static_cast<float>(static_cast<double>(from[id]) - total);
        }
    };
    parallel(threads, body);
    stream.turn(0);
    stream.save(after);
    if (stream.capacity() * stream.padded() <= kMostLogits) streams_.keep(std::move(taken));
}

// The recurrence goes step by step, but what comes out of it is given to the softmax many steps at a time.
void Engine::score(int rows, Index steps, const int* inputs, const int* targets, const int* labels, float* states,
                   double* log_probs, int threads) const {
    constexpr int kVectors = 32;
    const Index block = rows < kVectors ? kVectors / rows : 1, stride = network_.output;
    threads = threads_for(rows, threads);
    Stream stream(*this, rows, static_cast<int>(block) * rows, threads);
    Buffer<float> tops(block * rows * stride);
    stream.load(states);
    if (labels) std::memcpy(stream.labels(), labels, static_cast<std::size_t>(rows) * sizeof(int));
    Interrupt interrupt;
    auto body = [&](int index, int count) {
        for (Index begin = 0; begin < steps; begin += block) {
            const Index some = steps - begin < block ? steps - begin : block;
            for (Index t = 0; t < some; ++t) {
                if (index == 0)
                    for (int row = 0; row < rows; ++row) stream.ids()[row] = inputs[row * steps + begin + t];
                stream.wait(count);
                stream.step(index, count);
                for (int row = index; row < rows; row += count)
                    std::memcpy(tops + (t * rows + row) * stride, stream.top() + row * stride,
                                static_cast<std::size_t>(stride) * sizeof(float));
                stream.wait(count);
                stream.turn(index);
            }
            stream.wait(count);
            stream.logits(tops, static_cast<int>(some) * rows, index, count);
            if (stream.wait(count, interrupt.stops(index, some * rows * bytes_))) return;
            for (Index i = index; i < some * rows; i += count) {
                const Index place = i % rows * steps + begin + i / rows;
                const float* from = stream.row_logits(static_cast<int>(i));
                const LogSum sum = kernels_.log_sum(from, stream.padded());
                log_probs[place] = static_cast<double>(from[targets[place]]) - sum.top - std::log(sum.sum);
            }
        }
    };
    parallel(threads, body);
    interrupt.check();
    stream.save(states);
}

}  // namespace elman
