// Running one function on several cores at once.
//
// PyTorch brings an OpenMP library whose threads wait for its next operation by spinning. A second pool would have to
// fight them for the cores, so its pool is used here too: the library that is already loaded, found by name.
#pragma once

namespace elman {

// Calls body(index, count, data) for index = 0 ... count-1, all at the same time; count is `threads` or fewer.
void parallel(int threads, void (*body)(int index, int count, void* data), void* data);

template <class Body>
void parallel(int threads, Body& body) {
    parallel(
        threads, [](int index, int count, void* data) { (*static_cast<Body*>(data))(index, count); },
        static_cast<void*>(&body));
}

// Whose threads these are, for `elman doctor`.
const char* thread_library();

}  // namespace elman
