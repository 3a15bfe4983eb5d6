// Running one function on several cores at once.
//
// PyTorch brings an OpenMP library whose threads wait for its next operation by spinning. A second pool would have to
// fight them for the cores, so its pool is used here too, and asked for as many threads as PyTorch asks for: with
// another number it would end some and start others. Where there is no such library (macOS), or with
// ELMAN_OWN_THREADS=1 in the environment, the kernels have a pool of their own.
#pragma once

#include <atomic>

#include "index.hpp"

namespace elman {

// Calls body(index, count, data) for index = 0 ... count-1, all at the same time, the first on the caller's thread;
// count is `threads` or fewer. The body must not throw. In a process that was forked count is 1: its parent's threads
// are not there.
void parallel(int threads, void (*body)(int index, int count, void* data), void* data);

template <class Body>
void parallel(int threads, Body& body) {
    parallel(
        threads, [](int index, int count, void* data) { (*static_cast<Body*>(data))(index, count); },
        static_cast<void*>(&body));
}

// Whose threads these are, for `elman doctor`.
const char* thread_library();

// Called once, when the module is imported: notes which thread Python's signals come to.
void note_main_thread();

// Lets Ctrl-C, and whatever else Python does at a signal, end a call that takes long. Python's lock is not held
// meanwhile, and is asked for on Python's main thread alone: no other sees a signal. It is made on the caller's thread.
class Interrupt {
  public:
    Interrupt();

    // Asked again and again by the members of a region: whether to give up what they do. `work` is about as many
    // products as are to come until it is asked again. The caller's thread asks Python now and then, the others see
    // what it found.
    __attribute__((always_inline)) bool stops(int index, Index work) {
        if (index == 0 && (work_ += work) >= kWork) ask();
        return __atomic_load_n(&stops_, __ATOMIC_RELAXED);
    }

    // The last thing that each member does where none waits for another: the caller's thread, which may have had the
    // least to do or nothing at all, goes on asking until all have come here.
    void end(int index, int count);

    // After the region: throws what Python raised, if it did.
    void check() const;

  private:
    static constexpr Index kWork = 1 << 22;  // a quarter of a millisecond or more: reading the clock costs nothing then
    void ask();

    alignas(64) bool stops_ = false;
    const bool asks_;  // whether the caller's is the main thread
    alignas(64) Index work_ = 0;
    std::atomic<int> ended_{0};
    double next_ = 0;  // when to ask again; 0 before the clock was first read
};

}  // namespace elman
