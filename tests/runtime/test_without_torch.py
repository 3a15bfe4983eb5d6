"""Compiled models are read from arrays and answer in a process that never loads PyTorch."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from elman import kernels
from elman.chain import Chain
from elman.decode import Beam, Sampling, beam_search, generate
from elman.nn.attention import ATTENTIONS
from elman.nn.crf import CRF, forbidden_transitions
from elman.nn.recurrent import Recurrent
from elman.ragged import Ragged
from elman.runtime import CompiledTranslator, Encoder, Engine, LanguageParts, Layers, TranslationParts
from elman.runtime.weights import arrays_of, read_arrays, read_shapes, write_arrays
from tests.nn import translators
from tests.runtime.networks import make
from tests.runtime.test_parity import KINDS

pytestmark = pytest.mark.skipif(not kernels.available(), reason="the kernels were not built")

IMPORTS = """
import sys
import elman.kernels, elman.ragged, elman.sampling, elman.chain, elman.text, elman.text.spelling, elman.text.vectors
import elman.text.spans, elman.runtime, elman.decode
SLOW = ["torch", "rich", "matplotlib", "sacrebleu", "sklearn", "scipy", "tokenizers"]
def loaded(): return [name for name in SLOW if name in sys.modules]
assert not loaded(), loaded()
"""
ANSWERS = """
import json
from pathlib import Path
import numpy as np
from elman.decode import Beam, Sampling, beam_search, generate
from elman.ragged import Ragged
from elman.runtime import CompiledTranslator, Encoder, Engine, LanguageParts, Layers, TranslationParts
from elman.runtime.weights import read_arrays
folder = Path(sys.argv[1])
parts = json.loads((folder / "parts.json").read_text())
told = {}
layers = Layers(**parts["encoder"])
encoder = Encoder(layers, read_arrays(folder / "encoder"), embedding="words", output="output")
told["encoder"] = encoder(np.array([1, 2, 3, 4]), [3, 1]).tolist()
language = parts["language"]
engine = Engine(LanguageParts(Layers(**language.pop("layers")), **language), read_arrays(folder / "language"))
told["language"] = [list(new.values()) for new in engine.generate([[1, 2]], length=20, seed=3)]
made = parts["translator"]
both = [Layers(**made.pop(name)) for name in ("encoder", "decoder")]
translator = CompiledTranslator(TranslationParts(*both, **made), read_arrays(folder / "translator"))
steps = translator.steps(Ragged.of([[2, 3, 4], [5]]))
found = beam_search(steps, 2, start_id=1, stop_id=1, beam=Beam(size=4, length=9, n_best=2, coverage=0.1))
told["translator"] = [[one.ids for one in row] for row in found]
drawn = generate(steps, [[1], [1]], length=9, sampling=Sampling(seed=5), stop_ids={1}, same_start=False)
told["sampled"] = [sorted(new.items()) for new in drawn]
assert not loaded(), loaded()
"""


def python(code: str, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=os.environ | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_room_below_the_tasks_is_imported_without_it() -> None:
    python(IMPORTS)


def test_the_number_of_threads_without_pytorch() -> None:
    shown = "from elman import kernels; print(kernels.threads())"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert python(shown, OMP_NUM_THREADS="3") == "3\n"
    assert python(shown, OMP_NUM_THREADS="") == f"{cores}\n"
    assert python("import torch; torch.set_num_threads(5); " + shown, OMP_NUM_THREADS="3") == "5\n"


def described(parts: Any) -> dict[str, Any]:
    """The fields of a description as JSON has them."""
    return {name: vars(value) if isinstance(value, Layers) else value for name, value in vars(parts).items()}


def test_models_answer_as_they_do_beside_pytorch(tmp_path: Path) -> None:
    torch.manual_seed(0)
    body = Recurrent("lstm", 5, 6, 2, bidirectional=True)
    classifier = nn.ModuleDict({"words": nn.Embedding(9, 5), "body": body, "output": nn.Linear(12, 3)})
    language, translator = make("gru", layers=2), translators.network("bahdanau", "additive", bridge="linear").float()
    for name, network in {"encoder": classifier, "language": language, "translator": translator}.items():
        (tmp_path / name).mkdir()
        write_arrays(tmp_path / name, arrays_of(network))
    parts = {
        "encoder": vars(Layers.of(body, "body")),
        "language": described(LanguageParts.of(language)),
        "translator": described(TranslationParts.of(translator)),
    }
    (tmp_path / "parts.json").write_text(json.dumps(parts))
    told = json.loads(python(IMPORTS + ANSWERS + "print(json.dumps(told))", str(tmp_path)))
    encoder = Encoder.of(classifier, body, embedding=classifier["words"], output=classifier["output"])  # type: ignore[arg-type]
    np.testing.assert_allclose(told["encoder"], encoder(np.array([1, 2, 3, 4]), [3, 1]), atol=1e-6)
    written = Engine.of(language).generate([[1, 2]], length=20, seed=3)
    assert told["language"] == [list(new.values()) for new in written]
    steps = CompiledTranslator.of(translator).steps(Ragged.of([[2, 3, 4], [5]]))
    found = beam_search(steps, 2, start_id=1, stop_id=1, beam=Beam(size=4, length=9, n_best=2, coverage=0.1))
    assert told["translator"] == [[one.ids for one in row] for row in found]
    sampled = generate(steps, [[1], [1]], length=9, sampling=Sampling(seed=5), stop_ids={1}, same_start=False)
    assert told["sampled"] == [[list(pair) for pair in sorted(new.items())] for new in sampled]


@pytest.mark.parametrize("before", ["import torch", "import numpy"])
def test_pytorch_may_be_loaded_before_or_after_the_first_answer(before: str) -> None:
    """On several threads, with PyTorch's own work on the same cores in between."""
    python(
        f"{before}\n"
        """
import numpy as np
from elman.runtime import Engine, LanguageParts, Layers
parts = LanguageParts(Layers("bodies.0", "lstm", 30, 300), vocabulary=30, embedding=0)
rng = np.random.default_rng(0)
arrays = {name: rng.normal(size=shape).astype(np.float32) for name, shape in parts.shapes().items()}
ids = np.arange(41)[None] % 30
def answer(threads): return Engine(parts, arrays, threads=threads).log_probs(ids[:, :-1], ids[:, 1:])[0]
first = answer(2)
import torch
import elman.nn
torch.set_num_threads(2)
torch.randn(300, 300) @ torch.randn(300, 300)
output, _ = elman.nn.LSTM(30, 300)(torch.randn(40, 8, 30))
output.sum().backward()
assert np.array_equal(first, answer(2)) and np.array_equal(first, answer(1))
"""
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_language_models_description_has_every_weight(kind: str) -> None:
    network = make(**KINDS[kind])  # type: ignore[arg-type]
    assert LanguageParts.of(network).shapes() == {name: array.shape for name, array in arrays_of(network).items()}


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
@pytest.mark.parametrize("bridge", ["copy", "linear", "zero"])
@pytest.mark.parametrize(("decoder", "attention"), translators.COMBINATIONS)
def test_a_translators_description_has_every_weight(decoder: str, attention: str, bridge: str, cell: str) -> None:
    for tied in ("none", "target", "all"):
        sizes = {"layers": 2, "decoder_layers": 3, "tied": tied, "cell": cell, "bridge": bridge, "hidden": 8}
        network = translators.network(decoder, attention, **sizes)
        found = TranslationParts.of(network).shapes()
        assert found == {name: array.shape for name, array in arrays_of(network).items()}


@pytest.mark.parametrize("bridge", ["copy", "linear", "zero"])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("connections", ["plain", "residual", "dense"])
def test_what_the_encoder_gives_is_pytorchs(bridge: str, bidirectional: bool, connections: str) -> None:
    for cell in ("rnn", "lstm", "gru"):
        options = {"layers": 2, "decoder_layers": 3, "bidirectional": bidirectional, "connections": connections}
        network = translators.network("luong", "general", cell=cell, bridge=bridge, **options).float()
        sources = Ragged.of([[2, 3], [4, 5, 6, 7], [8]])
        with torch.no_grad():
            padded, lengths = torch.from_numpy(sources.padded()), torch.from_numpy(sources.lengths)
            memory, hidden = network.encode(padded, lengths)
        state = CompiledTranslator.of(network).read(sources)
        parts = [part[depth] for depth in range(3) for part in hidden]
        np.testing.assert_allclose(state.numbers, torch.cat(parts, dim=1), atol=1e-6)
        np.testing.assert_allclose(state.sources.keys, memory.keys, atol=1e-6)
        np.testing.assert_allclose(state.sources.states, memory.states, atol=1e-6)


def test_every_attention_is_known() -> None:
    assert {attention for _, attention in translators.COMBINATIONS} == set(ATTENTIONS)


def test_weights_in_a_file_are_pytorchs_byte_for_byte(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    tensors = {
        "b": torch.randn(3, 4),
        "a": torch.tensor([True, False]),
        "c": torch.tensor(2.5),
        "d": torch.ones(2).char(),
    }
    save_file(dict(sorted(tensors.items())), tmp_path / "theirs")
    write_arrays(tmp_path, {name: tensor.numpy() for name, tensor in tensors.items()})
    assert (tmp_path / "model.safetensors").read_bytes() == (tmp_path / "theirs").read_bytes()
    assert read_shapes(tmp_path) == {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    for name, array in read_arrays(tmp_path).items():
        assert np.array_equal(array, tensors[name])


def test_a_chain_of_arrays_is_the_crfs() -> None:
    crf = CRF(3, forbidden_transitions(["O", "B-x", "I-x"]))
    with torch.no_grad():
        crf.transitions.normal_()
    network = nn.ModuleDict({"crf": crf})
    for ours, theirs in zip(Chain.of(arrays_of(network), "crf"), crf.chain(), strict=True):
        assert np.array_equal(ours, theirs)
