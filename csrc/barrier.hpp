// Where threads of a parallel region wait for each other.
#pragma once

#include <atomic>

namespace elman {

class Barrier {
  public:
    // Returns when `count` threads have called it. Waits are short, so it spins; but not forever, since on a loaded machine
    // the thread that is waited for may have no core.
    void wait(int count);

  private:
    alignas(64) std::atomic<int> arrived_{0};
    alignas(64) std::atomic<unsigned> round_{0};
};

}  // namespace elman
