"""The network that answers questions about images: a text's vector q and the places m_1 .. m_P of its image, joined.

A `Join` is one equation; what it gives is read beside q by one layer of ReLU, and that by the output layer.
"""

from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm, logsigmoid, relu
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from elman.nn.attention import AdditiveAttention
from elman.nn.classifier import ClassifierNetwork
from elman.nn.embedding import OneHot
from elman.nn.images import ImageEncoder, where
from elman.nn.inputs import Inputs
from elman.nn.pooling import Pooling
from elman.nn.recurrent import Recurrent


class QuestionTokens(NamedTuple):
    """What questions are beside their vectors, token by token."""

    words: PackedSequence
    """The vector x_t of each token (E)."""
    states: PackedSequence
    """What the recurrent layers gave for it, h_t (H)."""


class Join(nn.Module):
    """From questions (B x Q) and the places of their images (B x P x M) to one vector each (B x `output_size`).

    >>> from torch.nn.utils.rnn import pack_sequence
    >>> tokens = QuestionTokens(*(pack_sequence([torch.randn(5, 3), torch.randn(2, 3)]) for _ in range(2)))
    >>> join = ProductJoin(4, 6, 8)
    >>> join(torch.randn(2, 4), join.keys(torch.randn(2, 9, 6)), tokens).shape
    torch.Size([2, 8])
    """

    def __init__(self, query_size: int, memory_size: int, output_size: int) -> None:
        super().__init__()
        self.query_size, self.memory_size, self.output_size = query_size, memory_size, output_size

    def keys(self, memory: Tensor) -> Tensor:
        """What depends on the image alone, so that it is computed once for all questions about it (N x P x K)."""
        return memory

    def forward(self, query: Tensor, keys: Tensor, tokens: QuestionTokens) -> Tensor:
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

    def forward(self, query: Tensor, keys: Tensor, tokens: QuestionTokens) -> Tensor:
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

    def forward(self, query: Tensor, keys: Tensor, tokens: QuestionTokens) -> Tensor:
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

    def weights(self, query: Tensor, keys: Tensor, tokens: QuestionTokens) -> Tensor:
        """Where each glimpse looks (B x G x P)."""
        size = (keys.shape[2] - self.memory_size) // len(self.attentions)
        own = torch.split(keys[:, :, self.memory_size :], size, dim=2)
        nothing = torch.zeros(keys.shape[:2], dtype=torch.bool)
        found = [a(query.unsqueeze(1), part, nothing) for a, part in zip(self.attentions, own, strict=True)]
        return torch.cat(found, dim=1)

    def forward(self, query: Tensor, keys: Tensor, tokens: QuestionTokens) -> Tensor:
        context = self.weights(query, keys, tokens) @ keys[:, :, : self.memory_size]  # B x G x M
        return relu(self.U(context.flatten(1))) * torch.tanh(self.W(query))


class PhraseJoin(Join):
    """Phrases of the question, one after another, each looked for at every place: it fits where all its words do.

        n_p = norm(U m_p),  f_tp = σ(2 A x_t · n_p / √K + b)           how well word t fits place p
        [e_t; v_t] = σ(W [x_t; h_t]),  k_t = min(Σ_u≤t e_u, G - 1)     in which phrase it stands: e_t begins the next
        a_tg = v_t max(0, 1 - |k_t - g|)                               how much it belongs to phrase g, from 0
        s_gp = σ(o · n_p + d) Π_t f_tp^a_tg                            how well phrase g fits place p
        c_g = [Σ_p s_gp; Σ_p s_gp [r_p; n_p] / Σ_p s_gp]               how many there are; where and what they are
        h = C [c_0; ..; c_G-1] ∘ D q

    with x_t the vector of a word, h_t the recurrent state at it, r_p where place p stands, across and down from -4 to
    4, o a vector that tells things from the ground they stand on, and A, C, D, U, W matrices. A word means the same in
    every question, and a product is a soft "and": one word that does not fit is enough. A sum of weights that need not
    be 1 can count (Zhang et al. 2018). C takes what one phrase finds from what another finds, which is more or further
    left; D q says what was asked for. Words are shared out among phrases as among the modules of Hu et al. (2018);
    some, as "than", begin one wherever they stand.
    """

    def __init__(
        self, query_size: int, memory_size: int, output_size: int, word_size: int, state_size: int, phrases: int = 2
    ) -> None:
        super().__init__(query_size, memory_size, output_size)
        self.phrases = phrases
        self.A, self.U = nn.Linear(word_size, output_size), nn.Linear(memory_size, output_size)
        self.b, self.o = nn.Parameter(torch.zeros(1)), nn.Linear(output_size, 1)
        self.W = nn.Linear(word_size + state_size, 2)
        nn.init.constant_(self.W.bias[:1], -2.0)  # few words begin a phrase
        self.C, self.D = nn.Linear(phrases * (output_size + 3), output_size), nn.Linear(query_size, output_size)

    def keys(self, memory: Tensor) -> Tensor:
        """Where each place stands, and what it shows (N x P x 2+K)."""
        shown = layer_norm(self.U(memory), (self.output_size,))
        return torch.cat([4 * where(shown.shape[1]).to(shown).expand(len(shown), -1, -1), shown], dim=2)

    def belongs(self, tokens: QuestionTokens) -> Tensor:
        """How much each token belongs to each phrase (B x T x G), nothing beyond the end of a question."""
        gates = torch.sigmoid(self.W(torch.cat([tokens.words.data, tokens.states.data], dim=1)))  # rows x 2
        padded, _ = pad_packed_sequence(tokens.words._replace(data=gates), batch_first=True)
        begins, sought = padded[:, :, :1], padded[:, :, 1:]
        stands = begins.cumsum(1).clamp(max=self.phrases - 1)  # B x T x 1
        return relu(1 - (stands - torch.arange(self.phrases)).abs()) * sought

    def fits(self, keys: Tensor, tokens: QuestionTokens) -> Tensor:
        """The logarithm of how well each phrase fits each place (B x G x P)."""
        words, _ = pad_packed_sequence(tokens.words, batch_first=True)  # B x T x E
        shown = keys[:, :, 2:]  # B x P x K
        fits = 2 * self.A(words) @ shown.transpose(1, 2) / self.output_size**0.5 + self.b  # B x T x P
        things = logsigmoid(self.o(shown)).transpose(1, 2)  # B x 1 x P
        return things + self.belongs(tokens).transpose(1, 2) @ logsigmoid(fits)

    def weights(self, query: Tensor, keys: Tensor, tokens: QuestionTokens) -> Tensor:
        """How well each phrase fits each place (B x G x P)."""
        return self.fits(keys, tokens).exp()

    def forward(self, query: Tensor, keys: Tensor, tokens: QuestionTokens) -> Tensor:
        fits = self.fits(keys, tokens)
        found = torch.cat([fits.exp().sum(2, keepdim=True), fits.softmax(2) @ keys], dim=2)  # B x G x 1+2+K
        return cast(Tensor, self.C(found.flatten(1)) * self.D(query))


JOINS: dict[str, type[Join]] = {
    "product": ProductJoin,
    "concatenation": ConcatenationJoin,
    "attention": AttentionJoin,
    "phrases": PhraseJoin,
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

    def ask(self, embedded: PackedSequence) -> tuple[Tensor, QuestionTokens]:
        """The vector of each question (B x Q), of mean 0 and variance 1 for products of a good size, and its tokens."""
        output, state = self.body(embedded)
        query = self.output_dropout(self.pooling(output, state))
        return layer_norm(query, (query.shape[1],)), QuestionTokens(embedded, output)

    def answer(self, embedded: PackedSequence, keys: Tensor) -> Tensor:
        """The scores (B x C), from the vectors of the tokens and what `look` gave for the image of each question."""
        query, tokens = self.ask(embedded)
        joined = torch.cat([self.join(query, keys, tokens), query], dim=1)
        return cast(Tensor, self.output(self.output_dropout(relu(self.hidden(joined)))))
