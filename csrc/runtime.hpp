// The part of the Python module that is the streaming runtime.
#pragma once

#include <nanobind/nanobind.h>

namespace elman {

void bind_runtime(nanobind::module_& m);

}  // namespace elman
