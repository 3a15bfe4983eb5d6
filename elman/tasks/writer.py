"""What models that write have in common, whatever they write about: searching, n-best lists, control, scores.

A translator writes about a text, a captioner about an image. Each makes arrays of its sources, one for each, and steps
of some of them; from there on they are the same.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np

from elman.batches.examples import by_length
from elman.decode import Control, Ensemble, Hypothesis, NothingFound, SearchTree, StepModel, beam_search
from elman.errors import UserError
from elman.metrics.perplexity import perplexity
from elman.ragged import Ints, Ragged
from elman.records.places import Place
from elman.tasks.ensemble import EnsembleConfig, EnsembleModel
from elman.tasks.predict import PredictOptions
from elman.tasks.search import Search, SearchSettings, limits, sampled
from elman.text.sides import Target

if TYPE_CHECKING:
    from torch import Tensor

    from elman.nn.attention import Attention
    from elman.nn.decoder import AttentionSums, Decoder
    from elman.nn.writing import WritingNetwork
    from elman.tasks.task import Training
    from elman.train.task import Loss

SENTENCES, TOKENS = 64, 4096  # searched at a time, at most
OWN = ("prefix", "require", "forbid")  # what a JSON record may say for itself

Source = np.ndarray
"""What is written about, S places: the ids of a text (S), the features of an image (S x C)."""


# What is written


@dataclass(frozen=True)
class Alternative:
    """One text that the search found.

    `log_prob` is of the whole text, in nats; `score` is what the search ranked it by. `finished` is False where the
    limit of length came before its end.
    """

    text: str
    score: float
    log_prob: float
    ids: list[int]
    finished: bool = True


class Written:
    """An answer that is a text: the best, and all those that were asked for (`n_best`, the best first)."""

    what: ClassVar[str]
    """What the text is, as JSON calls it."""
    n_best: list[Alternative]

    @property
    def text(self) -> str:
        """The best text."""
        return self.n_best[0].text

    @property
    def score(self) -> float:
        """The score of the best text."""
        return self.n_best[0].score

    def best_to_dict(self) -> dict[str, Any]:
        """The best text as JSON has it."""
        best = self.n_best[0]
        return {
            self.what: self.text,
            "score": round(self.score, 6),
            "log_prob": round(best.log_prob, 6),
            "finished": best.finished,
        }

    def others_to_dict(self) -> dict[str, Any]:
        """All that were asked for, as JSON has them; nothing where that is one."""
        if len(self.n_best) == 1:
            return {}
        several = [
            {self.what: one.text, "score": round(one.score, 6), "log_prob": round(one.log_prob, 6)}
            for one in self.n_best
        ]
        return {"n_best": several}


# What writes


class WriterConfig(EnsembleConfig):
    """What the config.json of a model that writes holds."""

    model: Any
    search: SearchSettings


C = TypeVar("C", bound=WriterConfig)
V = TypeVar("V", bound=Target)
N = TypeVar("N", bound="WritingNetwork")
R = TypeVar("R")


class Writer(EnsembleModel[C, V, N, R]):
    """p(target | source), a token at a time; in an ensemble the mean of the probabilities of all."""

    what: ClassVar[str]
    """What it writes, for messages."""

    @property
    def settings(self) -> Any:
        """Those of its network."""
        return self.config.model

    @property
    def start(self) -> int:
        """The id that stands before every target."""
        return self.vocabulary.target.start_id

    @property
    def end(self) -> int:
        """The id that stands behind every target."""
        return self.vocabulary.target.eos_id

    def steps(self, sources: Ragged) -> StepModel[Any]:
        """What a search goes through to write about some sources."""
        raise NotImplementedError

    def usual_length(self, source: Source) -> int:
        """By which sources are put together, and what the longest text that is looked for is a multiple of."""
        return len(source)

    def places(self, source: Source) -> int:
        """How many places of a source can be attended to."""
        return len(source)

    # Searching

    def search_all(
        self, names: Sequence[str], sources: Sequence[Source], searches: Sequence[Search]
    ) -> list[list[Hypothesis]]:
        """The best texts for each source, with what is asked of it; sources of like length are searched together."""
        found: list[list[Hypothesis]] = [[] for _ in sources]
        for rows in by_length([self.usual_length(source) for source in sources], SENTENCES, tokens=TOKENS):
            alike: dict[tuple[Any, ...], list[int]] = {}  # only prefixes and words may differ within a search
            for row in rows.tolist():
                alike.setdefault(searches[row].shared(), []).append(row)
            for group in alike.values():
                several = self._search(
                    [names[row] for row in group], [sources[row] for row in group], [searches[row] for row in group]
                )
                for row, hypotheses in zip(group, several, strict=True):
                    found[row] = hypotheses
        return found

    def _search(
        self,
        names: list[str],
        sources: Sequence[Source],
        searches: list[Search],
        tree: SearchTree | None = None,
        steps: StepModel[Any] | None = None,
    ) -> list[list[Hypothesis]]:
        ragged = Ragged.of(sources)
        if steps is None:
            every = [model.steps(ragged) for model in self.members]
            steps = Ensemble(every) if self.others else every[0]
        first, controls = searches[0], [search.control(self.vocabulary) for search in searches]
        room = limits(self.config.search, first, [self.usual_length(source) for source in sources], controls)
        if first.sampling is not None:
            target = self.vocabulary.target
            unknown = set() if first.allow_unknown or first.replace_unknown else {target.unk_id}
            options: dict[str, Any] = {"samples": first.n_best, "suppress": target.unwritten | unknown}
            return sampled(steps, first.sampling, target, room, **options)
        try:
            return self._beam(steps, first, controls, room, [self.places(source) for source in sources], tree)
        except NothingFound as error:
            raise UserError(
                f"no {self.what} of {names[error.row]!r} was found that keeps to all that is asked of it: "
                "ask for less, or take a larger beam or max_length"
            ) from None

    def _beam(
        self,
        steps: StepModel[Any],
        search: Search,
        controls: list[Control],
        room: list[int],
        lengths: list[int],
        tree: SearchTree | None,
    ) -> list[list[Hypothesis]]:
        beam = search.settled(self.config.search, max(room), self.vocabulary.target.size)
        if beam.coverage and not all(model.settings.attends for model in self.members):
            raise UserError("coverage counts where a model attends, and this one has no attention: leave it out")
        return beam_search(
            steps,
            len(lengths),
            start_id=self.start,
            stop_id=self.end,
            beam=beam,
            lengths=room,
            controls=controls,
            source_lengths=lengths,
            tree=tree,
        )

    def alternatives(self, found: Sequence[Hypothesis]) -> list[Alternative]:
        """Hypotheses as texts."""
        write = self.vocabulary.write
        return [Alternative(write(one.ids), one.score, one.log_prob, one.ids, one.finished) for one in found]

    def names_of(self, ids: Sequence[int]) -> list[str]:
        """The tokens of a target, as people read them."""
        return [self.vocabulary.target.tokens[id] for id in ids]

    def own_search(self, search: Search, fields: Mapping[str, Any]) -> Search:
        """What is asked of one record, which may say some of it in fields of its own."""
        own = search.also({name: fields[name] for name in OWN if name in fields})
        if own is not search:
            own.control(self.vocabulary)
        return own

    def lines_of(
        self,
        where: Place,
        fields: Mapping[str, Any],
        given: Mapping[str, Any],
        answer: Any,
        search: Search,
        options: PredictOptions,
    ) -> Iterator[str]:
        """What `elman predict` prints for a record: its fields, what it was `given` as, and the answer."""
        if options.as_json:
            kept = {name: value for name, value in fields.items() if name not in OWN}
            yield options.to_json(where, kept, {**given, **answer.to_dict()})
        elif search.n_best > 1:
            for one in answer.n_best:
                yield f"{where.line}\t{one.score:.4f}\t{one_line(one.text)}"
        else:
            yield f"{one_line(answer.text)}\t{answer.pharaoh}" if search.alignments else one_line(answer.text)

    # Scoring pairs, and where the model attends

    def batches(self, pairs: Sequence[tuple[Source, Ints]]) -> "Iterator[tuple[Ints, PairBatch]]":
        """Encoded pairs in batches of similar length, with the places of the pairs in each row."""
        for rows in by_length([len(target) + 1 for _, target in pairs], SENTENCES, tokens=TOKENS):
            batch = make_batch([pairs[row] for row in rows], self.end, self.start)
            yield rows[batch.order], batch

    def pair_log_probs(self, pairs: Sequence[tuple[Source, Ints]]) -> list[float]:
        """log p(target | source) of each encoded pair, the end token counted."""
        import torch

        found = np.zeros(len(pairs))
        with torch.no_grad():
            for rows, batch in self.batches(pairs):
                told = [softmax.target_log_probs(hidden, batch.targets) for softmax, hidden in self._readouts(batch)]
                each = _mean_log_probs(told).double().numpy()  # N
                cuts = np.cumsum(batch.batch_sizes.numpy())[:-1]
                for size, part in zip(batch.batch_sizes.tolist(), np.split(each, cuts), strict=True):
                    found[rows[:size]] += part
        return found.tolist()

    def _readouts(self, batch: "PairBatch") -> Iterator[tuple[Any, "Tensor"]]:
        """The softmax of each member, and what it gets at each place of some targets (N x H)."""
        for one in self.members:
            with one.evaluating() as network:
                source = batch.source, batch.lengths
                yield network.softmax, network.readouts(*source, batch.inputs, batch.batch_sizes, owners=batch.owners)

    def attention(self, pairs: Sequence[tuple[Source, Ints]]) -> list[np.ndarray]:
        """Where each token of each target attends, the end token's place left out: T x S for each encoded pair."""
        import torch

        found: list[np.ndarray] = [np.zeros((0, 0), np.float32)] * len(pairs)

        def attended(one: Self, batch: PairBatch) -> np.ndarray:  # B x T x S
            with one.evaluating() as network:
                return network.attended(batch.source, batch.lengths, batch.inputs, batch.batch_sizes).numpy()

        with torch.no_grad():
            for rows, batch in self.batches(pairs):
                seen = self.averaged(partial(attended, batch=batch))
                for row, place in enumerate(rows):
                    found[place] = seen[row, : len(pairs[place][1])]
        return found

    def expected_scores(self, batches: "Iterable[PairBatch]") -> dict[str, float]:
        """Loss (nats a token), perplexity and token accuracy, every right token being told before the next."""
        import torch

        total = right = tokens = 0.0
        with torch.no_grad():
            for batch in batches:
                log_probs = _mean_log_probs([softmax.log_probs(hidden) for softmax, hidden in self._readouts(batch)])
                # N x V
                total -= float(log_probs.gather(1, batch.targets.unsqueeze(1)).double().sum())
                right += int((log_probs.argmax(dim=1) == batch.targets).sum())
                tokens += len(batch.targets)
        loss = total / tokens
        return {"loss": loss, "perplexity": perplexity(loss), "token_accuracy": right / tokens}

    def check_attends(self) -> None:
        """Refuse to say where a model attends that has no attention."""
        if not all(model.settings.attends for model in self.members):
            which = "this model has" if len(self.members) == 1 else "one of these models has"
            raise UserError(f"{which} no attention, so it cannot say where it attends: train one that has")


def _mean_log_probs(each: "Sequence[Tensor]") -> "Tensor":
    """The logarithm of the mean of the probabilities that several models give."""
    import torch

    return torch.stack(list(each)).logsumexp(dim=0) - math.log(len(each)) if len(each) > 1 else each[0]


def one_line(text: str) -> str:
    """Text that may have learned line ends, as one line."""
    return text.replace("\n", " ")


# Its decoder, of the settings of a section `model`


def make_attention(settings: Any, input_size: int, memory_size: int) -> "Attention | None":
    """A fresh attention; None for a decoder without."""
    from elman.nn.attention import ATTENTIONS

    if not settings.attends:
        return None
    kind = ATTENTIONS[settings.attention]
    query = (settings.projection or settings.hidden) + (input_size if kind.sees_input else 0)
    longest = {"longest": settings.longest} if settings.attention in ("location", "fixed-length") else {}
    return kind(query, memory_size, **longest)


def attention_size(settings: Any, memory_size: int) -> int:
    """What of an attention its kind does not tell: the places it can see, or the size of what it compares."""
    if settings.attention in ("location", "fixed-length"):
        return int(settings.longest)
    query = settings.projection or settings.hidden
    rank = max(1, min(query, memory_size) // 8)
    return int({"additive": query, "reduced-rank": rank}.get(settings.attention, 0))


def make_decoder(settings: Any, input_size: int, memory_size: int, *, gate: bool = False) -> "Decoder":
    """A fresh decoder."""
    from elman.nn.decoder import Decoder
    from elman.nn.initialise import OF_ALL_WEIGHTS, initialise

    options = settings.decoder_options
    decoder = Decoder(
        settings.decoder,
        settings.cell,
        input_size,
        settings.hidden,
        memory_size,
        settings.readout,
        attention=make_attention(settings, input_size, memory_size),
        gate=gate,
        dropout=settings.dropout if options["num_layers"] > 1 else 0.0,
        weight_dropout=settings.weight_dropout,
        connections=settings.connections,
        nonlinearity=settings.nonlinearity,
        proj_size=settings.projection,
        **options,
    )
    if settings.initialise not in OF_ALL_WEIGHTS:
        initialise(decoder.body, settings.initialise, forget_bias=settings.forget_bias)
    return decoder


# What it learns from


@dataclass(frozen=True)
class PairBatch:
    """Pairs as the network learns them: sources as they are, targets packed, the longest target first."""

    source: "Tensor"  # B x S, or of images B x S x C
    lengths: "Tensor"  # B: places of each source
    inputs: "Tensor"  # N, packed: the token before each one to be said, the start token before the first
    targets: "Tensor"  # N, packed: the tokens to be said, the end token last
    batch_sizes: "Tensor"  # T: how many targets have a first token, a second one,
    order: Ints  # B: which of the given pairs each row is
    owners: "Tensor | None" = None  # B: the source of each target, where sources have several

    def __str__(self) -> str:
        return f"of {len(self.order)} pairs, {len(self.targets)} target tokens"


def make_batch(pairs: Sequence[tuple[Source, Ints]], end: int, start: int | None = None) -> PairBatch:
    """Encoded pairs as a batch; `end` stands behind each target, and before it `start`, or the end again.

    >>> batch = make_batch([(np.array([7]), np.array([3])), (np.array([8, 9]), np.array([4, 5]))], end=1)
    >>> batch.source.tolist(), batch.inputs.tolist(), batch.targets.tolist(), batch.batch_sizes.tolist()
    ([[8, 9], [7, 0]], [1, 1, 4, 3, 5], [4, 3, 5, 1, 1], [2, 2, 1])
    """
    import torch

    order, *packed = _packed([target for _, target in pairs], end, start)
    source = Ragged.of([pairs[row][0] for row in order])
    arrays = (source.padded(), source.lengths, *packed)
    return PairBatch(*(torch.from_numpy(array) for array in arrays), order=order)  # type: ignore[arg-type, misc]


def make_grouped_batch(
    sources: np.ndarray, targets: Sequence[Sequence[Ints]], end: int, start: int | None = None
) -> PairBatch:
    """Sources of as many places each (B x S x C), each with its own targets, as a batch that reads a source once.

    >>> batch = make_grouped_batch(np.zeros((2, 4, 3)), [[np.array([3])], [np.array([4, 5]), np.array([6])]], end=1)
    >>> batch.owners.tolist(), batch.targets.tolist(), batch.batch_sizes.tolist()
    ([1, 0, 1], [4, 3, 6, 5, 1, 1, 1], [3, 3, 1])
    """
    import torch

    order, *packed = _packed([target for several in targets for target in several], end, start)
    owners = np.repeat(np.arange(len(targets)), [len(several) for several in targets])[order]
    arrays = (sources, np.full(len(sources), sources.shape[1]), *packed)
    return PairBatch(*(torch.from_numpy(array) for array in arrays), order=order, owners=torch.from_numpy(owners))  # type: ignore[arg-type, misc]


def _packed(targets: Sequence[Ints], end: int, start: int | None) -> tuple[Ints, Ints, Ints, Ints]:
    """The order of targets in a packing, their inputs and themselves in it, and how many there are at each step."""
    ended = Ragged.of([np.append(target, end) for target in targets])
    before = np.empty_like(ended.data)
    before[1:], before[ended.starts] = ended.data[:-1], end if start is None else start
    order, batch_sizes, _ = ended.packing
    return order, ended.packed(before), ended.packed(), batch_sizes


def teacher_forcing(run: "Training[Any, Any]") -> float:
    """The share of steps that are told what is right, by now."""
    loss = run.recipe.loss
    return float(loss.teacher_forcing) if run.current is None else float(loss.forcing(run.recipe.train, run.current))


def target_loss(run: "Training[Any, Any]", batch: PairBatch, sums: "AttentionSums | None" = None) -> "Loss":
    """The mean loss of some pairs per target token; `sums` is told how much each place is attended to."""
    from elman.nn.forcing import Forcing, SelfFeeding
    from elman.train.task import Loss

    forcing, feeding = teacher_forcing(run), None
    if run.recipe.loss.teacher_forcing_by == "sequence" and forcing < 1:
        feeding = SelfFeeding(Forcing(forcing, "sequence", run.model.end), len(batch.order))
    hidden = run.network.readouts(
        batch.source, batch.lengths, batch.inputs, batch.batch_sizes, forcing, feeding, sums, batch.owners
    )
    targets = batch.targets
    if feeding is not None:  # what would follow its own end is left out
        hidden, targets = hidden[feeding.trained], targets[feeding.trained]
    return Loss(run.network.softmax.loss(hidden, targets), len(targets))
