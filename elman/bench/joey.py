"""JoeyNMT's recurrent translator, where it is installed, with the weights of one of Elman's."""

import logging
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from elman.bench.translators import (
    BOS,
    CLIP_NORM,
    EOS,
    LEARNING_RATE,
    PAD,
    SPECIALS,
    IdPairs,
    Sizes,
    Step,
    learn,
    padded,
    weights_of,
)
from elman.nn.translation import TranslationNetwork

MODULES = ("joeynmt.model", "joeynmt.batch", "joeynmt.search", "joeynmt.vocabulary")
NAMES = {
    "source": "src_embed.lut.weight",
    "target": "trg_embed.lut.weight",
    "query": "decoder.attention.query_layer.weight",
    "keys": "decoder.attention.key_layer.weight",
    "energy": "decoder.attention.energy_layer.weight",
    "softmax": "decoder.output_layer.weight",
    "encoder": "encoder.rnn",
    "decoder": "decoder.rnn",
    "bridge": "decoder.bridge_layer",
    "readout": "decoder.att_vector_layer",
}
"""What JoeyNMT calls each weight, or the layer that it belongs to."""


class Joey:
    """Its model and its search by its Python interface.

    It attends with the state after the step and feeds the readout in: Elman's "luong-feeding".
    """

    def __init__(self, sizes: Sizes, network: TranslationNetwork) -> None:
        build: Any = import_module("joeynmt.model").build_model
        self.batch: Any = import_module("joeynmt.batch").Batch
        self.search: Any = import_module("joeynmt.search").search
        logging.getLogger("joeynmt").setLevel(logging.WARNING)
        words = _vocabulary(sizes.vocabulary)
        part = {
            "type": "recurrent",
            "rnn_type": "gru",
            "hidden_size": sizes.hidden,
            "embeddings": {"embedding_dim": sizes.embedding},
        }
        decoder = part | {"attention": "bahdanau", "init_hidden": "bridge", "input_feeding": True}
        self.model: Any = build({"encoder": part | {"bidirectional": True}, "decoder": decoder}, words, words)
        weights = weights_of(network)
        self.model.load_state_dict({_their_name(name): weight for name, weight in weights.items()})
        self.model.loss_function = ("crossentropy", 0.0)

    def translate(self, pairs: IdPairs, beam: int, length: int) -> list[list[int]]:
        """By its own search, greedy where the beam is 1."""
        ids, _, _ = self.search(
            self.model.eval(), self._batch(pairs), length, beam, beam_alpha=1.0, min_output_length=length
        )
        return np.asarray(ids).tolist()  # type: ignore[no-any-return]

    def learning(self, pairs: IdPairs) -> Step:
        """What its trainer does with a batch: losses of all steps, Adam, clipped gradients."""
        batch = self._batch(pairs)
        optimizer = torch.optim.Adam(self.model.parameters(), lr=LEARNING_RATE)

        def loss() -> Tensor:
            total, _, _, _ = self.model.train()(return_type="loss", **vars(batch))
            found: Tensor = batch.normalize(total, "tokens")
            return found

        return partial(learn, loss, optimizer, lambda: nn.utils.clip_grad_norm_(self.model.parameters(), CLIP_NORM))

    def _batch(self, pairs: IdPairs) -> Any:
        targets = padded([np.concatenate(([BOS], target, [EOS])) for target in pairs.targets])  # B x T + 2
        return self.batch(
            src=padded(pairs.sources),
            src_length=torch.from_numpy(pairs.lengths),
            src_prompt_mask=None,
            trg=targets,
            trg_prompt_mask=None,
            indices=torch.arange(len(targets)),
            device=torch.device("cpu"),
            pad_index=PAD,
            eos_index=EOS,
        )


def _vocabulary(size: int) -> Any:
    """Words without a meaning, after the special ones."""
    kind: Any = import_module("joeynmt.vocabulary").Vocabulary
    names = {"unk": 0, "pad": PAD, "bos": BOS, "eos": EOS}
    settings = {f"{name}_token": f"<{name}>" for name in names} | {f"{name}_id": place for name, place in names.items()}
    words = [f"word{place}" for place in range(SPECIALS, size)]
    return kind(words, SimpleNamespace(**settings, sep_token=None, sep_id=None, lang_tags=[]))


def _their_name(name: str) -> str:
    layer, _, weight = name.partition(".")
    return f"{NAMES[layer]}.{weight}" if weight else NAMES[name]
