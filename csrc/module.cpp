// The Python module elman._kernels: its parts are bound in the files *_binding.cpp.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "dispatch.hpp"
#include "threads.hpp"

NB_MODULE(_kernels, m) {
    namespace nb = nanobind;
    nb::set_leak_warnings(false);  // a process that ends while its threads still compute leaves what they use
    m.def("instruction_sets", elman::instruction_sets, "What this processor can run, the lowest first.");
    m.def("instruction_set", [] { return std::string(elman::kernels().name); }, "The one in use.");
    m.def("use", elman::use, nb::arg("instruction_set"), "Choose one of `instruction_sets()`.");
    m.def("thread_library", [] { return std::string(elman::thread_library()); }, "Whose threads the kernels run on.");
    elman::note_main_thread();
    elman::bind_recurrence(m);
    elman::bind_attention(m);
    elman::bind_softmax(m);
    elman::bind_viterbi(m);
    elman::bind_engine(m);
    elman::bind_encoder(m);
    elman::bind_decoder(m);
    elman::bind_beam(m);
    elman::bind_cache(m);
    elman::bind_embed(m);
}
