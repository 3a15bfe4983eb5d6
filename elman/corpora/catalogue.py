"""The corpora that Elman knows by name: what they are, and where they can be had."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elman.corpora.builtin import python_sources
from elman.corpora.cache import cache_folder
from elman.corpora.download import Progress, copy_whole, download
from elman.corpora.readers import TextFiles
from elman.errors import UserError, nearest

GITHUB = "https://raw.githubusercontent.com"
WIKITEXT2 = f"{GITHUB}/pytorch/examples/main/word_language_model/data/wikitext-2"
NAMES = f"{GITHUB}/hunkim/PyTorchZeroToAll/master/data"


@dataclass(frozen=True)
class CorpusFile:
    """One file: its name, size and checksum once unpacked, and its public address if it has one."""

    name: str
    bytes: int
    sha256: str
    address: str | None = None


@dataclass(frozen=True)
class Corpus:
    """A corpus: facts for people, and its files by split. One without files is made on the spot."""

    name: str
    description: str
    tasks: tuple[str, ...]
    licence: str
    home: str
    files: tuple[CorpusFile, ...]
    splits: dict[str, tuple[str, ...]]
    notes: str


TINYSHAKESPEARE = Corpus(
    "tinyshakespeare",
    "1.1 million characters of Shakespeare's plays",
    ("lm",),
    "public domain",
    "https://github.com/karpathy/char-rnn",
    (
        CorpusFile(
            "input.txt",
            1_115_394,
            "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
            f"{GITHUB}/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
        ),
    ),
    {"train": ("input.txt",)},
    "no split of its own; the usual one is the first 90 % of the characters for training, the rest to validate",
)
SONNETS = Corpus(
    "sonnets",
    "Shakespeare's 154 sonnets",
    ("lm",),
    "public domain",
    "https://github.com/enerrio/Generate-Shakespeare-Sonnets",
    (
        CorpusFile(
            "sonnets.txt",
            94_082,
            "4e5e5812959a59e06ebd719641be487c64b7496ace51a9e2594b8c0dca485562",
            f"{GITHUB}/enerrio/Generate-Shakespeare-Sonnets/17398f0d878f13c20f7b93fb9201470d29888908/sonnets.txt",
        ),
    ),
    {"train": ("sonnets.txt",)},
    "one verse a line, an empty line between sonnets; no split",
)
WIKITEXT_2 = Corpus(
    "wikitext2",
    "2 million words of Wikipedia articles, rare words replaced by <unk>",
    ("lm",),
    "CC BY-SA",
    "https://github.com/pytorch/examples",
    (
        CorpusFile(
            "train.txt",
            10_797_148,
            "9e9fa1ad55b1c2c95b08e37dd8e653f638fac2c6de904b79e813611eefbc985f",
            f"{WIKITEXT2}/train.txt",
        ),
        CorpusFile(
            "valid.txt",
            1_121_681,
            "f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8",
            f"{WIKITEXT2}/valid.txt",
        ),
        CorpusFile(
            "test.txt",
            1_256_449,
            "d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0",
            f"{WIKITEXT2}/test.txt",
        ),
    ),
    {"train": ("train.txt",), "dev": ("valid.txt",), "test": ("test.txt",)},
    "words stand between blanks; published figures count one <eos> a line: 2,088,628 / 217,646 / 245,569 tokens",
)
NAMES_18 = Corpus(
    "names",
    "20,074 surnames in 18 languages",
    ("lm", "classify"),
    "none stated",
    "https://github.com/hunkim/PyTorchZeroToAll",
    (
        CorpusFile(
            "names_train.csv",
            280_352,
            "408687cf9cf917854cf9b7e860e482499009cf0b5aa7b2f2a47e2f560cbc0521",
            f"{NAMES}/names_train.csv.gz",
        ),
        CorpusFile(
            "names_test.csv",
            140_061,
            "28ad30296998ee57bb43ef9c5ed21327f0a453210a86b7d30251daa9336b2a7f",
            f"{NAMES}/names_test.csv.gz",
        ),
    ),
    {"train": ("names_train.csv",), "test": ("names_test.csv",)},
    "no header; column 1 the name, column 2 the language; 11.5 % of the test rows stand in train too",
)
PYTHON = Corpus(
    "python",
    "source code of the standard library of the Python that runs Elman, about 8 million characters",
    ("lm",),
    "PSF-2.0",
    "https://www.python.org",
    (),
    {"train": ()},
    "built in, one document a file; differs from one version of Python to the next",
)

CATALOGUE: dict[str, Corpus] = {
    corpus.name: corpus for corpus in (TINYSHAKESPEARE, SONNETS, WIKITEXT_2, NAMES_18, PYTHON)
}


def corpus(name: str) -> Corpus:
    """The entry called `name`.

    >>> corpus("names").splits["test"]
    ('names_test.csv',)
    """
    if name not in CATALOGUE:
        raise UserError(f"no corpus is called {name!r}: {nearest(name, CATALOGUE)}")
    return CATALOGUE[name]


def locate(name: str, data_dir: Path | str | None = None, progress: Progress | None = None) -> dict[str, list[Path]]:
    """The files of each split: from `data_dir`, `ELMAN_DATA` or the cache folder, else downloaded to the last.

    >>> locate("python")["train"][0].name
    '__future__.py'
    """
    entry = corpus(name)
    if not entry.files:
        return {split: python_sources() for split in entry.splits}
    places = {file.name: find_file(entry, file, data_dir) or _fetch(entry, file, progress) for file in entry.files}
    return {split: [places[file] for file in files] for split, files in entry.splits.items()}


def find_file(entry: Corpus, file: CorpusFile, data_dir: Path | str | None = None) -> Path | None:
    """Where on this machine `file` is, if it is anywhere."""
    roots = [data_dir, os.environ.get("ELMAN_DATA"), cache_folder() / "corpora"]
    for root in roots:
        place = Path(root).expanduser() / entry.name / file.name if root else None
        if place is None or not place.is_file():
            continue
        if place.stat().st_size != file.bytes:
            raise UserError(
                f"{place} is not the {entry.name} that Elman knows ({place.stat().st_size} bytes, not {file.bytes}): "
                "remove it to have it fetched, or name it as a file of your own"
            )
        return place
    return None


def export(name: str, out: Path | str, data_dir: Path | str | None = None) -> list[Path]:
    """Copy the files of a corpus into the folder `out`; the files written."""
    out = Path(out)
    written = []
    for paths in locate(name, data_dir).values():
        base = Path(os.path.commonpath([path.parent for path in paths]))
        for path in paths:
            target = out / path.relative_to(base)
            copy_whole(path, target)
            written.append(target)
    return written


def info(name: str, data_dir: Path | str | None = None) -> dict[str, Any]:
    """What is known of a corpus; sizes are counted where its files are on this machine, nothing is fetched.

    >>> info("names")["tasks"]
    ['lm', 'classify']
    """
    entry = corpus(name)
    here = all(find_file(entry, file, data_dir) for file in entry.files)
    facts: dict[str, Any] = {
        "name": entry.name,
        "description": entry.description,
        "tasks": list(entry.tasks),
        "licence": entry.licence,
        "home": entry.home,
        "notes": entry.notes,
        "here": here,
        "splits": {split: {"files": list(files)} for split, files in entry.splits.items()},
    }
    if here:
        for split, paths in locate(name, data_dir).items():
            survey = TextFiles(paths).survey()
            facts["splits"][split] = {
                "files": [str(path) for path in paths],
                "bytes": sum(path.stat().st_size for path in paths),
                "characters": survey.characters,
                "lines": survey.lines,
            }
    return facts


def _fetch(entry: Corpus, file: CorpusFile, progress: Progress | None) -> Path:
    target = cache_folder() / "corpora" / entry.name / file.name
    if file.address is None:
        raise UserError(
            f"{entry.name} has no address to download from: put {file.name} ({file.bytes} bytes, sha256 "
            f"{file.sha256[:12]}...) at {target}"
        )
    return download(file.address, target, file.sha256, progress)
