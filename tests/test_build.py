"""Building the kernels where the compiler fails, and with flags of the user's own."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from elman import kernels

ROOT = Path(__file__).parents[1]

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not kernels.available(), reason="there is no compiler here")]


def wheel(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "wheel", "--verbose", "--no-deps", "--no-cache-dir", "--wheel-dir"]
    command += [str(folder), "--config-settings", f"build-dir={folder}/objects", str(ROOT)]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=1800)


def test_a_compiler_that_fails_is_told_loudly(tmp_path: Path) -> None:
    done = wheel(tmp_path, CXX="/bin/false")
    assert done.returncode == 0, done.stderr
    assert "WITHOUT its compiled kernels" in done.stdout + done.stderr
    assert "ELMAN_REQUIRE_KERNELS=1" in done.stdout + done.stderr
    (made,) = tmp_path.glob("*.whl")
    assert not any("_kernels" in name for name in zipfile.ZipFile(made).namelist())


def test_kernels_can_be_required(tmp_path: Path) -> None:
    assert wheel(tmp_path, CXX="/bin/false", ELMAN_REQUIRE_KERNELS="1").returncode != 0
    assert not list(tmp_path.glob("*.whl"))


def test_flags_that_widen_every_instruction_set(tmp_path: Path) -> None:
    """The packing asks each set how wide its vectors are, whatever it is called."""
    done = wheel(tmp_path, CXXFLAGS="-march=native")
    assert done.returncode == 0, done.stderr
    (made,) = tmp_path.glob("*.whl")
    zipfile.ZipFile(made).extractall(tmp_path / "built")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "tests.built_kernels"]
    command += ["tests/runtime/test_parity.py", "tests/runtime/test_extremes.py"]
    environment = os.environ | {"ELMAN_TEST_KERNELS": str(tmp_path / "built" / "elman")}
    checked = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1800)
    assert checked.returncode == 0, checked.stdout
