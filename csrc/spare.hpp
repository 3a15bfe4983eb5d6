// Memory that is used again: asking the system for it takes longer than a small network's step.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace elman {

// What is not in use, of a kind of which several threads of a program need one each.
template <class T>
class Spare {
  public:
    // One that `fits`, or null. Those that do not are freed on the way to it.
    template <class Fits>
    std::unique_ptr<T> take(Fits fits) {
        const std::lock_guard<std::mutex> locked(lock_);
        while (!kept_.empty()) {
            std::unique_ptr<T> one = std::move(kept_.back());
            kept_.pop_back();
            if (fits(*one)) return one;
        }
        return nullptr;
    }

    void keep(std::unique_ptr<T> one) {
        const std::lock_guard<std::mutex> locked(lock_);
        kept_.push_back(std::move(one));
    }

  private:
    std::mutex lock_;
    std::vector<std::unique_ptr<T>> kept_;
};

}  // namespace elman
