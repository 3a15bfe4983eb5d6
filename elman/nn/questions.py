"""The network that answers questions about images: a text's vector q and the places m_1 .. m_P of its image, joined.

A `Join` is one equation; what it gives is read beside q by one layer of ReLU, and that by the output layer.
"""

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm, relu
from torch.nn.utils.rnn import PackedSequence

from elman.nn.attention import AdditiveAttention
from elman.nn.classifier import ClassifierNetwork
from elman.nn.embedding import OneHot
from elman.nn.images import ImageEncoder
from elman.nn.inputs import Inputs
from elman.nn.pooling import Pooling
from elman.nn.recurrent import Recurrent


class Join(nn.Module):
    """From questions (B x Q) and the places of their images (B x P x M) to one vector each (B x `output_size`).

    >>> join = ProductJoin(4, 6, 8)
    >>> join(torch.randn(2, 4), join.keys(torch.randn(2, 9, 6))).shape
    torch.Size([2, 8])
    """

    def __init__(self, query_size: int, memory_size: int, output_size: int) -> None:
        super().__init__()
        self.query_size, self.memory_size, self.output_size = query_size, memory_size, output_size

    def keys(self, memory: Tensor) -> Tensor:
        """What depends on the image alone, so that it is computed once for all questions about it (N x P x K)."""
        return memory

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        raise NotImplementedError


class ProductJoin(Join):
    """The question times every place, entry by entry: low-rank bilinear pooling (Kim et al. 2017), at each place.

        x_p = W q ∘ norm(U m_p),  h = Σ_p ReLU(V x_p) / √P

    with U, V and W matrices, P places, and norm to a mean of 0 and a variance of 1 over the entries of a place. V x_p
    is bilinear in question and place: how well they match. A sum keeps how many places do, so that it can count.
    """

    def __init__(self, query_size: int, memory_size: int, output_size: int) -> None:
        super().__init__(query_size, memory_size, output_size)
        self.U, self.W = nn.Linear(memory_size, output_size), nn.Linear(query_size, output_size)
        self.V = nn.Linear(output_size, output_size)

    def keys(self, memory: Tensor) -> Tensor:
        return layer_norm(self.U(memory), (self.output_size,))

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        x = self.W(query).unsqueeze(1) * keys  # B x P x K
        return cast(Tensor, relu(self.V(x)).sum(1) / keys.shape[1] ** 0.5)


class ConcatenationJoin(Join):
    """The question beside every place, and the sum of what both show together (as g of Santoro et al. 2017).

        x_p = ReLU(U m_p + W q),  h = Σ_p ReLU(V x_p) / √P

    where [U W] is one matrix over the concatenation [m_p; q], and P the number of places.
    """

    def __init__(self, query_size: int, memory_size: int, output_size: int) -> None:
        super().__init__(query_size, memory_size, output_size)
        self.U, self.W = nn.Linear(memory_size, output_size), nn.Linear(query_size, output_size, bias=False)
        self.V = nn.Linear(output_size, output_size)

    def keys(self, memory: Tensor) -> Tensor:
        return cast(Tensor, self.U(memory))

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        x = relu(keys + self.W(query).unsqueeze(1))  # B x P x K
        return cast(Tensor, relu(self.V(x)).sum(1) / keys.shape[1] ** 0.5)


class AttentionJoin(Join):
    """Some glimpses of the image, each with an attention of its own that the question guides (Yang et al. 2016).

        c_g = Σ_p a_gp m_p,  h = ReLU(U [c_1; ..; c_G]) ∘ tanh(W q)

    with a_gp the weight of place p in glimpse g, by additive attention, and U and W matrices.
    """

    def __init__(self, query_size: int, memory_size: int, output_size: int, glimpses: int = 2) -> None:
        super().__init__(query_size, memory_size, output_size)
        self.attentions = nn.ModuleList(
            AdditiveAttention(query_size, memory_size, output_size // 2) for _ in range(glimpses)
        )
        self.U, self.W = nn.Linear(glimpses * memory_size, output_size), nn.Linear(query_size, output_size)

    def keys(self, memory: Tensor) -> Tensor:
        """The places, and behind each what every attention makes of it."""
        return torch.cat([memory, *(attention.keys(memory) for attention in self.attentions)], dim=2)  # type: ignore[operator]

    def weights(self, query: Tensor, keys: Tensor) -> Tensor:
        """Where each glimpse looks (B x G x P)."""
        size = (keys.shape[2] - self.memory_size) // len(self.attentions)
        own = torch.split(keys[:, :, self.memory_size :], size, dim=2)
        nothing = torch.zeros(keys.shape[:2], dtype=torch.bool)
        found = [a(query.unsqueeze(1), part, nothing) for a, part in zip(self.attentions, own, strict=True)]
        return torch.cat(found, dim=1)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        context = self.weights(query, keys) @ keys[:, :, : self.memory_size]  # B x G x M
        return relu(self.U(context.flatten(1))) * torch.tanh(self.W(query))


JOINS: dict[str, type[Join]] = {
    "product": ProductJoin,
    "concatenation": ConcatenationJoin,
    "attention": AttentionJoin,
}


class QuestionNetwork(ClassifierNetwork):
    """Packed questions and the features of images to a score for each answer (B x C).

    `owner` says which of the N images each question is about, so that one with several is looked at once.
    """

    def __init__(
        self,
        embedding: nn.Embedding | OneHot,
        body: Recurrent,
        pooling: Pooling,
        image: ImageEncoder,
        join: Join,
        classes: int,
        **options: Any,
    ) -> None:
        super().__init__(embedding, None, body, pooling, nn.Linear(join.output_size, classes), **options)
        self.image, self.join = image, join
        self.hidden = nn.Linear(join.output_size + join.query_size, join.output_size)

    def forward(self, texts: Inputs, features: Tensor, owner: Tensor) -> Tensor:  # type: ignore[override]
        return self.answer(self.dropped(self.embed(texts)), self.look(features)[owner])

    def look(self, features: Tensor) -> Tensor:
        """What a join needs of some images (N x P x K), from their features (N x P x C)."""
        return self.join.keys(self.image(features))

    def ask(self, embedded: PackedSequence) -> Tensor:
        """The vector of each question (B x Q), of mean 0 and variance 1, so that products are of a good size."""
        query = self.read(embedded)
        return layer_norm(query, (query.shape[1],))

    def answer(self, embedded: PackedSequence, keys: Tensor) -> Tensor:
        """The scores (B x C), from the vectors of the tokens and what `look` gave for the image of each question."""
        query = self.ask(embedded)
        joined = torch.cat([self.join(query, keys), query], dim=1)
        return cast(Tensor, self.output(self.output_dropout(relu(self.hidden(joined)))))
