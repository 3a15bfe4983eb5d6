"""States and gates of a text and of a corpus: those of the network read one token at a time."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from elman.batches.stream import IdStream
from elman.errors import UserError
from elman.inspect import traces
from elman.inspect.traces import corpus_ids, trace_blocks
from elman.nn.inputs import Inputs
from elman.tasks.traces import trace_text
from elman.text.encoder import spelled, words
from tests.tasks import classify_runs, tag_runs, translate_runs
from tests.tasks.runs import prose, run, write_names

QUICK = ("train.steps=2",)


@pytest.fixture(scope="module")
def text_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / "prose.txt"
    path.write_text(prose())
    return path


def stepped(model: Any, ids: list[int], label: int | None = None) -> dict[str, np.ndarray]:
    """States of every layer, each token read by a call of its own."""
    labels = None if label is None else torch.tensor([label])
    state, rows = None, []
    for token in [model.reading.start_id, *ids]:
        with torch.no_grad(), model.evaluating() as network:
            _, state = network.hidden(torch.tensor([[token]]), state, labels=labels)
        rows.append(state if isinstance(state, tuple) else (state,))
    return {
        f"{layer + 1}.{letter}": np.stack([row[at][layer, 0].numpy() for row in rows[1:]])
        for at, letter in enumerate("hc"[: len(rows[0])])
        for layer in range(rows[0][0].shape[0])
    }


@pytest.mark.parametrize(
    "settings",
    [
        ("model.cell=lstm", "model.layers=2"),
        ("model.cell=gru-cho", "model.layers=2", "model.connections=dense"),
        ("model.cell=mut1", "model.learned_state=true"),
        ("model.cell=lstm", "model.hidden=12", "model.projection=8", "model.direction=both"),
        ("model.direction=backward", "text.kind=words"),
    ],
)
def test_a_text_is_traced_as_if_read_token_by_token(
    text_file: Path, tmp_path: Path, settings: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = run(text_file, tmp_path / "out", *QUICK, *settings)
    text = "the cat sat\non a mat and saw the dog"
    step = -1 if model.settings.direction == "backward" else 1
    ids = model.tokenizer.encode(text)
    expected = stepped(model, ids[::step].tolist())
    for block in (traces.BLOCK, 5):  # at once, and in blocks with the state carried
        monkeypatch.setattr(traces, "BLOCK", block)
        found = trace_text(model, text)
        assert found.tokens == [model.tokenizer.tokens[id] for id in ids]
        for name, rows in expected.items():
            np.testing.assert_allclose(found.parts[name], rows[::step], atol=1e-6, err_msg=name)


def test_lines_with_labels_are_traced_side_by_side_as_each_alone(tmp_path: Path) -> None:
    table = write_names(tmp_path / "names.csv")
    model = run(table, tmp_path / "out", *QUICK, "data.unit=line", "data.text_column=text", "data.label_column=label")
    found = trace_text(model, "abab", label="south")
    expected = stepped(model, model.tokenizer.encode("abab").tolist(), label=1)
    np.testing.assert_allclose(found.parts["1.h"], expected["1.h"], atol=1e-6)
    ids = corpus_ids(model, table, "north")
    (block,) = trace_blocks(model, ids, ["1.h"])
    assert block.places.tolist() == list(range(len(ids))) and list(block.parts) == ["1.h"]
    start, stop = int(ids.documents[2]), int(ids.document_ends[2])
    alone = stepped(model, ids.read(start, stop).tolist(), label=0)
    np.testing.assert_allclose(block.parts["1.h"][start:stop], alone["1.h"], atol=1e-6)
    for label, message in ((None, "give one of north, south"), ("nort", "did you mean 'north'?")):
        with pytest.raises(UserError, match=message):
            trace_text(model, "ab", label=label)


def test_a_document_that_is_read_backwards_ends_with_its_end_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lines.txt").write_text(prose())
    model = run(tmp_path / "lines.txt", tmp_path / "out", *QUICK, "data.unit=line", "model.direction=backward")
    ids = IdStream(np.array([*model.tokenizer.encode("the cat"), 1, *model.tokenizer.encode("sat"), 1]), [0, 8])
    for size in (1024, 3):
        monkeypatch.setattr(traces, "BLOCK", size)
        blocks = list(trace_blocks(model, ids, "h"))
        places = np.concatenate([block.places for block in blocks])
        read = np.concatenate([block.ids for block in blocks])
        assert model.tokenizer.decode(read[:7]) == "tac eht" and places[:8].tolist() == [6, 5, 4, 3, 2, 1, 0, 7]
        rows = np.concatenate([block.parts["1.h"] for block in blocks])
        np.testing.assert_allclose(rows[:8], stepped(model, read[:8].tolist())["1.h"], atol=1e-6)
        np.testing.assert_allclose(rows[8:], stepped(model, read[8:].tolist())["1.h"], atol=1e-6)


def test_classifiers_taggers_and_translators_are_traced_too(tmp_path: Path) -> None:
    table = classify_runs.write_table(tmp_path / "names.csv")
    classifier = classify_runs.run(table, tmp_path / "classify", "train.steps=2", "model.layers=2")
    found = trace_text(classifier, "grimulf")
    assert found.tokens == ["<eos>", *"grimulf", "<eos>"]
    with torch.no_grad(), classifier.evaluating() as network:
        output, _ = network.body(
            network.embed(Inputs.of(*classifier.vocabulary.spelled(classifier.vocabulary.encode(["grimulf"]))))
        )
    np.testing.assert_allclose(found.parts["2.h"], output.data.numpy(), atol=1e-6)  # both directions side by side

    tagger = tag_runs.run(tag_runs.write(tmp_path / "tags.conll"), tmp_path / "tag", "train.steps=2")
    found = trace_text(tagger, "Ada went to Oslo.")
    assert found.tokens == ["Ada", "went", "to", "Oslo", "."]
    with torch.no_grad(), tagger.evaluating() as network:
        output, _ = network.body(network.embed(Inputs.of(*spelled(tagger.vocabulary, words([found.tokens])))))
    np.testing.assert_allclose(found.parts["1.h"], output.data.numpy(), atol=1e-6)

    pairs = translate_runs.write(tmp_path / "pairs.tsv")
    translator = translate_runs.run(pairs, tmp_path / "translate", "train.steps=2", "model.reverse_source=true")
    text = pairs.read_text().split("\t")[0]
    found = trace_text(translator, text)
    ids = torch.from_numpy(translator.source_ids(text))
    with torch.no_grad(), translator.evaluating() as network:
        memory, _ = network.encode(ids.unsqueeze(0), torch.tensor([len(ids)]))
    last = max(int(name.split(".")[0]) for name in found.parts)
    np.testing.assert_allclose(found.parts[f"{last}.h"][::-1], memory.states[0].numpy(), atol=1e-6)
    with pytest.raises(UserError, match="leave it out"):
        trace_text(translator, text, label="x")


def test_what_has_no_states_is_told(text_file: Path, tmp_path: Path) -> None:
    model = run(text_file, tmp_path / "ngram", "model.kind=ngram")
    with pytest.raises(UserError, match="an n-gram model, which has no hidden states"):
        trace_text(model, "the cat")
