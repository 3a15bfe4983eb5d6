#include "threads.hpp"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif
#if defined(__linux__)
#include <dlfcn.h>
#include <link.h>
#endif

namespace elman {
namespace {

struct Region {
    void (*body)(int, int, void*);
    void* data;
    int threads;
};

// --- PyTorch's pool -------------------------------------------------------------------------------------------------

// The functions of GCC's OpenMP library that are needed; those of LLVM and Intel have them as well.
struct OpenMP {
    void (*parallel)(void (*)(void*), void*, unsigned, unsigned) = nullptr;
    int (*thread_number)() = nullptr;
    int (*threads)() = nullptr;
    int (*most_threads)() = nullptr;
    std::string path;
    bool found() const { return parallel && thread_number && threads && most_threads; }
};

#if defined(__linux__)
// What PyTorch's own calls are bound to: the first of that name in the program (LD_PRELOAD), then in what libtorch_cpu
// links.
template <class Function>
void find(void* torch, const char* name, Function& function) {
    void* found = dlsym(RTLD_DEFAULT, name);
    function = reinterpret_cast<Function>(found ? found : dlsym(torch, name));
}
#endif

OpenMP find_openmp() {
    OpenMP openmp;
    const char* own = std::getenv("ELMAN_OWN_THREADS");
    if (own && *own && std::string(own) != "0") return openmp;
#if defined(__linux__)
    void* torch = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_NOW);
    if (!torch) return openmp;
    find(torch, "GOMP_parallel", openmp.parallel);
    find(torch, "omp_get_thread_num", openmp.thread_number);
    find(torch, "omp_get_num_threads", openmp.threads);
    find(torch, "omp_get_max_threads", openmp.most_threads);
    Dl_info info{};
    if (openmp.parallel && dladdr(reinterpret_cast<void*>(openmp.parallel), &info)) openmp.path = info.dli_fname;
#endif
    return openmp;
}

// How many libraries the process has loaded so far.
unsigned long long libraries() {
    unsigned long long count = 1;
#if defined(__linux__)
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* found) {
            *static_cast<unsigned long long*>(found) = info->dlpi_adds;
            return 1;
        },
        &count);
#endif
    return count;
}

// A process may load PyTorch at any time: what was not found is looked for again once there are more libraries.
const OpenMP& openmp() {
    static const OpenMP none;
    static std::atomic<const OpenMP*> known{nullptr};
    static std::atomic<unsigned long long> searched{0};
    if (const OpenMP* found = known.load()) return *found;
    const unsigned long long now = libraries();
    if (searched.exchange(now) == now) return none;
    OpenMP found = find_openmp();
    if (!found.found()) return none;
    const OpenMP* first = nullptr;
    const OpenMP* kept = new OpenMP(std::move(found));  // as long as the process
    return known.compare_exchange_strong(first, kept) ? *kept : *first;
}

// --- A pool of our own ----------------------------------------------------------------------------------------------

// Threads that sleep until there is a region for them, and never end.
class Pool {
  public:
    void run(const Region& region) {
        const std::unique_lock<std::mutex> mine(in_use_, std::try_to_lock);
        if (!mine) return region.body(0, 1, region.data);  // another thread of the program has them
        grow(region.threads - 1);
        std::unique_lock<std::mutex> locked(lock_);
        region_ = region;
        region_.threads = std::min(region.threads, size_ + 1);
        running_ = region_.threads - 1;
        ++round_;
        locked.unlock();
        begin_.notify_all();
        region_.body(0, region_.threads, region_.data);
        locked.lock();
        end_.wait(locked, [&] { return running_ == 0; });
    }

  private:
    void grow(int size) {
        try {
            for (; size_ < size; ++size_) std::thread(&Pool::work, this, size_ + 1, round_).detach();
        } catch (const std::system_error&) {  // the system has no more: as many as there are
        }
    }

    void work(int index, unsigned seen) {
        std::unique_lock<std::mutex> locked(lock_);
        for (;;) {
            begin_.wait(locked, [&] { return round_ != seen; });
            seen = round_;
            if (index >= region_.threads) continue;
            locked.unlock();
            region_.body(index, region_.threads, region_.data);
            locked.lock();
            if (--running_ == 0) end_.notify_one();
        }
    }

    std::mutex in_use_, lock_;
    std::condition_variable begin_, end_;
    Region region_{};
    int size_ = 0, running_ = 0;
    unsigned round_ = 0;
};

Pool& own_pool() {
    static Pool& pool = *new Pool;  // its threads wait for it until the process ends
    return pool;
}

// --- Forks ----------------------------------------------------------------------------------------------------------

bool forked = false;
unsigned long main_thread = 0;  // Python's

#if defined(__unix__) || defined(__APPLE__)
[[maybe_unused]] const int watched = pthread_atfork(nullptr, nullptr, [] {
    forked = true;
    main_thread = PyThread_get_thread_ident();  // the one that forked is all that the new process has
});
#endif

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

void parallel(int threads, void (*body)(int, int, void*), void* data) {
    if (threads <= 1 || forked) return body(0, 1, data);
    Region region{body, data, threads};
    const OpenMP& pool = openmp();
    if (!pool.found()) return own_pool().run(region);
    pool.parallel(
        [](void* argument) {
            const auto& mine = *static_cast<Region*>(argument);
            const int index = openmp().thread_number(), count = std::min(mine.threads, openmp().threads());
            if (index < count) mine.body(index, count, mine.data);
        },
        &region, static_cast<unsigned>(std::max(threads, pool.most_threads())), 0);
}

const char* thread_library() { return openmp().found() ? openmp().path.c_str() : "std::thread"; }

void note_main_thread() {
    const nanobind::object thread = nanobind::module_::import_("threading").attr("main_thread")();
    main_thread = nanobind::cast<unsigned long>(thread.attr("ident"));
}

Interrupt::Interrupt() : asks_(PyThread_get_thread_ident() == main_thread) {}

void Interrupt::ask() {
    constexpr double kInterval = 0.1;
    work_ = 0;
    if (!asks_) return;
    const double now = seconds();
    if (now < next_) return;
    const bool first = next_ == 0;
    next_ = now + kInterval;
    if (first) return;
    const nanobind::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() != 0) __atomic_store_n(&stops_, true, __ATOMIC_RELAXED);
}

void Interrupt::end(int index, int count) {
    ended_.fetch_add(1, std::memory_order_relaxed);
    while (index == 0 && asks_ && ended_.load(std::memory_order_relaxed) < count) {
        std::this_thread::yield();
        ask();
    }
}

void Interrupt::check() const {
    if (!stops_) return;
    const nanobind::gil_scoped_acquire locked;
    throw nanobind::python_error();
}

}  // namespace elman
