"""Where a network looks in an image for a question, and which words of the question decide."""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from elman.draw.panels import Bars, Frame, ImageMap, Note, Panel, Token, Tokens
from elman.errors import UserError
from elman.inspect.methods import METHODS, cut_panels
from elman.inspect.subject import AnswerSubject, Cut, cuts_of
from elman.inspect.view import AnyModel, View
from elman.records.images import open_image
from elman.records.questions import ImageQuestion
from elman.tasks.answer import ImageAnswerer
from elman.train.recipe import Section

SHOWN = 8  # answers, the most probable first
SIDE = 336  # pixels of the longer side of the image that is drawn


class LookingOptions(Section):
    """What is to be explained, and how."""

    image: str | None = Field(None, description="The file of the image that the question is about.")
    target: str | None = Field(None, description="An answer; the predicted one if not given.")
    method: Literal["gradient", "integrated", "occlusion"] = Field(
        "occlusion", description="How words are weighed: gradient, integrated or occlusion."
    )


@dataclass(frozen=True)
class Looking:
    """What a network saw and read."""

    image: str
    tokens: list[str]
    prediction: str
    target: str
    """The answer that is explained."""
    probabilities: dict[str, float]
    words: list[float]
    """How much each token speaks for it."""
    method: str
    attention: list[list[list[float]]]
    """The weight of each place, for each glimpse or phrase (G x R x C); none where the network does not attend."""
    glimpses: list[str]
    """What each of them is: its number, and the words of a phrase."""
    places: list[list[float]]
    """What the answer's score loses where a place shows what all places show in the mean (R x C)."""
    spaced: bool
    cut: int = 0


def image_data(path: Path) -> str:
    """An image as a page holds it: a PNG of its own shape."""
    from PIL.Image import Resampling

    drawn, image = io.BytesIO(), open_image(path)
    width, height = (max(1, round(SIDE * side / max(image.size))) for side in image.size)
    image.resize((width, height), Resampling.BICUBIC).save(drawn, "PNG")
    return "data:image/png;base64," + base64.b64encode(drawn.getvalue()).decode()


def looking(model: ImageAnswerer, text: str | ImageQuestion, options: LookingOptions) -> Looking:
    """What a model saw of an image and read of a question; one that was read has its image."""
    import torch

    if isinstance(text, ImageQuestion):
        options = options.model_copy(update={"image": str(text.image)})
        text = text.text
    if options.image is None:
        raise UserError("a question is about an image: name it with --image FILE")
    features = model.features()
    with torch.inference_mode(), model.evaluating() as network:
        keys = network.look(torch.from_numpy(features.of([Path(options.image)])))  # 1 x P x K
    subject = AnswerSubject(model, keys.clone())
    (cut,) = cuts_of(subject, [text])
    (output,) = subject.outputs([cut.tokens])
    question = subject.ask(cut, output, options.target)
    (found,) = METHODS[options.method].attribute(subject, [cut], [question])
    chances = subject.probabilities(output)[0]
    attention, glimpses = _attention(subject, cut, keys)
    return Looking(
        options.image,
        list(cut.pieces),
        subject.prediction(output)[0],
        question.targets[0],
        {name: float(chances[place]) for place, name in enumerate(subject.names)},
        [float(value) for value in found.values],
        options.method,
        attention,
        glimpses,
        _without_each(subject, cut.tokens, keys, question),
        subject.spaced,
        cut.left_out,
    )


def _grid(values: np.ndarray) -> list[list[float]]:
    """Numbers of places as they lie over the image."""
    from elman.nn.images import grid_of

    return values.reshape(grid_of(len(values))).tolist()


def _phrase(number: int, cut: Cut, belongs: np.ndarray) -> str:
    """A phrase by its number and the words that belong to it more than to anything else."""
    words = [piece for piece, share in zip(cut.pieces, cut.own(belongs), strict=True) if share > 0.5]
    return f"phrase {number}: {' '.join(words)}" if words else f"phrase {number}"


def _attention(subject: AnswerSubject, cut: Cut, keys: Any) -> tuple[list[list[list[float]]], list[str]]:
    """Where each glimpse looks or each phrase fits, and what to call it."""
    import torch

    from elman.nn.questions import AttentionJoin, PhraseJoin
    from elman.ragged import Ragged

    network: Any = subject.model.network
    if not isinstance(network.join, AttentionJoin | PhraseJoin):
        return [], []
    with torch.inference_mode(), subject.evaluating():
        query, tokens = network.ask(subject.embed(Ragged.of([cut.tokens])))  # 1 x Q
        weights = network.join.weights(query, keys, tokens)[0].numpy()  # G x P
        if isinstance(network.join, AttentionJoin):
            names = [f"glimpse {number}" for number in range(1, len(weights) + 1)]
        else:
            belongs = network.join.belongs(tokens)[0].numpy()  # T x G
            names = [_phrase(number, cut, of) for number, of in enumerate(belongs.T, 1)]
    return [_grid(glimpse) for glimpse in weights], names


def _without_each(subject: AnswerSubject, tokens: Any, keys: Any, question: Any) -> list[list[float]]:
    """What the score loses without each place: it then shows the mean of all places."""
    import torch

    from elman.ragged import Ragged

    network: Any = subject.model.network
    places = keys.shape[1]
    with torch.inference_mode(), subject.evaluating():
        edited = keys.repeat(places, 1, 1)  # P x P x K
        edited[torch.arange(places), torch.arange(places)] = keys[0].mean(0)
        embedded = subject.embed(Ragged.of([tokens] * (places + 1)))
        outputs = network.answer(embedded, torch.cat([keys, edited])).double().numpy()  # 1+P x C
    scores = outputs @ question.weights[0]
    return _grid(scores[0] - scores[1:])


class LookingView(View[Looking]):
    """An image with where the network looked, and the words that decided."""

    name = "image"
    about = "where in the image the network looks, and which words decide"
    Options = LookingOptions
    record = ImageQuestion

    def compute(self, model: AnyModel, texts: Sequence[str | ImageQuestion], options: LookingOptions) -> list[Looking]:
        return [looking(model, text, options) for text in texts]  # type: ignore[arg-type]

    def panels(self, data: Looking) -> list[Panel]:
        best = sorted(data.probabilities, key=lambda name: -data.probabilities[name])[:SHOWN]
        told = f"Predicted: {data.prediction}. Explained: {data.target} (p = {data.probabilities[data.target]:.3f})."
        most = max(map(abs, data.words), default=0.0) or 1.0
        words = [
            Token(piece, value / most, {"value": f"{value:+.4f}"})
            for piece, value in zip(data.tokens, data.words, strict=True)
        ]
        image = image_data(Path(data.image))
        panels: list[Panel] = [Note("answer", told), *cut_panels(data.cut, len(data.tokens))]
        if data.attention:
            frames = [Frame(name, values) for name, values in zip(data.glimpses, data.attention, strict=True)]
            note = "The weight of each place: what has none is in the dark."
            panels.append(ImageMap("where it looks", image, [Frame("the image", []), *frames], note=note))
        lost = [Frame(data.target, data.places)]
        frames = lost if data.attention else [Frame("the image", []), *lost]
        note = "What the answer's score loses where a place is taken away: red speaks for it, blue against it."
        panels.append(ImageMap("places that decide", image, frames, scale="diverging", note=note))
        title = f"words that decide ({METHODS[data.method].title})"
        panels.append(Tokens(title, words, legend=("against", "for"), spaced=data.spaced))
        panels.append(Bars("answers", best, [data.probabilities[name] for name in best], x_range=(0.0, 1.0)))
        return panels
