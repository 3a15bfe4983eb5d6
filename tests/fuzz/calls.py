"""Wrong calls from Python: each argument of what Elman offers, one at a time, with a value that it was not made for."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import elman
import elman.nn
from elman import decode, metrics
from elman.baselines import KneserNey, MostFrequentClass, NearestPair
from elman.corpora import catalogue
from elman.decode import Beam, Control, Sampling, StopStrings
from elman.draw.alignment import draw_alignment
from elman.tasks.export import export
from elman.text import Tokenizer, TokenizerSettings, fit_tokenizer, spans
from tests.decode.models import Bigram
from tests.fuzz.case import Call, Place
from tests.fuzz.world import SMALL
from tests.train.toy import quiet

VALUES: dict[str, Any] = {
    "none": None,
    "text": "x",
    "no-text": "",
    "surrogate": "\ud800",
    "nul": "a\0b",
    "negative": -1,
    "zero": 0,
    "half": 0.5,
    "nan": float("nan"),
    "infinite": float("inf"),
    "huge": 10**30,
    "large": 2**31,
    "true": True,
    "empty": [],
    "nones": [None],
    "numbers": [1, -2, 10**9],
    "fractions": [0.5, float("nan")],
    "nested": [[[]]],
    "texts": ["x", ""],
    "mapping": {},
    "bytes": b"x",
    "path": Path("no-such-file"),
    "array": np.zeros(3),
    "integer": np.int64(-5),
    "tensor": torch.zeros(2, 2),
    "class": dict,
}
WRONG = {
    "any": "negative zero half nan infinite huge large true nones numbers fractions nested bytes array integer tensor "
    "class",
    "tensor": "text no-text surrogate nul negative zero half nan infinite huge large true empty nones numbers "
    "fractions nested texts mapping bytes path class",
    "count": "negative half nan infinite integer text empty",
    "real": "text empty texts nones mapping",
    "share": "negative nan infinite integer text empty",
    "size": "negative half nan infinite integer text empty",
    "line": "surrogate nul text",
    "sequence": "none zero half nan",
    "texts": "none zero half nones bytes",
    "ids": "text texts fractions half",
    "numbers": "none text infinite nested",
    "series": "none text no-text surrogate nul nan infinite empty nones fractions nested texts mapping bytes path "
    "tensor class",
}
"""What no argument of a kind can be, so that the call has to be refused."""
ODD = {
    "any": "none text no-text surrogate nul empty texts mapping path",
    "tensor": "none array tensor",
    "count": "zero huge true none",
    "real": "negative zero half infinite huge",
    "share": "half huge true none",
    "size": "zero true none",
    "line": "no-text",
    "sequence": "no-text surrogate empty texts",
    "texts": "no-text surrogate nul empty texts text",
    "ids": "empty numbers array zero",
    "numbers": "empty numbers fractions array",
    "series": "negative zero half huge true numbers array integer",
}
"""What may be right, by the argument: where it is, the answer is of the type that a right call's has."""
COIN = ((0.25, 0.75), (0.5, 0.5))
PREDICTED = (["a", "b", "a"], ["a", "b", "b"])


@dataclass(frozen=True)
class Target:
    """Something to call, with arguments that are right."""

    function: Callable[[Place], Callable[..., Any]]
    arguments: Callable[[Place], dict[str, Any]]
    as_torch: bool = False


def of(function: Callable[..., Any], as_torch: bool = False, **arguments: Any) -> Target:
    """A function that needs nothing of the place where it is called."""
    return Target(lambda place: function, lambda place: arguments, as_torch)


def targets() -> dict[str, Target]:
    """Everything that is called, by name."""
    return {**_tasks(), **_models(), **_text(), **_decoding(), **_metrics(), **_layers()}


def cases() -> list[Call]:
    """All of them: of each argument four values that are wrong and one that is odd."""
    found = []
    for name, target in targets().items():
        for argument in ARGUMENTS[name].split():
            argument, _, kind = argument.partition(":")
            chance = random.Random(f"{name} {argument}")
            wrong, odd = WRONG[kind or "any"].split(), ODD[kind or "any"].split()
            tried = [*chance.sample(wrong, min(4, len(wrong))), chance.choice(odd)]
            found += [_case(target, f"{name}-{argument}-{value}", argument, value, value in wrong) for value in tried]
    return found


def _case(target: Target, name: str, argument: str, value: str, refused: bool) -> Call:
    def call(place: Place) -> object:
        return _made(target, place, **{argument: VALUES[value]})

    def like(place: Place) -> object:
        return _made(target, place)

    return Call(name, call, like, refused=refused, as_torch=target.as_torch)


def _made(target: Target, place: Place, **given: Any) -> object:
    made = target.function(place)(**{**target.arguments(place), **given})
    return list(made) if hasattr(made, "__next__") else made


def _tasks() -> dict[str, Target]:
    """Training, loading, scoring, comparing."""
    found = {
        f"fit-{task}": Target(
            lambda place: elman.fit,
            lambda place, task=task: {  # type: ignore[misc]
                "task": task,
                "out": place.out,
                "train": place.world.data(task),
                "settings": [*SMALL[task], "train.steps=1"],
                "reporter": quiet(),
            },
        )
        for task in SMALL
    }
    world = lambda name: lambda place: place.world.model(name)  # noqa: E731
    found["load"] = Target(lambda place: elman.load, lambda place: {"folder": world("lm")(place), "task": "lm"})
    found["evaluate"] = Target(
        lambda place: elman.evaluate, lambda place: {"model": world("lm")(place), "data": place.world.data("lm")}
    )
    found |= {
        f"evaluate-{task}": Target(
            lambda place: elman.evaluate,
            lambda place, task=task: {"model": world(task)(place), "data": place.world.known(task)},  # type: ignore[misc]
        )
        for task in SMALL
    }
    found["export"] = Target(lambda place: export, lambda place: {"model": world("lm")(place), "out": place.out})
    found["compare"] = Target(
        lambda place: elman.compare,
        lambda place: {
            "recipe": place.write("recipe.toml", 'task = "classify"\n'),
            "out": place.out,
            "vary": {"model.hidden": [2]},
            "seeds": 1,
            "settings": [*SMALL["classify"], "train.steps=1", f"data.train={place.world.data('classify')}"],
            "reporter": quiet(),
        },
    )
    found["corpus"] = of(catalogue.info, name="names")
    return found


def _models() -> dict[str, Target]:
    """What models are asked."""

    def method(model: str, name: str) -> Callable[[Place], Callable[..., Any]]:
        return lambda place: getattr(elman.load(place.world.model(model)), name)

    short = {"length": 3, "sampling": Sampling(seed=1)}
    return {
        "generate": Target(method("lm", "generate"), lambda place: {"prompt": "the", **short}),
        "generate-labels": Target(method("labels", "generate"), lambda place: {"label": "north", **short}),
        "score": Target(method("lm", "score"), lambda place: {"text": "the cat"}),
        "line-log-probs": Target(method("lm", "line_log_probs"), lambda place: {"texts": ["the cat"]}),
        "next": Target(method("lm", "predict"), lambda place: {"texts": ["the"], "top": 2}),
        "states": Target(method("lm", "states"), lambda place: {"texts": ["the"]}),
        "exhaustive-model": Target(method("lm", "exhaustive"), lambda place: {"prompt": "a", "length": 1}),
        "classify": Target(method("classify", "predict"), lambda place: {"texts": ["abc"]}),
        "forecast": Target(method("series", "predict"), lambda place: {"series": [1.0, 2.0, 3.0]}),
        "tag": Target(method("tag", "predict"), lambda place: {"text": "Ada went"}),
        "tag-tokens": Target(method("tag", "predict"), lambda place: {"tokens": ["Ada", "went"]}),
        "translate": Target(method("translate", "predict"), lambda place: {"texts": ["abc"], "beam": 2}),
        "align": Target(method("translate", "align"), lambda place: {"source": "abc", "target": "cba"}),
        "tree": Target(method("translate", "tree"), lambda place: {"text": "abc", "beam": 2}),
        "translate-log-probs": Target(method("translate", "log_probs"), lambda place: {"pairs": [("abc", "cba")]}),
    }


def _text() -> dict[str, Target]:
    """Tokenizers."""
    made = {
        kind: fit_tokenizer(TokenizerSettings(kind=kind), ["one two three"])  # type: ignore[arg-type]
        for kind in ("characters", "bytes", "words")
    }
    found = {f"encode-{kind}": of(tokenizer.encode, text="one") for kind, tokenizer in made.items()}
    found |= {f"decode-{kind}": of(tokenizer.decode, ids=[2, 3]) for kind, tokenizer in made.items()}
    found |= {f"unknown-{kind}": of(tokenizer.unknown, text="one") for kind, tokenizer in made.items()}
    found["tokenizer-settings"] = of(TokenizerSettings, kind="words", size=300)
    found["fit-tokenizer"] = of(fit_tokenizer, settings=TokenizerSettings(), blocks=["one two"])
    found["load-tokenizer"] = Target(
        lambda place: Tokenizer.load, lambda place: {"path": f"{place.world.model('lm')}/tokenizer.json"}
    )
    found["from-json"] = of(Tokenizer.from_json, text=made["words"].to_json())
    return found


def _decoding() -> dict[str, Target]:
    """Searching."""
    coin = Bigram([list(row) for row in COIN])
    ids = {"start_id": 0, "stop_id": 0}
    features = [[{"a": 2.0, "b": 0.0}, {"a": 0.0, "b": 1.0}]]
    return {
        "sampling": of(Sampling, temperature=1.0),
        "beam": of(Beam, size=2),
        "control": of(Control, prefix=(1,)),
        "stop-strings": of(StopStrings, stops=["a"]),
        "beam-search": of(decode.beam_search, model=coin, rows=1, beam=Beam(2, 4), **ids),
        "exhaustive": of(decode.exhaustive, model=coin, start_id=0, length=2),
        "generate-ids": of(decode.generate, model=coin, prompts=[[1]], length=2, sampling=Sampling(seed=1)),
        "forced": of(decode.forced_log_probs, model=coin, texts=[[1, 1]], **ids),
        "next-ids": of(
            decode.next_ids,
            logits=np.zeros((1, 3)),
            sampling=Sampling(),
            seen=None,
            uniforms=np.zeros(1),
        ),
        "rerank": of(decode.rerank, features=features, weights={"a": 1.0}),
        "tune": of(decode.tune, features=features, quality=lambda chosen: sum(chosen), start={"a": 1.0, "b": 0.0}),
        "draw": Target(
            lambda place: draw_alignment,
            lambda place: {"weights": np.eye(2), "source": "ab", "target": "ab", "path": Path(f"{place.out}.png")},
        ),
    }


def _metrics() -> dict[str, Target]:
    """Scores."""
    gold, predicted = PREDICTED
    tags = [["B-A", "O"]]
    return {
        "confusion": of(metrics.Confusion.of, gold=gold, predicted=predicted),
        "multilabel": of(metrics.multilabel_scores, gold=[["a"]], predicted=[["a"]]),
        "calibration": of(metrics.calibration, confidences=[0.5], right=[True]),
        "edit-distance": of(metrics.edit_distance, one="ab", other="b"),
        "edit-scores": of(metrics.edit_scores, hypotheses=["ab"], references=[["ab"]]),
        "bleu": of(metrics.bleu, hypotheses=[["a"]], references=[[["a"]]]),
        "corpus-scores": of(metrics.corpus_scores, hypotheses=["a"], references=[["a"]]),
        "perplexity": of(metrics.perplexity, nats=1.0),
        "bits": of(metrics.bits, nats=1.0),
        "span-scores": of(metrics.span_scores, gold=tags, predicted=tags),
        "tag-scores": of(metrics.tag_scores, words=[["a", "b"]], gold=tags, predicted=tags, seen={"a"}),
        "read-spans": of(spans.read_spans, tags=tags[0]),
        "convert": of(spans.convert, tags=tags[0], scheme="BIOES"),
        "detect-scheme": of(spans.detect_scheme, sequences=tags),
        "kneser-ney": of(KneserNey.fit, ids=np.array([2, 3, 2]), vocab_size=4, order=2),
        "hard-alignment": of(metrics.hard_alignment, weights=[[1.0]]),
        "from-pharaoh": of(metrics.from_pharaoh, line="0-0"),
        "nearest": of(NearestPair.fit, sources=["a"], targets=["b"]),
        "most-frequent": of(MostFrequentClass.fit, texts=["a"], labels=["b"]),
    }


def _layers() -> dict[str, Target]:
    """Layers; where they stand in the place of PyTorch's, its errors are theirs."""
    sizes = {"input_size": 2, "hidden_size": 3}
    layer, crf = elman.nn.Recurrent("gru", 2, 3), elman.nn.CRF(3)
    softmax = elman.nn.ChunkedSoftmax(3, 5)
    found = {f"{name}-made": of(getattr(elman.nn, name), **sizes, as_torch=True) for name in ("RNN", "LSTM", "GRU")}
    found |= {
        f"{name}-called": of(getattr(elman.nn, name)(2, 3), input=torch.zeros(2, 1, 2), as_torch=True)
        for name in ("RNN", "LSTM", "GRU")
    }
    chain = {
        "emissions": torch.zeros(1, 2, 3),
        "tags": torch.zeros(1, 2, dtype=torch.long),
        "lengths": torch.tensor([2]),
    }
    best = {"emissions": torch.zeros(1, 2, 3), "lengths": torch.tensor([2])}
    rows = {"hidden": torch.zeros(2, 3), "targets": torch.zeros(2, dtype=torch.long)}
    return found | {
        "recurrent-made": of(elman.nn.Recurrent, cell="gru", **sizes, as_torch=True),
        "recurrent-called": of(layer, input=torch.zeros(2, 1, 2), as_torch=True),
        "crf-made": of(elman.nn.CRF, tags=3, as_torch=True),
        "crf-called": of(crf, **chain, as_torch=True),
        "crf-best": of(crf.best_paths, **best, as_torch=True),
        "softmax-made": of(elman.nn.ChunkedSoftmax, hidden_size=3, vocab_size=5, as_torch=True),
        "softmax-loss": of(softmax.loss, **rows, as_torch=True),
        "locked-dropout": of(elman.nn.LockedDropout, p=0.5),
        "embedding-dropout": of(elman.nn.EmbeddingDropout, p=0.5),
        "window": of(elman.nn.FixedWindow, embedding_size=2, window=2, hidden_size=3, as_torch=True),
        "initialise": of(elman.nn.initialise, module=elman.nn.LSTM(2, 3), how="uniform"),
        "forbidden": of(elman.nn.forbidden_transitions, tags=["B-A", "O"]),
    }


ARGUMENTS = {
    **{f"fit-{task}": "task recipe out train dev settings data_dir" for task in SMALL},
    "load": "folder task",
    "evaluate": "model data data_dir",
    **{f"evaluate-{task}": "data" for task in SMALL},
    "export": "model out",
    "compare": "recipe out vary variants seeds:count settings",
    "corpus": "name data_dir",
    "generate": "prompt label length:size samples:count stop:texts",
    "generate-labels": "label",
    "score": "text label",
    "line-log-probs": "texts",
    "next": "texts top:count label",
    "states": "texts label",
    "exhaustive-model": "prompt length:count label",
    "classify": "texts",
    "forecast": "series:series",
    "tag": "text",
    "tag-tokens": "tokens:texts",
    "translate": "texts beam:count n_best:count prefix require forbid length_power:real",
    "align": "source target",
    "tree": "text beam:count",
    "translate-log-probs": "pairs",
    **{f"{what}-{kind}": "text" for kind in ("characters", "bytes", "words") for what in ("encode", "unknown")},
    **{f"decode-{kind}": "ids:ids" for kind in ("characters", "bytes", "words")},
    "tokenizer-settings": "kind size:count min_count:count normalise specials:texts",
    "fit-tokenizer": "blocks:texts",
    "load-tokenizer": "path",
    "from-json": "text",
    "sampling": "temperature:share top_k:count top_p:share repetition_penalty:share seed:count",
    "beam": "size:count length:count n_best:count length_power:real min_length:count coverage:share block_ngrams:count",
    "control": "prefix:ids require:ids forbid:ids",
    "stop-strings": "stops:texts",
    "beam-search": "rows:count stop_id:count lengths:ids",
    "exhaustive": "length:count stop_id:count limit:count",
    "generate-ids": "prompts:ids length:count stop_ids:ids suppress:ids first_stream:size",
    "forced": "texts:ids stop_id:count",
    "next-ids": "suppress:ids",
    "rerank": "features:numbers",
    "tune": "features:numbers rounds:count restarts:count points:count seed:count",
    "draw": "source:texts target:texts",
    "confusion": "gold:sequence predicted:sequence labels:sequence",
    "multilabel": "gold:texts predicted:texts",
    "calibration": "confidences:numbers right:numbers bins:count",
    "edit-distance": "one:sequence other:sequence",
    "edit-scores": "hypotheses:texts references:texts",
    "bleu": "hypotheses:texts references:texts order:size",
    "corpus-scores": "hypotheses:texts references:texts",
    "perplexity": "nats:real",
    "bits": "nats:real",
    "span-scores": "gold:texts predicted:texts",
    "tag-scores": "words:texts gold:texts predicted:texts",
    "read-spans": "tags:sequence",
    "convert": "tags:sequence scheme",
    "detect-scheme": "sequences:texts",
    "kneser-ney": "ids:ids vocab_size:count order:size",
    "hard-alignment": "weights:numbers",
    "from-pharaoh": "line:line",
    "nearest": "sources:texts targets:sequence",
    "most-frequent": "labels:sequence",
    **{
        f"{name}-made": "input_size:count hidden_size:count num_layers:size dropout:share weight_dropout:share"
        for name in ("RNN", "LSTM", "GRU")
    },
    **{f"{name}-called": "input:tensor hx:tensor" for name in ("RNN", "LSTM", "GRU")},
    "recurrent-made": "cell input_size:count hidden_size:count num_layers:size merge dropout:share connections "
    "proj_size:count",
    "recurrent-called": "input:tensor",
    "crf-made": "tags:count",
    "crf-called": "emissions:tensor tags:tensor lengths:tensor",
    "crf-best": "emissions:tensor lengths:tensor",
    "softmax-made": "hidden_size:count vocab_size:count",
    "softmax-loss": "hidden:tensor targets:tensor",
    "locked-dropout": "p:share",
    "embedding-dropout": "p:share",
    "window": "embedding_size:count window:count hidden_size:count dropout:share",
    "initialise": "how forget_bias:real",
    "forbidden": "tags:sequence",
}
"""Of each the arguments that are tried."""
