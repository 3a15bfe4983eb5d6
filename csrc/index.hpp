// The type of places and sizes in memory: a product of two sizes, each of which is an int, need not be one.
#pragma once

#include <cstddef>

namespace elman {

using Index = std::ptrdiff_t;

}  // namespace elman
