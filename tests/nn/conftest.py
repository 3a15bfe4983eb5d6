"""What the tests of the layers share."""

from collections.abc import Iterator

import pytest
import torch

from elman import kernels


@pytest.fixture(scope="module", params=kernels.instruction_sets())
def instruction_set(request: pytest.FixtureRequest) -> Iterator[str]:
    """The kernels for each instruction set of this machine in turn; skipped where there are no kernels."""
    before = kernels.instruction_set()
    kernels.use(request.param)
    yield request.param
    assert before is not None
    kernels.use(before)


@pytest.fixture
def threads() -> Iterator[None]:
    """The test may change the number of threads."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)
