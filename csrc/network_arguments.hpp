// The sizes and weights of a stack of layers with a softmax on top, as Python hands them over.
#pragma once

#include "arguments.hpp"
#include "engine.hpp"

namespace elman {

// `kept` holds the arrays of the layers as long as it lives.
inline Weights network_of(Arguments& arguments, std::vector<Arguments>& kept) {
    Weights weights{};
    weights.cell = cell_named(arguments.text("cell"));
    weights.vocabulary = arguments.size("vocabulary");
    weights.hidden = arguments.size("hidden");
    weights.output = arguments.size("output");
    weights.labels = arguments.size("labels");
    weights.residual = arguments.flag("residual");
    weights.dense = arguments.flag("dense");
    weights.token_size = arguments.size("token_size");
    weights.label_size = arguments.size("label_size");
    if (weights.residual && weights.dense) refuse("connections are either residual or dense");
    if (weights.vocabulary < 1 || weights.hidden < 1 || weights.output < 1) refuse("a size is not above zero");
    weights.tokens = arguments.matrix("tokens");
    weights.label_vectors = arguments.numbers("label_vectors", static_cast<Index>(weights.labels) * weights.label_size);
    weights.bridge = arguments.matrix("bridge");
    weights.bridge_bias = arguments.numbers("bridge_bias", weights.bridge.rows);
    weights.softmax = arguments.matrix("softmax");
    weights.softmax_bias = arguments.numbers("softmax_bias", weights.vocabulary);

    const auto layers = arguments.parts("layers");
    const Index H = weights.hidden, gates = weight_blocks(weights.cell) * H;
    const Index state = weights.output + (weights.cell == Cell::lstm ? H : 0);
    weights.initial = arguments.numbers("initial", static_cast<Index>(layers.size()) * state);
    kept.reserve(layers.size());
    for (const nb::dict& each : layers) {
        Arguments& layer = kept.emplace_back(each);
        LayerWeights from;
        from.input = layer.matrix("input");
        from.hidden = layer.matrix("hidden");
        from.projection = layer.matrix("projection");
        from.bias = layer.numbers("bias", gates);
        from.table = layer.numbers("table", weights.vocabulary * gates);
        from.labels = layer.numbers("labels", weights.labels * gates);
        from.hidden_bias = layer.numbers("hidden_bias", H);
        weights.layers.push_back(from);
    }
    return weights;
}

}  // namespace elman
