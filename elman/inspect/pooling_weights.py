"""The weights with which a classifier's attention pooling makes one vector of all steps."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from elman.draw.panels import Note, Panel, Token, Tokens
from elman.inspect.methods import cut_panels
from elman.inspect.subject import subject_of
from elman.inspect.view import AnyModel, View
from elman.tasks.classify import TextClassifier


@dataclass(frozen=True)
class PoolingWeights:
    """How much each step counts in a text's vector; all of them, those of the ends too, sum to 1."""

    tokens: list[str]
    weights: list[float]
    edges: float
    """What falls to the end tokens before and behind the text."""
    prediction: list[str]
    spaced: bool
    """Whether tokens are words."""
    cut: int = 0
    """Tokens behind these, which the network does not read."""


def pooling_weights(model: TextClassifier, texts: Sequence[str]) -> list[PoolingWeights]:
    """The attention weights of each text's steps."""
    import torch

    from elman.nn.pooling import AttentionPooling

    subject = subject_of(model)
    cuts = [subject.cut(text) for text in texts]
    outputs = subject.outputs([cut.tokens for cut in cuts])
    found: list[PoolingWeights | None] = [None] * len(cuts)
    with torch.inference_mode(), subject.evaluating():
        assert isinstance(subject.pooling, AttentionPooling)
        for numbers, tokens in subject.batches([cut.tokens for cut in cuts]):
            steps, _ = subject.body(subject.model.network.parts(subject.embed(tokens))[0])
            rows = tokens.unpacked(subject.pooling.weights(steps).data.numpy())
            for number, row in zip(numbers.tolist(), rows, strict=True):
                cut, own = cuts[number], cuts[number].own(row)
                edges = float(np.sum(row) - np.sum(own))
                prediction = subject.prediction(outputs[number])
                more = edges, prediction, subject.spaced, cut.left_out
                found[number] = PoolingWeights(list(cut.pieces), own.tolist(), *more)
    return [one for one in found if one is not None]


class PoolingWeightsView(View[PoolingWeights]):
    """Tokens coloured by their weight in the text's vector."""

    name = "attention"
    about = "with which weight each step counts in the vector of a text"

    def refusal(self, model: AnyModel) -> str | None:
        assert isinstance(model, TextClassifier)
        pooling = model.config.model.pooling
        return None if pooling == "attention" else f"it has no attention: its pooling is {pooling}"

    def compute(self, model: AnyModel, texts: Sequence[str], options: object) -> list[PoolingWeights]:
        assert isinstance(model, TextClassifier)
        return pooling_weights(model, texts)

    def panels(self, data: PoolingWeights) -> list[Panel]:
        most = max(data.weights, default=0.0) or 1.0
        tokens = [
            Token(piece, weight / most, {"weight": f"{weight:.4f}"})
            for piece, weight in zip(data.tokens, data.weights, strict=True)
        ]
        note = (
            f"The darkest has {most:.3f}; the ends of the text have {data.edges:.3f}. Weights say which steps are "
            "looked at, not why a class was chosen: a step has read other tokens too."
        )
        return [
            Note("prediction", f"Predicted: {' '.join(data.prediction) or 'no class'}."),
            *cut_panels(data.cut, len(data.tokens)),
            Tokens("attention weights", tokens, "sequential", ("0", f"{most:.2f}"), spaced=data.spaced, note=note),
        ]
