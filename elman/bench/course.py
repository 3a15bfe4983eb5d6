"""A translator as it is written in a course: one sentence at a time, step by step, a beam that is a Python list."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from elman.bench.translators import BOS, CLIP_NORM, EOS, LEARNING_RATE, IdPairs, Sizes, Step, learn, weights_of
from elman.nn.translation import TranslationNetwork


@dataclass(frozen=True)
class Open:
    """A hypothesis of the beam."""

    ids: list[int]
    log_prob: float
    hidden: Tensor
    fed: Tensor


class CourseTranslator(nn.Module):
    """Encoder, additive attention and decoder of `torch.nn`, with the weights of a network that feeds its readout.

    >>> sizes = Sizes(vocabulary=11, embedding=3, hidden=4)
    >>> course = CourseTranslator(sizes, sizes.network("luong-feeding"))
    >>> [len(ids) for ids in course.translate(IdPairs.of(2, 11), beam=2, length=5)]
    [5, 5]
    """

    def __init__(self, sizes: Sizes, network: TranslationNetwork) -> None:
        super().__init__()
        E, H, V = sizes.embedding, sizes.hidden, sizes.vocabulary
        self.source, self.target = nn.Embedding(V, E), nn.Embedding(V, E)
        self.encoder = nn.GRU(E, H, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * H, H)
        self.decoder = nn.GRU(E + H, H, batch_first=True)
        self.query, self.keys = nn.Linear(H, H, bias=False), nn.Linear(2 * H, H, bias=False)
        self.energy = nn.Linear(H, 1, bias=False)
        self.readout, self.softmax = nn.Linear(3 * H, H), nn.Linear(H, V, bias=False)
        own = self.state_dict()
        self.load_state_dict({name if name in own else f"{name}.weight": w for name, w in weights_of(network).items()})

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The encoder's states (1 x S x 2H), and what the decoder begins with."""
        states, final = self.encoder(self.source(source))
        hidden = torch.tanh(self.bridge(torch.cat((final[0], final[1]), dim=1))).unsqueeze(0)  # 1 x 1 x H
        return states, hidden, torch.zeros(1, 1, hidden.shape[2])

    def step(self, token: Tensor, hidden: Tensor, fed: Tensor, states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The logits after one more token (1 x 1), and the state."""
        output, hidden = self.decoder(torch.cat((self.target(token), fed), dim=2), hidden)  # 1 x 1 x H
        scores = self.energy(torch.tanh(self.query(output) + self.keys(states)))  # 1 x S x 1
        context = scores.softmax(dim=1).transpose(1, 2) @ states  # 1 x 1 x 2H
        fed = torch.tanh(self.readout(torch.cat((output, context), dim=2)))  # 1 x 1 x H
        return self.softmax(fed)[0, 0], hidden, fed

    @torch.no_grad()
    def translate(self, pairs: IdPairs, beam: int, length: int) -> list[list[int]]:
        """The best `length` ids for each source, one source after the other."""
        return [self._search(torch.from_numpy(source).unsqueeze(0), beam, length) for source in pairs.sources]

    def _search(self, source: Tensor, beam: int, length: int) -> list[int]:
        states, hidden, fed = self.encode(source)
        kept = [Open([], 0.0, hidden, fed)]
        for _ in range(length):
            found = []
            for each in kept:
                token = torch.tensor([each.ids[-1:] or [BOS]])
                logits, hidden, fed = self.step(token, each.hidden, each.fed, states)
                log_probs = logits.log_softmax(dim=0)  # V
                log_probs[EOS] = -torch.inf  # so that all that are compared write as much
                values, ids = log_probs.topk(beam)
                for value, one in zip(values.tolist(), ids.tolist(), strict=True):
                    found.append(Open([*each.ids, one], each.log_prob + value, hidden, fed))
            kept = sorted(found, key=lambda each: each.log_prob, reverse=True)[:beam]
        return kept[0].ids

    def learning(self, pairs: IdPairs) -> Step:
        """One update for the pairs, their losses added up."""
        optimizer = torch.optim.Adam(self.parameters(), lr=LEARNING_RATE)

        def loss() -> Tensor:
            both = zip(pairs.sources, pairs.targets, strict=True)
            losses = [self._loss(torch.from_numpy(source), torch.from_numpy(target)) for source, target in both]
            return torch.stack(losses).sum() / pairs.tokens

        return lambda: learn(loss, optimizer, lambda: nn.utils.clip_grad_norm_(self.parameters(), CLIP_NORM))

    def _loss(self, source: Tensor, target: Tensor) -> Tensor:
        """The summed loss of a pair, told the right token before each."""
        states, hidden, fed = self.encode(source.unsqueeze(0))
        total = torch.zeros(())
        token = torch.tensor(BOS)
        for right in torch.cat((target, torch.tensor([EOS]))):
            logits, hidden, fed = self.step(token.view(1, 1), hidden, fed, states)
            total = total + cross_entropy(logits, right)
            token = right
        return total
