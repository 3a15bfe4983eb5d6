#include "dispatch.hpp"

#include <atomic>
#include <cstdlib>
#include <new>
#include <stdexcept>

#define ELMAN_DECLARE(result, name, parameters) result name parameters;
#define ELMAN_ENTRY(result, name, parameters) name,
#define ELMAN_INSTRUCTION_SET(isa)                                        \
    namespace isa {                                                       \
    extern const int lanes;                                               \
    ELMAN_KERNELS(ELMAN_DECLARE)                                          \
    Kernels table() { return {#isa, lanes, ELMAN_KERNELS(ELMAN_ENTRY)}; } \
    }

namespace elman {

ELMAN_INSTRUCTION_SET(baseline)
#if defined(__x86_64__)
ELMAN_INSTRUCTION_SET(avx2)
ELMAN_INSTRUCTION_SET(avx512)
#endif

namespace {

std::vector<Kernels> find_all() {
    std::vector<Kernels> found{baseline::table()};
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return found;
    found.push_back(avx2::table());
    for (const bool has :
         {__builtin_cpu_supports("avx512f"), __builtin_cpu_supports("avx512bw"), __builtin_cpu_supports("avx512dq"),
          __builtin_cpu_supports("avx512vl"), __builtin_cpu_supports("avx512vnni")})
        if (!has) return found;
    found.push_back(avx512::table());
#endif
    return found;
}

const std::vector<Kernels>& all() {
    static const std::vector<Kernels> found = find_all();
    return found;
}

std::atomic<std::size_t>& chosen() {
    static std::atomic<std::size_t> index{all().size() - 1};
    return index;
}

}  // namespace

std::vector<std::string> instruction_sets() {
    std::vector<std::string> names;
    for (const Kernels& each : all()) names.emplace_back(each.name);
    return names;
}

const Kernels& kernels() { return all()[chosen()]; }

void use(const std::string& name) {
    for (std::size_t i = 0; i < all().size(); ++i)
        if (name == all()[i].name) {
            chosen() = i;
            return;
        }
    throw std::invalid_argument("no kernels for the instruction set " + name);
}

void* allocate(Index bytes) {
    const auto size = (static_cast<std::size_t>(bytes) + 127) / 64 * 64;
    void* memory = std::aligned_alloc(64, size);
    if (!memory) throw std::bad_alloc();
    return memory;
}

void release(void* memory) { std::free(memory); }

}  // namespace elman
