#include "threads.hpp"

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <dlfcn.h>
#include <link.h>
#endif

namespace elman {
namespace {

// The three functions of GCC's OpenMP library that are needed; those of LLVM and Intel have them as well.
struct OpenMP {
    void (*parallel)(void (*)(void*), void*, unsigned, unsigned) = nullptr;
    int (*thread_number)() = nullptr;
    int (*threads)() = nullptr;
    std::string path;
    bool found() const { return parallel && thread_number && threads; }
};

OpenMP find_openmp() {
    OpenMP openmp;
#if defined(__linux__)
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* data) {
            const char* path = info->dlpi_name;
            const bool candidate = path && (std::strstr(path, "libgomp") || std::strstr(path, "libiomp") ||
                                            std::strstr(path, "libomp"));
            auto& found = *static_cast<OpenMP*>(data);
            if (candidate && found.path.empty()) found.path = path;
            return 0;
        },
        &openmp);
    if (openmp.path.empty()) return openmp;
    if (void* library = dlopen(openmp.path.c_str(), RTLD_NOLOAD | RTLD_NOW)) {
        openmp.parallel = reinterpret_cast<decltype(openmp.parallel)>(dlsym(library, "GOMP_parallel"));
        openmp.thread_number = reinterpret_cast<decltype(openmp.thread_number)>(dlsym(library, "omp_get_thread_num"));
        openmp.threads = reinterpret_cast<decltype(openmp.threads)>(dlsym(library, "omp_get_num_threads"));
    }
#endif
    return openmp;
}

const OpenMP& openmp() {
    static const OpenMP found = find_openmp();
    return found;
}

struct Region {
    void (*body)(int, int, void*);
    void* data;
};

}  // namespace

void parallel(int threads, void (*body)(int, int, void*), void* data) {
    if (threads <= 1) return body(0, 1, data);
    if (openmp().found()) {
        Region region{body, data};
        openmp().parallel(
            [](void* given) {
                const auto& mine = *static_cast<Region*>(given);
                mine.body(openmp().thread_number(), openmp().threads(), mine.data);
            },
            &region, static_cast<unsigned>(threads), 0);
        return;
    }
    std::vector<std::thread> others;
    for (int index = 1; index < threads; ++index) others.emplace_back(body, index, threads, data);
    body(0, threads, data);
    for (auto& other : others) other.join();
}

const char* thread_library() { return openmp().found() ? openmp().path.c_str() : "std::thread"; }

}  // namespace elman
