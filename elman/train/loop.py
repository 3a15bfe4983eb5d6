"""The training loop: one for all tasks.

    Trainer(task, settings, folder).run()                 # a new run
    Trainer(task, settings, folder).run(resume=True)      # goes on exactly where it stopped

What a run depends on is all in `Trainer._state`: network, optimizer, averages, position in the data, carried hidden
state, random states, counts. It is saved as one file, so that a run killed at any moment ends with the same weights,
to the byte, as one that was never interrupted.
"""

import ctypes
import math
import random
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch

from elman.errors import Interrupted, RunError, UserError, is_out_of_memory
from elman.train.checkpoint import load_checkpoint, save_checkpoint
from elman.train.log import TRACKERS, RunLog, draw_curves, read_log
from elman.train.optimizer import Average, Unfreezing, clip, gradients_of, learning_rate, make_optimizer, set_rate
from elman.train.progress import Reporter
from elman.train.recipe import EPOCHS, TrainSettings
from elman.train.task import Trainable

MOST_NATS = math.log(sys.float_info.max)  # a loss whose perplexity is no number any more
MOST = 1e20  # a loss of another kind
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # as malloc.h of glibc calls them


def seed_everything(seed: int) -> None:
    """Start every random generator that a run may draw from."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def keep_freed_memory() -> None:
    """Have the C library keep what is freed for the next update, in place of giving it back to the system.

    Gradients of a large vocabulary are tens of megabytes; asked for anew at every update, the system clears each page
    of them first, which takes longer than the optimizer. Where the library is not glibc, nothing changes.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


class Trainer:
    """Trains one task into one folder."""

    def __init__(
        self, task: Trainable, settings: TrainSettings, folder: Path, reporter: Reporter | None = None
    ) -> None:
        self.task, self.settings, self.folder = task, settings, folder
        self.epochs = settings.epochs or EPOCHS
        self.reporter = reporter or Reporter()
        self.parameters = [p for p in task.network.parameters() if p.requires_grad]
        self.optimizer = make_optimizer(settings, task.network)
        self.average = Average(settings, task.network)
        self.unfreezing = Unfreezing(settings, task.network)
        self.batches = task.batches()
        self.hidden: Any = None
        self.step = 0
        self.seconds = 0.0  # of training, over all interruptions
        self.tokens = 0
        # (error, loss) of every evaluation, in the order in which models are chosen: of equal errors the lower loss.
        self.evaluations: list[tuple[float, float]] = []
        self.plateaus = 0
        self._recent: list[tuple[float, int]] = []  # (loss, tokens) since the last log record
        self._stop_signal: int | None = None

    @property
    def checkpoint_path(self) -> Path:
        """The one file that a run resumes from."""
        return self.folder / "checkpoint" / "state.safetensors"

    @property
    def fraction(self) -> float:
        """How much of the whole run is done, from 0 to 1."""
        if self.settings.steps is not None:
            return self.step / self.settings.steps
        # Batches do not divide an epoch evenly; without the rounding a run could end one update late.
        return min(1.0, round(self.batches.progress, 9) / self.epochs)

    def run(self, resume: bool = False) -> None:
        """Train to the end; the folder then holds the best model, the log and the curves."""
        self.folder.mkdir(parents=True, exist_ok=True)
        keep_freed_memory()
        track = [name for name in TRACKERS if getattr(self.settings, name)]
        log = RunLog(self.folder, track, self.reporter.callbacks)
        if resume:
            self.resume()
        log.rewind(self.step)
        with self.reporter, self._stopping_gently():
            self._train(log)
        if self._out_of_patience():
            self.reporter.say(f"stopped early: no improvement in {self.settings.patience} evaluations")
        log.close()
        draw_curves(self.folder)

    def _train(self, log: RunLog) -> None:
        """Update, log, evaluate, save, until the end, a plateau or a signal."""
        last_save = last = time.monotonic()
        while self.fraction < 1.0 and not self._out_of_patience():
            epoch = int(self.batches.progress)
            rate, norm = self._update()
            now = time.monotonic()
            self.seconds, last = self.seconds + now - last, now
            self._show_step()
            if self.step % self.settings.log_every == 0:
                self._log_step(log, rate, norm)
            evaluated = self._evaluation_due(epoch)
            if evaluated:
                self._evaluate(log)
            if evaluated or self._stop_signal or now - last_save >= self.settings.checkpoint_seconds:
                save_checkpoint(self.checkpoint_path, self._state())
                last_save = time.monotonic()
            now = time.monotonic()
            self.seconds, last = self.seconds + now - last, now
            if self._stop_signal:
                share = f"{self.fraction:.0%} of {self.settings.whole}"
                raise Interrupted(f"stopped at step {self.step}, {share}; everything is saved")

    def _update(self) -> tuple[float, float | None]:
        """One step of the optimizer; returns the learning rate and the gradient's norm, where that is known."""
        self.task.network.train()
        rate = learning_rate(self.settings, self.step, self.fraction, self.plateaus)
        if getattr(self.task, "learns_alone", False):
            self._own_update(rate)
            return rate, None
        set_rate(self.optimizer, rate)
        self.unfreezing.at(self.batches.progress)
        self.optimizer.zero_grad(set_to_none=True)
        several = self.settings.accumulate > 1
        tokens, weight = 0, 0.0
        for _ in range(self.settings.accumulate):
            batch = next(self.batches)
            loss = self.task.loss(batch, self.hidden)
            value = loss.mean.item()
            self._refuse_diverged(value, "loss", f"batch {batch}", step=self.step + 1)
            (loss.mean * (loss.tokens if several else loss.weight)).backward()  # type: ignore[no-untyped-call]
            self.hidden = loss.state
            tokens, weight = tokens + loss.tokens, weight + loss.weight / self.settings.accumulate
            self._recent.append((value, loss.tokens))
        self.tokens += tokens
        if several:  # the gradients are sums over the tokens so far
            torch._foreach_mul_(gradients_of(self.parameters), weight / tokens)
        norm = clip(self.settings, self.parameters)
        self._refuse_diverged(norm, "norm of the gradient", f"batch {batch}", step=self.step + 1)
        self.optimizer.step()
        self.average.update()
        self.step += 1
        return rate, norm

    def _own_update(self, rate: float) -> None:
        """A batch from which a kernel learns as it reads: there is no gradient to be seen."""
        batch = next(self.batches)
        loss = self.task.update(batch, rate)
        value = loss.mean.item()
        self._refuse_diverged(value, "loss", f"batch {batch}", step=self.step + 1)
        self._recent.append((value, loss.tokens))
        self.tokens += loss.tokens
        self.step += 1

    def _refuse_diverged(self, value: float, what: str, where: str, *, step: int, most: float = math.inf) -> None:
        """Stop at a `step` where a number is none, or is `most` and more."""
        if not abs(value) < most:
            kept = f"the last good checkpoint is {self.checkpoint_path}" if self.checkpoint_path.exists() else ""
            raise RunError(
                f"training stopped at step {step}: the {what} is {value:g} in {where}; "
                f"try a lower train.lr or train.clip_norm{'; ' if kept else ''}{kept}"
            )

    def _recent_loss(self) -> float:
        """The mean since the last record of the log."""
        tokens = sum(count for _, count in self._recent)
        return sum(value * count for value, count in self._recent) / max(tokens, 1)

    def _show_step(self) -> None:
        speed = f"{self.tokens / max(self.seconds, 1e-9):,.0f} {self.task.unit}/s"
        left = self.seconds * (1 - self.fraction) / max(self.fraction, 1e-9)
        self.reporter.step(self.step, self.fraction, self._recent_loss(), speed, left)

    def _log_step(self, log: RunLog, rate: float, norm: float | None) -> None:
        loss, epoch = self._recent_loss(), self.batches.progress
        self._recent.clear()
        known = {} if norm is None else {"grad_norm": norm}
        log.add("train", self.step, loss=loss, lr=rate, **known, epoch=epoch, seconds=self.seconds)

    def _evaluation_due(self, epoch: int) -> bool:
        if self.fraction >= 1.0:
            return True
        every = self.settings.evaluate_every
        return self.step % every == 0 if every else int(self.batches.progress) > epoch

    def _evaluate(self, log: RunLog) -> None:
        """Score the held-out part; keep the model if it is the best so far."""
        self.task.network.eval()
        # A fused optimizer changes weights without counting that, and who has compiled them goes by the count.
        torch.autograd.graph.increment_version(self.parameters)
        with self.average.applied(), torch.no_grad():
            scores = self.task.evaluate()
            most = MOST_NATS if getattr(self.task, "nats", True) else MOST
            self._refuse_diverged(scores["loss"], "loss", "the held-out text", step=self.step, most=most)
            found = (scores.pop("error", scores["loss"]), scores["loss"])
            best = not self.evaluations or found < min(self.evaluations)
            if best:
                self.task.save(self.folder)
            sample = self.task.sample() if hasattr(self.task, "sample") else None
        self._react(found, best)
        log.add("dev", self.step, **scores, seconds=self.seconds)
        self.reporter.evaluation(self.step, scores, best and not getattr(self.task, "keeps_last", False))
        if sample is not None:
            log.add("sample", self.step, text=sample)
            self.reporter.sample(self.step, sample)

    def _react(self, found: tuple[float, float], best: bool) -> None:
        """Lower the rate or start averaging where the held-out scores stand still."""
        wait = self.settings.average_patience
        stalled = len(self.evaluations) > wait and found > min(self.evaluations[:-wait])
        if self.settings.average == "triggered" and not self.average.active and stalled:
            self.average.start()
            self.reporter.say(f"step {self.step}  averaging the weights from here on")
        if not best:
            self.plateaus += 1
        self.evaluations.append(found)

    def _out_of_patience(self) -> bool:
        patience = self.settings.patience
        if not patience or not self.evaluations:
            return False
        return len(self.evaluations) - 1 - self.evaluations.index(min(self.evaluations)) >= patience

    def _state(self) -> dict[str, Any]:
        """All that the rest of the run depends on."""
        kind, keys, position, has_gauss, cached = np.random.get_state()
        return {
            "network": self.task.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "average": self.average.state_dict(),
            "batches": self.batches.state_dict(),
            "hidden": self.hidden,
            "step": self.step,
            "seconds": self.seconds,
            "tokens": self.tokens,
            "evaluations": self.evaluations,
            "plateaus": self.plateaus,
            "recent": [list(pair) for pair in self._recent],
            "random": {
                "torch": torch.get_rng_state(),
                "numpy": [str(kind), torch.from_numpy(np.asarray(keys)), int(position), int(has_gauss), float(cached)],
                "python": random.getstate(),
            },
        }

    def resume(self) -> None:
        """Be where the checkpoint is; one that is damaged, or of other data, is refused."""
        state = load_checkpoint(self.checkpoint_path)
        read_log(self.folder / "log.jsonl")  # a log that cannot be read is told of before anything is written
        try:
            self._restore(state)
        except (RuntimeError, ValueError, KeyError, TypeError) as error:
            if is_out_of_memory(error):
                raise
            raise UserError(
                f"the checkpoint {self.checkpoint_path} does not fit this run, as if its data had changed since: "
                "put them back, or start again with --force"
            ) from None

    def _restore(self, state: dict[str, Any]) -> None:
        self.task.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.average.load_state_dict(state["average"])
        self.batches.load_state_dict(state["batches"])
        self.hidden = state["hidden"]
        self.step, self.seconds, self.tokens = state["step"], state["seconds"], state["tokens"]
        self.evaluations, self.plateaus = state["evaluations"], state["plateaus"]
        self._recent = [(loss, tokens) for loss, tokens in state["recent"]]
        torch.set_rng_state(state["random"]["torch"])
        kind, keys, position, has_gauss, cached = state["random"]["numpy"]
        np.random.set_state((kind, keys.numpy(), position, has_gauss, cached))
        random.setstate(state["random"]["python"])

    @contextmanager
    def _stopping_gently(self) -> Iterator[None]:
        """SIGINT and SIGTERM are noted, and acted on after the step; a second one acts at once.

        One that is ignored stays so: whoever started the run does not want it to stop by that.
        """

        def note(number: int, frame: FrameType | None) -> None:
            self._stop_signal = number
            signal.signal(number, previous[number])

        previous: dict[int, Any] = {}
        # Only the main thread may set handlers; a trainer in another thread is its owner's to stop.
        with suppress(ValueError):
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) == signal.SIG_IGN:
                    continue
                previous[number] = signal.signal(number, note)
        try:
            yield
        finally:
            for caught, handler in previous.items():
                signal.signal(caught, handler)
