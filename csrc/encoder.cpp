#include "encoder.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>

#include "threads.hpp"

namespace elman {
namespace {

constexpr Index kRows = 2048;                  // of texts that are read side by side, unless one alone has more
constexpr Index kProductsWorthACore = 400000;  // what takes longer than waking another core
constexpr Index kRoomBytes = 64 << 20;         // a larger room is not kept after its call

void copy(float* to, const float* from, Index numbers) {
    std::memcpy(to, from, static_cast<std::size_t>(numbers) * sizeof(float));
}

int threads_for(Index products, int most) {
    return static_cast<int>(std::clamp<Index>(products / kProductsWorthACore, 1, most));
}

}  // namespace

// --- Packing --------------------------------------------------------------------------------------------------------

Encoder::Encoder(const EncoderWeights& weights)
    : kernels_(elman::kernels()), hidden_(weights.hidden), inputs_(weights.inputs), ids_(weights.ids) {
    const Index H = hidden_, D = weights.directions;
    require(hidden_ > 0 && (D == 1 || D == 2), "a size");
    require(!weights.parts.empty() && weights.parts.size() % static_cast<std::size_t>(D) == 0, "the number of layers");
    require(inputs_ >= 0 && ids_ >= 0 && (inputs_ > 0) != (ids_ > 0) && !(weights.residual && weights.dense),
            "the input");
    require(!(weights.dense && ids_), "the input");
    const bool added = weights.residual && inputs_ == D * H;  // to the first layer's output, so it has the same layout
    if (inputs_)
        input_parts_ = added ? std::vector<Index>(static_cast<std::size_t>(D), H) : std::vector<Index>{inputs_};
    network_.cell = weights.cell;
    network_.directions = static_cast<int>(D);
    network_.hidden = static_cast<int>(padded(H, kernels_.lanes));
    network_.columns = padded(H, kernels_.lanes) * weight_blocks(weights.cell);
    for (const Index part : input_parts_) network_.seen += static_cast<int>(padded(part, kernels_.lanes));
    network_.dense = weights.dense;
    network_.pooling = weights.pooling;
    const auto depth = weights.parts.size() / static_cast<std::size_t>(D);
    std::vector<Index> parts = input_parts_;
    for (std::size_t i = 0; i < depth; ++i) {
        add_layer(weights, i, parts);
        layers_.back().adds_input = weights.residual && (i > 0 || added);
        if (!weights.dense) parts.clear();
        parts.insert(parts.end(), static_cast<std::size_t>(D), H);
    }
    network_.layers = static_cast<int>(depth);
    network_.layer = layers_.data();
    add_ends(weights);
}

Encoder::~Encoder() = default;

void Encoder::add_layer(const EncoderWeights& weights, std::size_t depth, const std::vector<Index>& parts) {
    const std::string name = "layer " + std::to_string(depth + 1);
    const int blocks = weight_blocks(weights.cell);
    const Index H = hidden_, rows = blocks * H, seen = std::accumulate(parts.begin(), parts.end(), 0L);
    EncoderLayer layer{};
    for (int side = 0; side < network_.directions; ++side) {
        const DirectionWeights& from =
            weights.parts[depth * static_cast<std::size_t>(network_.directions) + static_cast<std::size_t>(side)];
        EncoderDirection& to = layer.direction[side];
        const bool tabled = depth == 0 && ids_ > 0;
        require((from.table != nullptr) == tabled && static_cast<bool>(from.input) != tabled, name);
        require(from.hidden && from.hidden.rows == rows && from.hidden.columns == H, name);
        require(from.bias && (weights.cell != Cell::gru || from.hidden_bias), name);
        if (tabled) {
            to.table = keep_rows(from.table, ids_, blocks, H);
        } else {
            require(from.input.rows == rows && from.input.columns == seen, name);
            to.input = keep(from.input, blocks, parts);
        }
        to.hidden = keep(from.hidden, blocks, {H});
        to.bias = keep_rows(from.bias, 1, blocks, H);
        if (weights.cell == Cell::gru) to.hidden_bias = keep_rows(from.hidden_bias, 1, 1, H);
    }
    layers_.push_back(layer);
}

void Encoder::add_ends(const EncoderWeights& weights) {
    std::vector<Index> parts(static_cast<std::size_t>(network_.directions), hidden_);
    width_ = static_cast<Index>(network_.directions) * hidden_;
    require((weights.pooling == Pooling::attention) == static_cast<bool>(weights.query), "the pooling");
    if (weights.query) {
        require(weights.query.columns == width_ && weights.query_bias && weights.query_vector, "the pooling");
        network_.query = keep(weights.query, 1, parts);
        network_.query_bias = keep_rows(weights.query_bias, 1, 1, weights.query.rows);
        network_.query_vector = keep_rows(weights.query_vector, 1, 1, weights.query.rows);
    }
    if (weights.pooling == Pooling::last_max_mean) {
        parts.assign(3 * parts.size(), hidden_);
        width_ *= 3;
    }
    if (!weights.head) return;
    require(weights.head.columns == width_ && weights.head_bias, "the output layer");
    network_.head = keep(weights.head, 1, parts);
    network_.head_bias = keep_rows(weights.head_bias, 1, 1, weights.head.rows);
    width_ = weights.head.rows;
}

Matrix Encoder::keep(const Plain& from, int blocks, const std::vector<Index>& parts) {
    products_ += from.rows * from.columns;
    return matrices_.emplace_back(from, blocks, parts, kernels_.lanes).matrix();
}

const float* Encoder::keep_rows(const float* from, Index rows, int blocks, Index units) {
    return rows_.emplace_back(pack_rows(from, rows, blocks, units, kernels_.lanes));
}

// --- Room -----------------------------------------------------------------------------------------------------------

// Memory that grows and is used again: what a call would ask the system for costs as much as some answers.
class Encoder::Room {
  public:
    EncoderWork work{};
    std::vector<int> lengths, offsets, ids;

    // For the vectors of the rows that `offsets` tell of.
    void prepare_seen(const Encoder& encoder, int threads) {
        const EncoderNetwork& network = encoder.network_;
        const Index width = static_cast<Index>(network.directions) * network.hidden;
        work.steps = static_cast<int>(offsets.size()) - 1;
        work.offsets = offsets.data();
        work.seen_stride = network.seen + (network.dense ? network.layers * width : 0);
        used_ = 0;
        work.seen = floats(offsets.back() * work.seen_stride);
        prepare_threads(std::max({work.seen_stride, width, network.pooled_width()}), encoder.kernels_.lanes, threads);
    }

    // For all that is made of texts, too.
    void prepare(const Encoder& encoder, bool final, int threads) {
        prepare_seen(encoder, threads);
        const EncoderNetwork& network = encoder.network_;
        const int lanes = encoder.kernels_.lanes;
        const Index rows = offsets.back(), texts = static_cast<Index>(lengths.size());
        const Index width = static_cast<Index>(network.directions) * network.hidden;
        const bool pooled = encoder.pooled(), dense = network.dense;
        work.texts = static_cast<int>(texts);
        work.lengths = lengths.data();
        work.gates_stride = network.columns;
        for (int i = 0; i < 2; ++i) {
            const bool there = i < network.directions;
            work.outputs[i] = floats(dense || i >= network.layers ? 0 : rows * width);
            work.gates[i] = floats(there && (network.seen || network.layers > 1) ? rows * network.columns : 0);
            work.c[i] = floats(there && network.cell == Cell::lstm ? texts * network.hidden : 0);
            const bool kept = final && i < encoder.state_parts();
            float* states = floats(kept ? encoder.states() * texts * network.hidden : 0);
            work.final[i] = kept ? states : nullptr;
        }
        work.queries = floats(network.query ? rows * padded(network.query.units, lanes) : 0);
        work.pooled = floats(pooled ? texts * network.pooled_width() : 0);
        work.result = floats(network.head ? (pooled ? texts : rows) * padded(network.head.units, lanes) : 0);
    }

    Index bytes() const {
        return std::accumulate(sizes_.begin(), sizes_.end(), 0L) * static_cast<Index>(sizeof(float));
    }

  private:
    void prepare_threads(Index longest, int lanes, int threads) {
        for (Index done = static_cast<Index>(scratch_.size()); done < threads; ++done) {
            StreamScratch& each = scratch_.emplace_back();
            for (int which = 0; which < 2; ++which) {
                each.sums[which] = kept_.emplace_back(kStreamChunk * 4L * lanes).get();
                each.scale[which] = kept_.emplace_back(kStreamChunk).get();
                each.bytes[which] = bytes_.emplace_back(kStreamChunk * longest).get();
            }
        }
        work.scratch = scratch_.data();
        work.barrier = barriers_;
    }

    // The next buffer, in the same order in every call. What lies in the padding is zero from the beginning, and stays
    // so.
    float* floats(Index count) {
        if (used_ == buffers_.size()) {
            buffers_.emplace_back();
            sizes_.push_back(0);
        }
        if (sizes_[used_] < count) {
            buffers_[used_] = Buffer<float>(count + count / 2);
            sizes_[used_] = count + count / 2;
        }
        return buffers_[used_++];
    }

    std::size_t used_ = 0;
    std::vector<Buffer<float>> buffers_, kept_;
    std::vector<Index> sizes_;
    std::vector<Buffer<std::uint8_t>> bytes_;
    std::vector<StreamScratch> scratch_;
    Barrier barriers_[3];
};

// --- Reading --------------------------------------------------------------------------------------------------------

struct Encoder::Plan {
    std::vector<int> order;     // numbers of texts, the longest first
    std::vector<Index> starts;  // of each text: its first row; and how many rows there are

    explicit Plan(const Texts& texts) : order(static_cast<std::size_t>(texts.count)), starts(1, 0) {
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return texts.lengths[a] > texts.lengths[b]; });
        for (int i = 0; i < texts.count; ++i) starts.push_back(starts.back() + texts.lengths[i]);
    }

    // Texts that are read side by side. A few are dealt out, so that every thread has long and short ones; of many,
    // those of like length stay together.
    std::vector<std::vector<int>> groups(const Texts& texts, int threads) const {
        const auto count = static_cast<std::size_t>(threads);
        std::vector<std::vector<int>> found;
        if (starts.back() <= kRows * threads && order.size() <= count * kStreamChunk) {
            found.resize(std::min(count, order.size()));
            for (std::size_t i = 0; i < order.size(); ++i) found[i % found.size()].push_back(order[i]);
            return found;
        }
        const std::size_t rounds = (order.size() + count * kStreamChunk - 1) / (count * kStreamChunk);
        const std::size_t most = (order.size() + rounds * count - 1) / (rounds * count);  // so that all have as many
        Index rows = 0;
        for (const int text : order) {
            rows += texts.lengths[text];
            if (found.empty() || rows > kRows || found.back().size() == most) {
                found.emplace_back();
                rows = texts.lengths[text];
            }
            found.back().push_back(text);
        }
        return found;
    }
};

// A vector as the layers see it: each of its parts padded.
void Encoder::lay(const float* from, float* to) const {
    for (const Index part : input_parts_) {
        copy(to, from, part);
        to += padded(part, kernels_.lanes);
        from += part;
    }
}

// With few texts the threads share the units of each; with more, each thread has texts of its own and waits for nobody.
void Encoder::run(const Texts& texts, float* answers, const Finals& finals, int threads) const {
    const Plan plan(texts);
    threads = threads_for(products_ * plan.starts.back(), threads);
    Interrupt interrupt;
    if (texts.count < 2 * threads && texts.count <= kStreamChunk) {
        read(texts, plan, plan.order, answers, finals, threads, {&interrupt, 0});
        return interrupt.check();
    }
    const auto groups = plan.groups(texts, threads);
    std::atomic<std::size_t> next{0};
    std::mutex failing;
    std::exception_ptr failure;  // memory that is not there: told by the caller's thread
    auto body = [&](int index, int count) {
        try {
            for (std::size_t i = next++; i < groups.size() && !interrupt.stops(index, 0); i = next++)
                read(texts, plan, groups[i], answers, finals, 1, {&interrupt, index});
        } catch (...) {
            const std::lock_guard<std::mutex> locked(failing);
            failure = std::current_exception();
        }
        interrupt.end(index, count);
    };
    parallel(static_cast<int>(std::min<std::size_t>(groups.size(), static_cast<std::size_t>(threads))), body);
    interrupt.check();
    if (failure) std::rethrow_exception(failure);
}

// Some rows at a time, each written where it stays.
void Encoder::gates(const float* vectors, Index rows, float* gates, int threads) const {
    std::unique_ptr<Room> room = take_room();
    Interrupt interrupt;
    for (Index first = 0; first < rows; first += kRows) {
        const Index some = std::min(rows - first, kRows);
        const int members = threads_for(some * inputs_ * gates_width(), threads);
        room->offsets = {0, static_cast<int>(some)};
        room->prepare_seen(*this, members);
        EncoderWork& work = room->work;
        for (int side = 0; side < network_.directions; ++side)
            work.gates[side] = gates + first * gates_width() + side * network_.columns;
        work.gates_stride = gates_width();
        work.ids = nullptr;
        work.stop = {&interrupt, 0};
        for (Index row = 0; row < some; ++row)
            lay(vectors + (first + row) * inputs_, work.seen + row * work.seen_stride);
        auto body = [&](int index, int count) { kernels_.first_gates(network_, work, index, count); };
        parallel(members, body);
        interrupt.check();
    }
    keep_room(std::move(room));
}

std::unique_ptr<Encoder::Room> Encoder::take_room() const {
    std::unique_ptr<Room> room = rooms_.take([](const Room&) { return true; });  // they grow
    return room ? std::move(room) : std::make_unique<Room>();
}

// Where memory ran out before, this is not come to: a room that was half prepared is not used again.
void Encoder::keep_room(std::unique_ptr<Room> room) const {
    if (room->bytes() <= kRoomBytes) rooms_.keep(std::move(room));
}

void Encoder::read(const Texts& texts, const Plan& plan, const std::vector<int>& chosen, float* answers,
                   const Finals& finals, int threads, EncoderStop stop) const {
    std::unique_ptr<Room> room = take_room();
    const int lanes = kernels_.lanes, count = static_cast<int>(chosen.size());
    room->lengths.clear();
    for (const int text : chosen) room->lengths.push_back(texts.lengths[text]);
    room->offsets.assign(1, 0);
    for (int t = 0, there = count; t < room->lengths.front(); ++t) {
        while (room->lengths[static_cast<std::size_t>(there - 1)] <= t) --there;
        room->offsets.push_back(room->offsets.back() + there);
    }
    room->prepare(*this, finals.parts[0] != nullptr, threads);
    room->ids.resize(static_cast<std::size_t>(room->offsets.back()));
    EncoderWork& work = room->work;
    work.ids = texts.ids ? room->ids.data() : nullptr;
    for (int side = 0; side < network_.directions; ++side)
        work.table[side] = texts.gates ? texts.gates + side * network_.columns : layers_.front().direction[side].table;
    work.table_stride = texts.gates ? gates_width() : network_.columns;
    work.stop = stop;
    const auto for_rows = [&](auto take) {  // take(row here, row among those of the call)
        for (int i = 0; i < count; ++i)
            for (int t = 0; t < work.lengths[i]; ++t)
                take(work.offsets[t] + i,
                     plan.starts[static_cast<std::size_t>(chosen[static_cast<std::size_t>(i)])] + t);
    };
    for_rows([&](Index row, Index source) {
        if (texts.ids) room->ids[static_cast<std::size_t>(row)] = texts.ids[source];
        else lay(texts.vectors + source * inputs_, work.seen + row * work.seen_stride);
    });
    auto body = [&](int index, int members) { kernels_.encode(network_, work, index, members); };
    parallel(threads, body);
    const Index width = static_cast<Index>(network_.directions) * network_.hidden;
    const float* output = network_.dense ? work.seen + network_.seen + (network_.layers - 1) * width
                                         : work.outputs[(network_.layers - 1) % 2];
    const float* from = network_.head ? work.result : pooled() ? work.pooled : output;
    const Index whole = pooled() ? network_.pooled_width() : network_.dense ? work.seen_stride : width;
    const Index stride = network_.head ? padded(width_, lanes) : whole;
    const Index size = network_.head ? width_ : hidden_;  // without a head the directions are padded each by itself
    const auto answer = [&](Index row, Index place) {
        for (Index part = 0; part * size < width_; ++part)
            copy(answers + place * width_ + part * size, from + row * stride + part * network_.hidden, size);
    };
    if (!pooled()) for_rows(answer);
    else
        for (int i = 0; i < count; ++i) answer(i, chosen[static_cast<std::size_t>(i)]);
    for (int part = 0; finals.parts[0] && part < state_parts(); ++part)
        for (Index state = 0; state < states(); ++state)
            for (int i = 0; i < count; ++i)
                copy(finals.parts[part] + (state * texts.count + chosen[static_cast<std::size_t>(i)]) * hidden_,
                     work.final[part] + (state * count + i) * network_.hidden, hidden_);
    keep_room(std::move(room));
}

}  // namespace elman
