#include "decoder.hpp"

#include <algorithm>

#include "threads.hpp"

namespace elman {
namespace {

void copy(float* to, const float* from, Index count) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
}

}  // namespace

// Memory that is used again and again, for so many rows and threads at most.
class Decoder::Room {
  public:
    Room(const Decoder& decoder, int rows, int threads)
        : stream(decoder.engine_, rows, 0, threads), scratch_(static_cast<std::size_t>(threads)) {
        const LookNetwork& network = decoder.network_;
        const int lanes = decoder.engine_.kernels().lanes;
        const Index query = padded(network.query.units, lanes), longest = network.query.size;
        joined_ = Buffer<float>(rows * network.stride);
        work.scratch = scratch_.data();
        work.joined = joined_;
        work.barrier = &barrier_;
        if (!query) return;
        work.queries = queries_ = Buffer<float>(rows * query);
        for (StreamScratch& each : scratch_) {
            each.sums[0] = kept_.emplace_back(kStreamChunk * 4L * lanes);
            each.scale[0] = kept_.emplace_back(rows);
            each.bytes[0] = bytes_.emplace_back(rows * longest);
        }
    }

    Stream stream;
    LookWork work{};

  private:
    Barrier barrier_;
    Buffer<float> joined_, queries_;
    std::vector<Buffer<float>> kept_;
    std::vector<Buffer<std::uint8_t>> bytes_;
    std::vector<StreamScratch> scratch_;
};

Decoder::Decoder(const Weights& weights, const LookWeights& look)
    : engine_(weights),
      looks_(look.looks),
      key_size_(look.key_size),
      memory_size_(look.state_size),
      fed_(look.feeds_readout ? weights.bridge.rows : 0) {
    const int lanes = engine_.kernels().lanes;
    const Index H = weights.output, E = weights.token_size, M = look.state_size;
    const bool looks = looks_ != Looks::never;
    require(looks == (look.score != Score::none) && looks == (M > 0) && looks == (look.key_size > 0), "the attention");
    require(weights.labels == 0 && E > 0 && weights.bridge && weights.bridge_tanh, "the readout");
    require(weights.fed_size == (look.feeds_readout ? fed_ : looks_ == Looks::before ? M : 0), "what it is fed");
    require(!look.feeds_readout || looks_ == Looks::after, "what it is fed");
    const bool token = look.reads_token;  // where it looks before the step, and there alone, the token stands in the row
    require(token == (looks_ == Looks::before) && (token || !look.sees_token), "the token");
    std::vector<Index> parts;
    if (look.reads_token) parts.push_back(E);
    parts.push_back(H);
    if (looks) parts.push_back(M);
    require(weights.bridge_parts == parts, "the readout");

    network_.score = look.score;
    network_.scale = look.scale;
    network_.sees_token = look.sees_token;
    network_.token = token ? 0 : -1;
    network_.state = token ? padded(E, lanes) : 0;
    network_.seen = network_.state + padded(H, lanes);
    network_.stride = network_.seen + padded(M, lanes);
    network_.query_size = static_cast<int>(look.query ? look.query.rows : H);
    if (look.query) {
        const std::vector<Index> seen = look.sees_token ? std::vector<Index>{E, H} : std::vector<Index>{H};
        require(look.query.columns == H + (look.sees_token ? E : 0), "the query");
        query_ = PackedMatrix(look.query, 1, seen, lanes);
        network_.query = query_.matrix();
        if (look.query_bias) network_.query_bias = query_bias_ = pack_rows(look.query_bias, 1, 1, look.query.rows, lanes);
    }
    if (look.score == Score::additive) {
        require(look.query && look.v, "the attention");
        network_.v = v_ = pack_rows(look.v, 1, 1, network_.query_size, lanes);
    }
    const bool compared = looks && look.score != Score::location;
    require(!compared || look.key_size == network_.query_size, "the query");
    require(look.score != Score::location || look.query, "the query");
}

Decoder::~Decoder() = default;

void Decoder::step(int rows, const int* ids, const int* owners, const Memory& memory, float* states, float* weights,
                   float* logits, int threads) const {
    threads = engine_.threads_for(rows, threads);
    constexpr int kLargestKept = 1 << 10;  // rows
    const auto fits = [&](const Room& room) { return room.stream.capacity() >= rows && room.stream.threads() >= threads; };
    std::unique_ptr<Room> room = rooms_.take(fits);
    if (!room) room = std::make_unique<Room>(*this, rows, threads);
    Stream& stream = room->stream;
    LookWork& work = room->work;
    const Kernels& kernels = engine_.kernels();
    const Index size = state_size(), stride = network_.stride;
    const int last = engine_.network().layers - 1;
    work.rows = rows;
    work.owners = owners;
    work.memory = &memory;
    work.weights = weights;
    stream.set_rows(rows);
    stream.load(states, size);
    std::copy(ids, ids + rows, stream.ids());
    if (fed_) stream.feed(states + engine_.state_size(), size);
    if (looks_ == Looks::before) stream.feed(work.joined + network_.seen, stride);

    const auto place = [&](const int* tokens, const float* h, int index, int count) {
        kernels.place(engine_.network(), network_, work, tokens, h, stream.stride(), index, count);
        stream.wait(count);
    };
    const auto look = [&](int index, int count) {
        kernels.look(network_, work, index, count);
        stream.wait(count);
    };
    auto body = [&](int index, int count) {
        if (looks_ == Looks::before) {
            place(ids, stream.h(last, 0), index, count);
            look(index, count);
        }
        stream.step(index, count);
        place(nullptr, stream.top(), index, count);
        if (looks_ == Looks::after) look(index, count);
        stream.logits(work.joined, stride, rows, logits, index, count);
    };
    parallel(threads, body);
    stream.turn(0);
    stream.save(states, size);
    const Index readout = padded(engine_.network().bridge.units, kernels.lanes);
    for (int row = 0; fed_ && row < rows; ++row)
        copy(states + row * size + engine_.state_size(), stream.bridged() + row * readout, fed_);
    if (stream.capacity() <= kLargestKept) rooms_.keep(std::move(room));
}

}  // namespace elman
