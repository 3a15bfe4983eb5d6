// The parts of the Python module that are the runtime: the streaming engine, the encoder of whole texts, the decoder of
// translators.
#pragma once

#include <nanobind/nanobind.h>

namespace elman {

void bind_runtime(nanobind::module_& m);
void bind_encoder(nanobind::module_& m);
void bind_decoder(nanobind::module_& m);

}  // namespace elman
