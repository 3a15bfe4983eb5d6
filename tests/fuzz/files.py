"""Wrong files: what is no text, no table, no file at all, for every task, to learn from, to score and to predict."""

import gzip
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.fuzz.case import Case, Command, Place
from tests.fuzz.world import DATA, OF_TEXT, PREDICTED, TASKS, settings

SUFFIX = {task: name.partition(".")[2] for task, name in DATA.items()}
USES = ("train", "dev", "test", "evaluate", "predict")
DEEP = "[" * 100_000

ANY = {
    "binary": bytes(range(256)) * 20,
    "latin-1": "naïve,café\nseñor,über\n".encode("latin-1") * 20,
    "utf-16": "one,two\nthree,four\n".encode("utf-16") * 20,
    "utf-16-bare": ("one,two\nthree,four\n" * 20).encode("utf-16-le"),
    "utf-32": ("one,two\nthree,four\n" * 20).encode("utf-32"),
    "nul": b"one\0,two\nthree,four\n" * 20,
    "empty": b"",
    "one-byte": b"a",
    "line-end": b"\n",
    "blank-lines": b"\n \n\t\n" * 50,
    "one-line": b"one two",
    "surrogates": b"\xed\xa0\x80,one\n" * 20,
    "overlong": b"\xc0\xaf,one\n" * 20,
    "cut-letter": "one,zwölf\n".encode()[:6],
    "png": b"\x89PNG\r\n\x1a\n" + bytes(500),
    "zip": b"PK\x03\x04" + bytes(500),
}
"""Contents that are wrong for every task, or may be."""
UNDECODABLE = {"binary", "latin-1", "utf-16", "utf-32", "surrogates", "overlong", "cut-letter", "png"}
REFUSED = UNDECODABLE | {"empty", "blank-lines", "zip"}
"""What nothing can be learnt from, nor scored."""

ODD = {
    "bom": b"\xef\xbb\xbfone,two\nthree,four\n" * 20,
    "returns": b"one,two\rthree,four\r" * 20,
    "separators": "one\u2028two,a\nthree\x0cfour\x85,b\n".encode() * 20,
    "huge-line": b"a" * 3_000_000,
    "huge-words": b"abc " * 500_000,
    "emoji": "\U0001f600\u200d\U0001f600,a\n\u0301,b\n".encode() * 20,
    "wide": (",".join(["x"] * 5000) + "\n").encode() * 3,
    "controls": b"\x01\x02\x1b[31m,a\n\x7f,b\n" * 20,
}

TABLES = {
    "header-only": "text,label\n",
    "no-label": "text,label\none,\ntwo,\n" * 10,
    "no-text": "text,label\n,a\n,b\n",
    "fewer-columns": "text,label\none,a\ntwo\nthree,b\n",
    "more-columns": "text,label\none,a\ntwo,b,c,d\nthree,b\n",
    "unclosed-quote": 'text,label\n"one,a\ntwo,b\nthree,a\n',
    "same-headers": "text,text\none,a\ntwo,b\n" * 5,
    "empty-header": ",\none,a\ntwo,b\n",
    "one-class": "text,label\none,a\ntwo,a\nthree,a\nfour,a\n",
    "one-row": "text,label\none,a\n",
    "two-rows": "text,label\none,a\ntwo,b\n",
    "all-different": "text,label\n" + "".join(f"t{i},l{i}\n" for i in range(40)),
    "stray-quote": 'text,label\none"x",a\n"two"y,b\n',
    "semicolons": "text;label\none;a\ntwo;b\n" * 5,
    "long-field": "text,label\n" + "y" * 3_000 + ",a\nx,b\n",
    "long-header": "y" * 3000 + ",label\nx,b\nz,c\n",
    "unknown-label": "name,language\nulf,nowhere\n",
}
LINES = {
    "broken": '{"text": "a", "label": "b"}\n{"text": \n',
    "array": '["a", "b"]\n',
    "numbers": "1\n2\n",
    "null": "null\n",
    "nested": '{"text": {"a": [1]}, "label": {"b": 2}}\n',
    "surrogate": '{"text": "\\ud800", "label": "a"}\n{"text": "b", "label": "b"}\n' * 10,
    "surrogate-label": '{"text": "x", "label": "\\ud800"}\n{"text": "b", "label": "b"}\n' * 10,
    "surrogate-key": '{"\\udfff": "x", "label": "a"}\n',
    "number-label": '{"text": "x", "label": 1}\n{"text": "y", "label": 2}\n' * 10,
    "not-a-number": '{"text": NaN, "label": Infinity}\n' * 10,
    "number-text": '{"text": 3, "label": "a"}\n' * 10,
    "lacking": '{"text": "a"}\n{"label": "b"}\n',
    "no-fields": "{}\n{}\n",
    "deep": DEEP + "\n",
    "deep-closed": '{"text": ' + DEEP + "]" * len(DEEP) + "}\n",
    "long-number": '{"text": ' + "9" * 10_000 + "}\n",
    "same-keys": '{"text": "a", "text": "b", "label": "c", "label": "d"}\n' * 10,
    "list-label": '{"text": "a", "label": ["b", 3, null]}\n' * 10,
    "tokens": '{"tokens": ["a", 3, null], "tags": ["O", "O"]}\n' * 5,
    "fewer-tags": '{"tokens": ["a", "b"], "tags": ["O"]}\n' * 5,
    "no-tokens": '{"tokens": [], "tags": []}\n' * 5,
    "text-tokens": '{"tokens": "a b", "tags": "O O"}\n' * 5,
    "surrogate-tokens": '{"tokens": ["\\ud800"], "tags": ["O"]}\n' * 5,
    "surrogate-pairs": '{"source": "\\ud800", "target": "\\udc00x"}\n{"source": "a", "target": "b"}\n' * 20,
    "number-pairs": '{"source": 1, "target": [2]}\n' * 5,
}
COLUMNS = {
    "one-column": "Ada\nwent\n\nto\n",
    "mixed-columns": "Ada B-PER\nwent to O\n. O x y\n\n",
    "last-lacks": "Ada B-PER\nwent\n\nto O\n",
    "only-comments": "# one\n# two\n\n",
    "only-docstarts": "-DOCSTART- O\n\n-DOCSTART- O\n\n",
    "inside-first": "Ada I-PER\nwent I-LOC\n\n" * 8,
    "wild-tags": "Ada -\nwent B-\nto -PER\nOslo B--\n. \u00a0\n\n" * 8,
    "one-sentence": "Ada B-PER\nwent O\n",
    "one-tag": "Ada O\nwent O\n\n" * 8,
    "tabs-and-blanks": "Ada\tB-PER\nwent O\nto \t O\n\n" * 8,
    "long-word": "a" * 100_000 + " O\nb O\n\n" * 2,
    "long-sentence": "Ada B-PER\nwent O\n" * 3000,
    "many-tags": "".join(f"w{i} T{i}\n\n" for i in range(300)),
    "unknown-tag": "Ada B-NOWHERE\nwent O\n\n" * 4,
    "blanks": "   \n\t\n \n",
}
UNIVERSAL = {
    "nine-columns": "1\tAda\tAda\tPROPN\t_\t_\t0\troot\t_\n\n",
    "wrong-ids": "x\tAda\t_\tPROPN\t_\t_\t0\troot\t_\t_\n7\tx\t_\tX\t_\t_\t0\troot\t_\t_\n\n",
    "only-ranges": "1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_\n1.1\te\t_\t_\t_\t_\t_\t_\t_\t_\n\n",
    "no-tags": "1\tAda\t_\t_\t_\t_\t0\troot\t_\t_\n\n" * 5,
    "spaces": "1 Ada Ada PROPN _ _ 0 root _ _\n\n" * 5,
}
PAIRS = {
    "one-column": "abc\ndef\n" * 20,
    "three-columns": "a\tb\tc\nd\te\tf\n" * 20,
    "mixed": "a\tb\nc\nd\te\tf\n" * 20,
    "empty-source": "\tb\n\td\n" * 20,
    "empty-target": "a\t\nb\t\n" * 20,
    "all-same": "a\ta\n" * 40,
    "one-pair": "a\tb\n",
    "two-pairs": "a\tb\nc\td\n",
    "long-pair": "a " * 2000 + "\tb\n" + "c\td\n" * 30,
    "quotes": '"a\tb\n"c"\td"\n' * 20,
}


def _wave(odd: str | None = None, row: int = 31, steps: int = 60) -> str:
    """A table of a time and a number, with a row that is odd."""
    rows = [f"{step},{3 + step % 8}" for step in range(1, steps + 1)]
    if odd is not None:
        rows[row - 1] = odd
    return "\n".join(["day,height", *rows, ""])


NO_SERIES = {
    "text": _wave("31,many"),
    "first-text": _wave("1,many", 1),
    "gap": _wave("31,"),
    "first-gap": _wave("1,", 1),
    "last-gap": _wave("60,", 60),
    "all-gaps": "day,height\n" + "".join(f"{day},NA\n" for day in range(60)),
    "not-a-number": _wave("31,nan"),
    "infinite": _wave("31,-inf"),
    "too-large": _wave("31,1e999"),
    "largest": "height\n" + "1.7e308\n-1.7e308\n" * 30,
    "hexadecimal": _wave("31,0x10"),
    "flag": _wave("31,true"),
    "decimal-comma": _wave('31,"3,5"'),
    "thousands": _wave("31,3 500"),
    "unit": _wave("31,5kg"),
    "jump": _wave("99,3"),
    "between": _wave("31.5,3"),
    "backwards": "day,height\n" + "".join(f"{60 - day},{day % 7}\n" for day in range(60)),
    "same-times": "day,height\n" + "".join(f"7,{day % 7}\n" for day in range(60)),
    "no-time": _wave(",3"),
    "word-time": _wave("Q1,3"),
    "huge-time": _wave("1e308,3"),
    "date-among-numbers": _wave("2001-02-03,3"),
    "more-columns": _wave("31,3,4"),
    "fewer-columns": _wave("31"),
    "unclosed-quote": _wave('"31,3'),
    "header-only": "day,height\n",
    "times-only": "day\n" + "".join(f"{day}\n" for day in range(60)),
    "blank-line": "height\n" + "3\n4\n5\n\n" * 15,
}
SERIES = {
    "one-row": _wave(steps=1),
    "short": _wave(steps=3),
    "other-columns": "day,a,b\n" + "".join(f"{day},{day % 7},{day % 5}\n" for day in range(60)),
    "many-columns": "\n".join([",".join(f"c{column}" for column in range(200)), *[",".join("12" * 100)] * 60, ""]),
    "nearly-short": _wave(steps=20),
    "decimal-commas": "day;height\n" + "".join(f"{day};3,{day}\n" for day in range(60)),
    "constant": "day,height\n" + "".join(f"{day},7\n" for day in range(60)),
    "zeros": "height\n" + "0\n" * 60,
    "large": "height\n" + "9e99\n-9e99\n" * 30,
    "smallest": "height\n" + "5e-324\n0\n1e-320\n" * 20,
    "steep": "height\n" + "".join(f"1e{step // 4}\n" for step in range(60)),
    "outlier": _wave("31,1e90"),
    "no-dates": "date,height\n" + "0000-00-00,3\n2001-02-30,4\n" * 30,
    "zones": "date,height\n" + "".join(f"2001-01-01T{hour:02d}:00+00:30,{hour % 5}\n" for hour in range(24)),
    "same-headers": "x,x\n" + "1,2\n2,3\n" * 30,
    "no-headers": ",\n" + "1,2\n2,3\n" * 30,
    "underscores": _wave("31,1_0"),
    "long": _wave(steps=5000),
}
NO_NUMBERS = {
    "long-integer": '{"x": 3}\n' * 30 + '{"x": ' + "9" * 400 + "}\n",
    "other-field": '{"x": 3}\n' * 30 + '{"y": 3}\n',
    "null-number": '{"x": 3}\n' * 30 + '{"x": null}\n',
    "list-number": '{"x": 3}\n' * 30 + '{"x": [3]}\n',
    "infinite-number": '{"x": 3}\n' * 30 + '{"x": Infinity}\n',
    "object-time": '{"time": {"a": 1}, "x": 3}\n{"time": 4, "x": 3}\n' * 15,
}
NUMBERS = {
    "flags": '{"x": true}\n{"x": false}\n' * 20,
    "text-numbers": '{"x": "3"}\n{"x": " 4 "}\n' * 20,
}

NOT_FOR = {
    "classify": {"line-end", "one-byte", "one-line", "huge-line", "huge-words"},
    "tag": {*ANY, *ODD} - {"one-line", "huge-words"},
    "translate": {*ANY, *ODD},
    "series": {*ANY, *ODD},
    "answer": {*ANY, *ODD},
    "caption": {*ANY, *ODD},
    "tree": {*ANY, *ODD},
}
"""Of the contents for every task those without the columns that one needs."""
NO_RECORDS = {"broken", "array", "numbers", "null", "nested", "lacking", "no-fields", "deep", "deep-closed"}
NO_TEXT = {"surrogate", "surrogate-key", "tokens", "fewer-tags", "no-tokens", "surrogate-tokens"}
NO_RECORDS_OF = {
    "lm": NO_RECORDS | NO_TEXT | {"text-tokens", "surrogate-pairs", "number-pairs"},
    "classify": NO_RECORDS | NO_TEXT | {"text-tokens", "surrogate-pairs", "number-pairs", "surrogate-label"},
    "tag": {*LINES} - {"no-tokens", "text-tokens"},
    "translate": NO_RECORDS | NO_TEXT | {"surrogate-label", "surrogate-pairs"},
    "series": {*LINES, *NO_NUMBERS} - {"number-label", "number-text", "number-pairs"},
}
"""JSON without the fields that a task needs, or with something else in them."""
NO_TABLE = {
    "csv": {"header-only", "fewer-columns", "more-columns", "unclosed-quote", "stray-quote"},
    "conll": {"one-column", "mixed-columns", "last-lacks", "only-comments", "only-docstarts", "blanks"},
    "conllu": {"nine-columns", "only-ranges", "spaces"},
    "tsv": {"one-column", "mixed"},
}

TOO_SHORT = {"one-row", "short", "number-text", "number-pairs"}
"""Series that a forecaster can be asked about, and cannot learn from."""
OTHER_COLUMNS = {"other-columns", "many-columns"}
"""More of them than the small model has."""


def cases() -> list[Case]:
    """All of them."""
    found: list[Case] = []
    for task in TASKS:
        for use in USES:
            if use == "predict" and task not in PREDICTED:
                continue
            for name, content in (ANY | ODD).items():
                if (task, use) == ("translate", "predict") and name.startswith("huge"):
                    continue  # right, and takes minutes
                any_text = use == "predict" and task in OF_TEXT
                refused = name in (UNDECODABLE if any_text else REFUSED | NOT_FOR.get(task, set()))
                refused = refused and (task, name) != ("lm", "blank-lines")  # line ends are characters, too
                refused |= task == "classify" and use in (
                    "dev",
                    "test",
                    "evaluate",
                )  # columns that were not learnt from
                found.append(_case(task, use, name, SUFFIX[task], content, refused))
            found += _places(task, use)
            found += _packed(task, use)
            if (task, use) == ("lm", "evaluate"):
                continue  # the model is of running text, which everything is
            for suffix, kind in _formats(task).items():
                for name, text in kind.items():
                    refused = _has_no_records(task, use, suffix, name)
                    found.append(_case(task, use, f"{suffix}-{name}", suffix, text.encode(), refused))
    return [*found, *_parallel(), *_piped()]


def _has_no_records(task: str, use: str, suffix: str, name: str) -> bool:
    """Whether nothing of what a task needs is there, or not in every record."""
    if task == "series":
        short, others = name in TOO_SHORT and use != "predict", name in OTHER_COLUMNS and use != "train"
        return short or others or name in (NO_RECORDS_OF[task] if suffix == "jsonl" else NO_SERIES)
    if task in ("answer", "caption"):
        return use != "predict"  # nothing names an image
    if use == "predict":
        return suffix == "jsonl" and name in NO_RECORDS - {"lacking"}
    if (task, name) == ("translate", "header-only") and use != "train":
        return False  # of no names that are known: a pair
    if task == "classify" and use != "train" and name != "unknown-label":
        return True  # the columns, or the labels, are others than those that were learnt from
    return name in (NO_RECORDS_OF[task] if suffix == "jsonl" else NO_TABLE[suffix])


def _formats(task: str) -> dict[str, dict[str, str]]:
    """The kinds of file that a task reads, by their ending."""
    return {
        "lm": {"csv": TABLES, "jsonl": LINES},
        "classify": {"csv": TABLES, "jsonl": LINES},
        "tag": {"conll": COLUMNS, "conllu": UNIVERSAL, "jsonl": LINES},
        "translate": {"tsv": PAIRS, "jsonl": LINES, "csv": TABLES},
        "series": {"csv": NO_SERIES | SERIES, "jsonl": LINES | NO_NUMBERS | NUMBERS},
        "tree": {},  # `tests/records/test_treebank.py` has what is wrong with trees
        "embed": {},  # which takes every file for running text
    }.get(task, {"csv": TABLES, "jsonl": LINES})


def _case(task: str, use: str, name: str, suffix: str, content: bytes, refused: bool) -> Case:
    def make(place: Place) -> Command:
        return _command(place, task, use, place.write(f"bad.{suffix}", content))

    return Case(f"{task}-{use}-{name}", make, refused=refused)


def _command(place: Place, task: str, use: str, path: str) -> Command:
    """A command that uses a file in one of the ways that there are."""
    if use == "evaluate":
        return Command(["evaluate", place.world.model(task), path])
    if use == "predict":
        more = ["--json"] if place.chance.random() < 0.5 else []
        return Command(["predict", place.world.model(task), path, *more])
    data = ["--train", path] if use == "train" else ["--train", place.world.data(task), f"--{use}", path]
    lines = ["-s", "data.unit=line"] if task == "lm" and path.endswith(("csv", "jsonl")) else []
    return Command(["train", task, *data, "--out", place.out, *settings(task), *lines])


def _places(task: str, use: str) -> Iterator[Case]:
    """What is no file."""
    makers: dict[str, Callable[[Path], object]] = {
        "missing": lambda path: None,
        "empty-folder": lambda path: path.mkdir(),
        "folder-of-nothing": lambda path: (path / "inner").mkdir(parents=True),
        "loop": lambda path: path.symlink_to(path),
        "loose-link": lambda path: path.symlink_to(path.parent / "nowhere"),
        "fifo": lambda path: os.mkfifo(path),
        "null": lambda path: path.symlink_to("/dev/null"),
        "unreadable": lambda path: (path.write_text("one,a\n"), path.chmod(0)),
    }
    if os.geteuid() == 0:
        del makers["unreadable"]  # root may read everything
    for name, make_it in makers.items():

        def make(place: Place, make_it: Callable[[Path], object] = make_it) -> Command:
            path = place.folder / f"bad.{SUFFIX[task]}"
            make_it(path)
            return _command(place, task, use, str(path))

        yield Case(f"{task}-{use}-{name}", make, refused=not (name == "null" and use == "predict"))


def _packed(task: str, use: str) -> Iterator[Case]:
    """Files that are packed, or say so."""
    whole = gzip.compress(b"one\ta\ntwo\tb\n" * 50, mtime=0)
    contents = {
        "no-gzip": b"one,a\n" * 20,
        "cut-gzip": whole[:-20],
        "flipped-gzip": whole[:20] + b"\xff\xff" + whole[22:],
    }
    for name, content in contents.items():
        # What a file is packed in is told by its bytes, not by its name: the plain one is a column of texts.
        refused = name != "no-gzip" or (task != "lm" and use != "predict")
        yield _case(task, use, name, f"{SUFFIX[task]}.gz", content, refused)


def _parallel() -> Iterator[Case]:
    """Two files that should have as many lines as each other, or should be two."""
    sides = {
        "longer-source": ("a\nb\nc\n" * 20, "a\nb\n" * 20),
        "longer-target": ("a\nb\n" * 20, "a\nb\nc\n" * 20),
        "empty-source": ("", "a\n" * 20),
        "empty-target": ("a\n" * 20, ""),
        "both-empty": ("", ""),
        "blank-lines": ("\n" * 20, "\n" * 20),
    }
    for use in ("train", "dev", "test"):
        for name, (source, target) in sides.items():

            def make(place: Place, use: str = use, source: str = source, target: str = target) -> Command:
                paths = [place.write("bad.xx", source), place.write("bad.yy", target)]
                good = [str(place.world.root / f"parallel.{side}") for side in ("source", "target")]
                data = [part for path in paths for part in (f"--{use}", path)]
                data += [] if use == "train" else [part for path in good for part in ("--train", path)]
                return Command(["train", "translate", *data, "--out", place.out, *settings("translate")])

            yield Case(f"parallel-{use}-{name}", make)
    for count in (1, 3, 4):

        def several(place: Place, count: int = count) -> Command:
            paths = [place.write(f"bad.x{number}", "a\nb\n" * 20) for number in range(count)]
            data = [part for path in paths for part in ("--train", path)]
            return Command(["train", "translate", *data, "--out", place.out, *settings("translate")])

        yield Case(f"parallel-{count}-files", several, refused=False)


def _piped() -> Iterator[Case]:
    """The same by standard input."""
    contents = {name: content for name, content in (ANY | ODD).items() if name not in ("huge-line", "huge-words")}
    contents |= {name: text.encode() for name, text in LINES.items() if "deep" not in name}
    contents["number-keys"] = json.dumps({"1": 2}).encode()
    for task in PREDICTED:
        for number, (name, content) in enumerate(contents.items()):
            more = ([], ["--json"], ["-f", "jsonl"], ["-f", "csv", "-c", "text"], ["--on-error", "skip"])[number % 5]

            def make(place: Place, task: str = task, content: bytes = content, more: list[str] = more) -> Command:
                return Command(["predict", place.world.model(task), *more], content)

            yield Case(f"{task}-piped-{name}", make, refused=name in UNDECODABLE and "skip" not in more)
    for name, content in ANY.items():
        yield Case(
            f"lm-prompt-{name}",
            lambda place, content=content: Command(  # type: ignore[misc]
                ["generate", place.world.model("lm"), "-n", "3", "--seed", "1", "-p", "-"], content
            ),
            refused=name in UNDECODABLE,
        )
