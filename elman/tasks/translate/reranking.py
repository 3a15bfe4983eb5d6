"""What a noisy channel gains over its translator alone, on files of pairs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from elman.errors import UserError
from elman.records.pairs import read_pairs
from elman.tasks.reading import with_reading_settings
from elman.tasks.translate.channel import NoisyChannel
from elman.tasks.translate.data import pair_files
from elman.tasks.translate.scoring import lines_of, written_scores
from elman.tasks.translate.settings import TranslateRecipe
from elman.train.recipe import parse


def rerank_report(
    channel: NoisyChannel,
    *,
    dev: Sequence[Path] = (),
    test: Sequence[Path] = (),
    seed: int = 0,
    settings: Sequence[str] = (),
) -> dict[str, Any]:
    """BLEU of the translator and of the channel, whose weights are tuned on `dev` where that is given.

    The translator is used as it is by itself, with its own beam. The files are read as those that it learned from;
    `settings` say where they differ, as `data.encoding=latin-1`.
    """
    recipe = parse(TranslateRecipe, channel.model.recipe, where="the model's config.json")
    report: dict[str, Any] = {}
    for name, paths in (("dev", dev), ("test", test)):
        if not paths:
            continue
        lines = lines_of(
            read_pairs(pair_files(with_reading_settings(recipe, settings).data, paths)).pairs, recipe.report
        )
        sources, right = lines["sources"], lines["references"]
        candidates = channel.candidates(sources)
        if name == "dev":
            channel.tune_on(candidates, right, seed)
        alone = [one.text for one in channel.model.predict(sources)]
        chosen = [one.text for one in candidates.ranked(channel.weights)]
        before, after = (written_scores(said, right, channel.model, recipe.report) for said in (alone, chosen))
        report[name] = {"before": before["bleu"], "after": after["bleu"], "lines": len(sources)}
        report["signature"] = after["bleu_signature"]
    if not report:
        raise UserError("there is nothing to score: give pairs to tune on, pairs to test on, or both")
    return {"weights": str(channel.weights), **report}
