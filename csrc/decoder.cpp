#include "decoder.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

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
        const AttendNetwork& network = decoder.network_;
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
    AttendWork work{};

  private:
    Barrier barrier_;
    Buffer<float> joined_, queries_;
    std::vector<Buffer<float>> kept_;
    std::vector<Buffer<std::uint8_t>> bytes_;
    std::vector<StreamScratch> scratch_;
};

Decoder::Decoder(const Weights& weights, const AttendWeights& attend)
    : engine_(weights),
      attends_(attend.attends),
      key_size_(attend.key_size),
      memory_size_(attend.state_size),
      fed_(attend.feeds_readout ? weights.bridge.rows : 0) {
    const int lanes = engine_.kernels().lanes;
    const Index H = weights.output, E = weights.token_size, M = attend.state_size;
    const bool attends = attends_ != Attends::never;
    require(attends == (attend.score != Score::none) && attends == (M > 0) && attends == (attend.key_size > 0),
            "the attention");
    require(weights.labels == 0 && E > 0 && weights.bridge && weights.bridge_tanh, "the readout");
    require(weights.fed_size == (attend.feeds_readout ? fed_ : attends_ == Attends::before ? M : 0), "what it is fed");
    require(!attend.feeds_readout || attends_ == Attends::after, "what it is fed");
    // Where it attends before the step, and there alone, the token stands in the row.
    const bool token = attend.reads_token;
    require(token == (attends_ == Attends::before) && (token || !attend.sees_token), "the token");
    std::vector<Index> parts;
    if (attend.reads_token) parts.push_back(E);
    parts.push_back(H);
    if (attends) parts.push_back(M);
    require(weights.bridge_parts == parts, "the readout");

    network_.score = attend.score;
    network_.scale = attend.scale;
    network_.sees_token = attend.sees_token;
    network_.token = token ? 0 : -1;
    network_.state = token ? padded(E, lanes) : 0;
    network_.context = network_.state + padded(H, lanes);
    network_.stride = network_.context + padded(M, lanes);
    network_.query_size = static_cast<int>(attend.query ? attend.query.rows : H);
    if (attend.query) {
        const std::vector<Index> seen = attend.sees_token ? std::vector<Index>{E, H} : std::vector<Index>{H};
        require(attend.query.columns == H + (attend.sees_token ? E : 0), "the query");
        query_ = PackedMatrix(attend.query, 1, seen, lanes);
        network_.query = query_.matrix();
        if (attend.query_bias)
            network_.query_bias = query_bias_ = pack_rows(attend.query_bias, 1, 1, attend.query.rows, lanes);
    }
    if (attend.score == Score::additive) {
        require(attend.query && attend.v, "the attention");
        network_.v = v_ = pack_rows(attend.v, 1, 1, network_.query_size, lanes);
    }
    const bool compared = attends && attend.score != Score::location;
    require(!compared || attend.key_size == network_.query_size, "the query");
    require(attend.score != Score::location || attend.query, "the query");
}

Decoder::~Decoder() = default;

void Decoder::step(int rows, const int* ids, const int* owners, const Memory& memory, float* states, float* weights,
                   float* logits, int threads) const {
    threads = engine_.threads_for(rows, threads);
    constexpr int kLargestKept = 1 << 10;  // rows
    const auto fits = [&](const Room& room) {
        return room.stream.capacity() >= rows && room.stream.threads() >= threads;
    };
    std::unique_ptr<Room> room = rooms_.take(fits);
    if (!room) room = std::make_unique<Room>(*this, rows, threads);
    Stream& stream = room->stream;
    AttendWork& work = room->work;
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
    if (attends_ == Attends::before) stream.feed(work.joined + network_.context, stride);

    const auto place = [&](const int* tokens, const float* h, int index, int count) {
        kernels.join_rows(engine_.network(), network_, work, tokens, h, stream.stride(), index, count);
        stream.wait(count);
    };
    const auto attend = [&](int index, int count) {
        kernels.attend(network_, work, index, count);
        stream.wait(count);
    };
    auto body = [&](int index, int count) {
        if (attends_ == Attends::before) {
            place(ids, stream.h(last, 0), index, count);
            attend(index, count);
        }
        stream.step(index, count);
        place(nullptr, stream.top(), index, count);
        if (attends_ == Attends::after) attend(index, count);
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

std::vector<Written> Decoder::greedy(const GreedyRequest& request, const Memory& memory, std::vector<float> states,
                                     int threads) const {
    constexpr Index kWorthAThread = 1 << 18;  // logits
    constexpr float kNever = -__builtin_inff();
    const Kernels& kernels = engine_.kernels();
    const Index size = state_size(), width = padded_vocabulary();
    int rows = static_cast<int>(request.limits.size());
    const auto count = static_cast<std::size_t>(rows);
    std::vector<Written> written(count);
    std::vector<int> ids(count, request.start), owners(count);
    std::iota(owners.begin(), owners.end(), 0);
    std::vector<std::int64_t> first(count + 1), parents(count), best(count);
    std::iota(first.begin(), first.end(), 0);
    std::vector<double> before(count), after(count);
    Buffer<float> logits(rows * width), weights(static_cast<Index>(rows) * memory.places);
    const Continuations all{width, 1, logits, before.data(), first.data(), after.data(), parents.data(), best.data()};
    Interrupt interrupt;
    for (Index length = 1; rows > 0; ++length) {
        step(rows, ids.data(), owners.data(), memory, states.data(), weights, logits, threads);
        auto choose = [&](int index, int members) {
            const auto from = [&](int part) { return static_cast<Index>(rows) * part / members; };
            for (Index row = from(index); row < from(index + 1); ++row) {
                float* own = logits + row * width;
                const LogSum sum = kernels.log_sum(own, width);
                const auto at = static_cast<std::size_t>(row);
                before[at] = written[static_cast<std::size_t>(owners[at])].log_prob - sum.top - std::log(sum.sum);
                for (const int id : request.never) own[id] = kNever;
                if (length < request.shortest) own[request.stop] = kNever;
            }
            kernels.best_continuations(all, from(index), from(index + 1));
        };
        parallel(rows * width > kWorthAThread ? threads : 1, choose);
        std::size_t open = 0;
        for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
            const int owner = owners[row], id = static_cast<int>(best[row]);
            Written& text = written[static_cast<std::size_t>(owner)];
            text.log_prob = after[row];
            if (!std::isfinite(text.log_prob)) continue;
            text.finished = id == request.stop;
            if (text.finished) continue;
            text.ids.push_back(id);
            if (length == request.limits[static_cast<std::size_t>(owner)]) continue;
            if (open < row)
                copy(states.data() + static_cast<Index>(open) * size, states.data() + static_cast<Index>(row) * size,
                     size);
            owners[open] = owner;
            ids[open++] = id;
        }
        rows = static_cast<int>(open);
        if (interrupt.stops(0, rows * engine_.bytes())) break;
    }
    interrupt.check();
    return written;
}

}  // namespace elman
