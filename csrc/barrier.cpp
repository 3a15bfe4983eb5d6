#include "barrier.hpp"

#include <thread>

namespace elman {
namespace {

constexpr int kSpins = 200;  // some microseconds: longer than a layer's share is ever behind another's

inline void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

}  // namespace

bool Barrier::wait(int count, bool stop) {
    if (count <= 1) return stop;
    if (stop) stop_.store(true, std::memory_order_relaxed);
    const unsigned round = round_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) == count - 1) {
        // Nobody writes this again before all have come back, and so have read it.
        agreed_ = stop_.exchange(false, std::memory_order_relaxed);
        arrived_.store(0, std::memory_order_relaxed);
        round_.store(round + 1, std::memory_order_release);
        return agreed_;
    }
    for (int spins = 0; round_.load(std::memory_order_acquire) == round; ++spins) {
        if (spins < kSpins) pause();
        else std::this_thread::yield();
    }
    return agreed_;
}

}  // namespace elman
