"""What is too large for this machine, said in a sentence before it is tried, or where it shows only later."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel

from elman.errors import ElmanError, UserError, is_out_of_memory

if TYPE_CHECKING:
    from torch import nn

N = TypeVar("N", bound="nn.Module")

TRAINED = 2
"""How often a weight is held, at least, while it is trained: itself and its gradient. Adam takes two more."""
LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Where Linux says how much memory a container may have, in the newer and the older form."""


def built(make: Callable[[], N], settings: BaseModel, *, trained: bool = True, size: int | None = None) -> N:
    """What `make` makes, unless it is too large for this machine's memory; `settings` are those of the recipe's model.

    One that is to be trained (`trained`) needs several times what its weights take: `size` bytes, where that is known.

    >>> from torch import nn
    >>> class Tiny(BaseModel):
    ...     hidden: int
    >>> built(lambda: nn.Linear(2, 3), Tiny(hidden=3)).weight.shape
    torch.Size([3, 2])
    >>> built(lambda: nn.Linear(10**7, 10**7), Tiny(hidden=10**7))
    Traceback (most recent call last):
    elman.errors.UserError: training the network would take 800 TB, and there is memory for ...: take a smaller \
model.hidden, which is 10000000
    """
    import torch

    if torch.get_default_device().type == "meta":  # only its shapes are asked for
        return make()
    size, here = network_bytes(make) if size is None else size, machine_bytes()
    needed = size if size is None or not trained else TRAINED * size
    if needed is None or (here is not None and needed > here):
        what = "training the network" if trained else "the network"
        most = "" if here is None else f", and there is memory for {_said(here)}"
        raise UserError(f"{what} would take {_said(needed)}{most}: {_smaller(settings)}")
    with explain_out_of_memory(_smaller(settings)):
        return make()


def network_bytes(make: "Callable[[], nn.Module]") -> int | None:
    """The size of a network that is not made; None where it is beyond counting."""
    network = sketch(make)
    return None if network is None else sum(tensor.nbytes for tensor in network.state_dict().values())


def sketch(make: Callable[[], N]) -> N | None:
    """A network whose tensors have shapes and no numbers, so that no memory is taken; None where not even that goes."""
    import torch

    try:
        with torch.device("meta"):
            return make()
    except (RuntimeError, TypeError, OverflowError) as error:
        if "overflow" in str(error).lower():  # how PyTorch tells of sizes that no machine has
            return None
        raise


def machine_bytes() -> int | None:
    """The memory that there is: the machine's, or what a container may have of it; None where that is not known."""
    found = []
    with suppress(AttributeError, ValueError, OSError):  # the system has no such figures
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for limit in LIMITS:
        with suppress(ValueError, OSError):  # there is no such file, or it says that there is no limit
            found.append(int(limit.read_text(encoding="ascii")))
    return min(found, default=None)


@contextmanager
def explain_out_of_memory(what_to_do: str, error: type[ElmanError] = UserError) -> Iterator[None]:
    """Where there is not enough memory, one sentence that ends in what to do.

    >>> import torch
    >>> with explain_out_of_memory("take a smaller batch.size"):
    ...     _ = torch.empty(10**14)
    Traceback (most recent call last):
    elman.errors.UserError: there is not enough memory: take a smaller batch.size
    """
    try:
        yield
    except (MemoryError, RuntimeError) as raised:
        if not is_out_of_memory(raised):
            raise
        raise error(f"there is not enough memory: {what_to_do}") from None


def _smaller(settings: BaseModel) -> str:
    """The largest of the sizes, which is the one to look at first."""
    sizes = {name: value for name, value in settings if isinstance(value, int) and not isinstance(value, bool)}
    name = max(sizes, key=sizes.__getitem__)
    return f"take a smaller model.{name}, which is {sizes[name]}"


def _said(size: int | None) -> str:
    if size is None:
        return "more bytes than can be counted"
    units = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")
    power = min((len(str(size)) - 1) // 3, len(units) - 1)
    return f"{size / 1000**power:,.0f} {units[power]}"
