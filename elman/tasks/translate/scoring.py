"""How good translations are: what a network expects of the right ones, and what it writes itself."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from elman.baselines.neighbours import CopySource, NearestPair
from elman.metrics.bleu import corpus_scores
from elman.metrics.edits import edit_scores
from elman.metrics.perplexity import perplexity
from elman.records.pairs import Pair, references
from elman.tasks.translate.model import Translator
from elman.tasks.translate.settings import ReportSettings
from elman.text.tokenizer import normaliser


@torch.no_grad()
def expected_scores(model: Translator, pairs: Sequence[tuple[Any, Any]]) -> dict[str, float]:
    """Loss (nats a token), perplexity and token accuracy, every right token being told before the next is asked for."""
    network = model.ready()
    total = right = tokens = 0.0
    for _, batch in model.batches(pairs):
        hidden = network.readouts(batch.source, batch.lengths, batch.inputs, batch.batch_sizes)
        log_probs = network.softmax.log_probs(hidden)  # N x V
        total -= float(log_probs.gather(1, batch.targets.unsqueeze(1)).double().sum())
        right += int((log_probs.argmax(dim=1) == batch.targets).sum())
        tokens += len(batch.targets)
    loss = total / tokens
    return {"loss": loss, "perplexity": perplexity(loss), "token_accuracy": right / tokens}


def lines_of(pairs: Sequence[Pair], settings: ReportSettings) -> dict[str, list[Any]]:
    """The sources to translate, and for each the targets that are right."""
    if settings.references == "pair":
        return {"sources": [pair.source for pair in pairs], "references": [[pair.target] for pair in pairs]}
    grouped = references(pairs)
    return {"sources": list(grouped), "references": list(grouped.values())}


def written_scores(
    hypotheses: Sequence[str], right: Sequence[Sequence[str]], model: Translator, settings: ReportSettings
) -> dict[str, Any]:
    """BLEU and chrF as sacrebleu counts them, exact matches and edits, of what was written."""
    target = model.sides.target.settings
    ready = normaliser(target)
    said = [ready(text) for text in hypotheses]
    wanted = [[ready(text) for text in several] for several in right]
    scores = corpus_scores(said, wanted, lowercase=target.lowercase, tokenize=settings.tokenize)
    cut = list if target.kind in ("characters", "bytes") else str.split
    edits = edit_scores([cut(text) for text in said], [[cut(text) for text in several] for several in wanted])
    return {
        **scores.to_dict(),
        "exact_match": edits.exact_match,
        "error_rate": edits.error_rate,
        "lines": len(said),
    }


def baseline_scores(
    train: Sequence[Pair], sets: Mapping[str, Sequence[Pair]], model: Translator, settings: ReportSettings
) -> dict[str, dict[str, Any]]:
    """The same for copying the source, and for the target of the training pair whose source is most similar."""
    nearest = NearestPair.fit([pair.source for pair in train], [pair.target for pair in train])
    found: dict[str, dict[str, Any]] = {}
    for who, baseline in (("nearest training pair", nearest), ("copied source", CopySource())):
        found[who] = {}
        for name, pairs in sets.items():
            lines = lines_of(pairs, settings)
            said = baseline.predict(lines["sources"])
            found[who][name] = written_scores(said, lines["references"], model, settings)
    return found
