// The sizes and weights of a stack of layers with a softmax on top, as Python hands them over.
#pragma once

#include "engine.hpp"
#include "given.hpp"

namespace elman {

// `kept` holds the arrays of the layers as long as it lives.
inline Weights network_of(Given& given, std::vector<Given>& kept) {
    Weights weights{};
    weights.cell = cell_named(given.text("cell"));
    weights.vocabulary = given.size("vocabulary");
    weights.hidden = given.size("hidden");
    weights.output = given.size("output");
    weights.labels = given.size("labels");
    weights.residual = given.flag("residual");
    weights.dense = given.flag("dense");
    weights.token_size = given.size("token_size");
    weights.label_size = given.size("label_size");
    if (weights.residual && weights.dense) refuse("connections are either residual or dense");
    if (weights.vocabulary < 1 || weights.hidden < 1 || weights.output < 1) refuse("a size is not above zero");
    weights.tokens = given.matrix("tokens");
    weights.label_vectors = given.numbers("label_vectors", static_cast<Index>(weights.labels) * weights.label_size);
    weights.bridge = given.matrix("bridge");
    weights.bridge_bias = given.numbers("bridge_bias", weights.bridge.rows);
    weights.softmax = given.matrix("softmax");
    weights.softmax_bias = given.numbers("softmax_bias", weights.vocabulary);

    const auto layers = given.parts("layers");
    const Index H = weights.hidden, gates = weight_blocks(weights.cell) * H;
    const Index state = weights.output + (weights.cell == Cell::lstm ? H : 0);
    weights.initial = given.numbers("initial", static_cast<Index>(layers.size()) * state);
    kept.reserve(layers.size());
    for (const nb::dict& each : layers) {
        Given& layer = kept.emplace_back(each);
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
