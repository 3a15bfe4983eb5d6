"""The network of a captioner: an image as places, and a decoder that writes what is seen there."""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from elman.nn.decoder import Decoder, Memory
from elman.nn.embedding import OneHot
from elman.nn.images import ImageEncoder
from elman.nn.softmax import ChunkedSoftmax
from elman.nn.translation import Bridge
from elman.nn.writing import WritingNetwork

Image = Literal["first", "attended"]


class CaptionNetwork(WritingNetwork):
    """p(caption | image), a token at a time; the image is P places m_1 .. m_P, whose mean is m.

        first      s_0 = f(W m + b, 0): the image is read before the first token (Vinyals et al. 2015)
        attended   s_0 = tanh(W m + b), and every step attends to the places (Xu et al. 2015)

    with s_0 the state that the decoder begins with, f its recurrent layers; that of the first attends to nothing.

    >>> from elman.nn.images import ProjectedPlaces
    >>> places, words = ProjectedPlaces(9, 5, 4), nn.Embedding(7, 3)
    >>> decoder = Decoder("plain", "lstm", 3, 6, 4, 3)
    >>> network = CaptionNetwork("first", places, words, decoder, ChunkedSoftmax(3, 7))
    >>> memory, hidden = network.encode(torch.zeros(2, 9, 5), torch.tensor([9, 9]))
    >>> memory.states.shape, [part.shape for part in hidden]
    (torch.Size([2, 9, 4]), [torch.Size([1, 2, 6]), torch.Size([1, 2, 6])])
    """

    def __init__(
        self,
        image: Image,
        places: ImageEncoder,
        target: nn.Embedding | OneHot,
        decoder: Decoder,
        softmax: ChunkedSoftmax,
        *,
        unk_id: int = 0,
        token_dropout: float = 0.0,
        input_dropout: float = 0.0,
        output_dropout: float = 0.0,
    ) -> None:
        super().__init__(unk_id, token_dropout, input_dropout, output_dropout)
        self.places, self.target, self.decoder, self.softmax = places, target, decoder, softmax
        sizes, layers = decoder.body.state_sizes, len(decoder.body.layers)
        self.first = nn.Linear(places.output_size, decoder.input_size) if image == "first" else None
        self.bridge: Bridge | None = None
        if image == "attended":
            self.bridge = Bridge(
                "linear",
                layers=1,
                directions=1,
                state_sizes=(places.output_size,) * len(sizes),
                decoder_layers=layers,
                decoder_sizes=sizes,
            )

    def encode(self, source: Tensor, lengths: Tensor) -> tuple[Memory, tuple[Tensor, ...]]:
        """The places of images (B x P x C features) to attend to, and the state that the decoder begins with."""
        states = self.places(source)  # B x P x M
        attention = self.decoder.attention
        keys = states if attention is None else attention.keys(states)  # B x P x K
        padding = torch.zeros(states.shape[:2], dtype=torch.bool, device=states.device)  # B x P
        return Memory(states, keys, padding), self.begin(states.mean(dim=1))

    def begin(self, mean: Tensor) -> tuple[Tensor, ...]:
        """The decoder's first state (each part L x B x H) from the mean of an image's places (B x M)."""
        if self.bridge is not None:
            started: tuple[Tensor, ...] = self.bridge((mean.unsqueeze(0),) * len(self.decoder.body.state_sizes))
            return started
        assert self.first is not None
        layers, sizes = len(self.decoder.body.layers), self.decoder.body.state_sizes
        nothing = tuple(mean.new_zeros(layers, len(mean), size) for size in sizes)
        image = dropout(self.first(mean), self.input_dropout, self.training)  # B x E
        _, state = self.decoder.body.step(image, nothing)
        return state
