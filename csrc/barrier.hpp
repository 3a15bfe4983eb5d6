// Where threads of a parallel region wait for each other.
#pragma once

#include <atomic>

namespace elman {

class Barrier {
  public:
    // Returns when `count` threads have called it. Waits are short, so it spins; but not forever, since on a loaded
    // machine the thread that is waited for may have no core. The answer is the same for all of them: whether any said
    // that they should stop.
    bool wait(int count, bool stop = false);

  private:
    std::atomic<bool> stop_{false};
    bool agreed_ = false;
    alignas(64) std::atomic<int> arrived_{0};
    alignas(64) std::atomic<unsigned> round_{0};
};

}  // namespace elman
