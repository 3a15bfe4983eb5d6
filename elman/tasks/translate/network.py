"""The network that a recipe's settings ask for."""

from typing import Any, cast

from torch import nn

from elman.nn.attention import ATTENTIONS, Attention
from elman.nn.decoder import Decoder
from elman.nn.recurrent import Recurrent
from elman.nn.softmax import ChunkedSoftmax
from elman.nn.translation import Bridge, TranslationNetwork
from elman.tasks.memory import build
from elman.tasks.translate.settings import ModelSettings
from elman.tasks.translate.sides import Sides


def build_network(
    settings: ModelSettings, sides: Sides, smoothing: float = 0.0, *, trained: bool = True
) -> TranslationNetwork:
    """A fresh network, unless this machine has no room for it."""
    return build(lambda: _network(settings, sides, smoothing), settings, trained=trained)


def _network(settings: ModelSettings, sides: Sides, smoothing: float) -> TranslationNetwork:
    target = nn.Embedding(sides.target.size, settings.embedding)
    source = target if settings.tied == "all" else nn.Embedding(sides.source.size, settings.embedding)
    for embedding in dict.fromkeys((source, target)):  # in this order, or a seed would not give the same network
        nn.init.normal_(embedding.weight, std=settings.embedding**-0.5)  # tied, it makes logits of about one
    options: dict[str, Any] = {"weight_dropout": settings.weight_dropout, "connections": settings.connections}
    encoder = Recurrent(
        settings.cell,
        settings.embedding,
        settings.encoder_size,
        settings.layers,
        bidirectional=settings.bidirectional,
        dropout=settings.dropout if settings.layers > 1 else 0.0,
        **options,
    )
    layers = settings.decoder_layers or settings.layers
    readout = settings.hidden if settings.tied == "none" else settings.embedding
    decoder = Decoder(
        settings.decoder,
        settings.cell,
        settings.embedding,
        settings.hidden,
        encoder.output_size,
        readout,
        attention=_attention(settings, encoder.output_size),
        num_layers=layers,
        dropout=settings.dropout if layers > 1 else 0.0,
        **options,
    )
    bridge = Bridge(
        settings.bridge,
        layers=settings.layers,
        directions=encoder.directions,
        state_sizes=encoder.state_sizes,
        decoder_layers=layers,
        decoder_sizes=decoder.body.state_sizes,
    )
    tied = None if settings.tied == "none" else cast(nn.Parameter, target.weight)
    return TranslationNetwork(
        source,
        target,
        encoder,
        bridge,
        decoder,
        ChunkedSoftmax(readout, sides.target.size, tied=tied, smoothing=smoothing),
        unk_id=sides.source.unk_id,
        token_dropout=settings.token_dropout,
        input_dropout=settings.input_dropout,
        output_dropout=settings.output_dropout,
    )


def _attention(settings: ModelSettings, memory_size: int) -> Attention | None:
    if settings.decoder == "plain":
        return None
    kind = ATTENTIONS[settings.attention]
    query = settings.hidden + (settings.embedding if kind.sees_input else 0)
    longest = {"longest": settings.longest} if settings.attention in ("location", "fixed-length") else {}
    return kind(query, memory_size, **longest)
