// The parts of the Python module, each bound in its own file.
#pragma once

#include <nanobind/nanobind.h>

namespace elman {

void bind_recurrence(nanobind::module_& m);
void bind_attention(nanobind::module_& m);
void bind_softmax(nanobind::module_& m);
void bind_viterbi(nanobind::module_& m);
void bind_engine(nanobind::module_& m);
void bind_encoder(nanobind::module_& m);
void bind_decoder(nanobind::module_& m);
void bind_beam(nanobind::module_& m);
void bind_cache(nanobind::module_& m);
void bind_embed(nanobind::module_& m);

}  // namespace elman
