// The type of places and sizes in memory: a product of two sizes, each of which is an int, need not be one. And how
// large sizes may be.
#pragma once

#include <cstddef>

namespace elman {

using Index = std::ptrdiff_t;

constexpr Index kMostRows = 1L << 24, kMostSize = 1L << 28, kMostSteps = 1L << 30;  // products of these never overflow

}  // namespace elman
