"""Wrong recipes: every key of every task with wrong values, unknown keys, broken TOML, what does not go together."""

import types
import typing
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import BaseModel

from elman.tasks import TASKS
from elman.train.recipe import known_keys
from tests.fuzz.case import Case, Command, Place
from tests.fuzz.world import settings

NO_NUMBER = ("true", '"many"', "[]", "[1, 2]", "{}", "{a = 1}", '""', "nan", "inf", "-inf", "1979-05-27", '"１x"')
NO_INTEGER = (*NO_NUMBER, "1.5", "-0.5", "1e400")
NO_WORD = ('"sing"', "3", "[]", "{}", "true", '""', "nan", '"LSTM "', "1979-05-27")
NO_FLAG = ('"maybe"', "2", "[]", "{}", "nan", '""', "-1")
NO_TEXT = ("[]", "{}", "true", "[1]", "1979-05-27")
NO_TEXTS = ("3", "{}", "true", "[3]", "[[]]", "1.5", "[true]")
NO_COLUMNS = ("{}", "true", "[[]]", "[true]", "[{}]", "1979-05-27")
COLUMNS = ("data.target", "data.covariates")
LARGE = ("1000000", "2147483648", "1000000000000", "99999999999999999999999999")
ODD = ('"é\\u0000"', '"none"', '" "', '"x"', '"' + "y" * 500 + '"')

BROKEN = (
    "[model\nhidden = 3\n",
    "[model]\nhidden 3\n",
    "[model]\nhidden = \n",
    "[model]\nhidden = 3\nhidden = 4\n",
    "[model]\n[model]\n",
    "hidden = [1, 2\n",
    'a = "unclosed\n',
    "[model]\nhidden = 03\n",
    "= 3\n",
    "\x00",
    "model = 3\n",
    "model = [1]\n",
    "[[model]]\nhidden = 3\n",
    "[train.warmup]\na = 1\n",
    "[train.warmup.deep]\na = 1\n",
    "task = 3\n",
    "task = []\n",
    'task = ""\n',
    "task = {a = 1}\n",
    'task = "sing"\n',
    "compare = 3\n",
    "[compare]\nseeds = 3\n",
    "[modle]\nhidden = 3\n",
    "x = " + "[" * 5000 + "\n",
    "x = " + "[" * 300 + "]" * 300 + "\n",
    "a" * 400 + " = 1\n",
    "a = " + "9" * 5000 + "\n",
    '"" = 1\n',
    '"model.hidden" = 3\n',
    "[model]\nhidden = '''\n",
)
CONTENTS = (
    b"",
    b"\xff\xfe[\x00",
    b"caf\xe9 = 1\n",
    b"\xef\xbb\xbf[model]\nhidden = 4\n",
    bytes(range(256)),
    b"\r[x]\r",
)
SETTINGS = (
    "",
    "=",
    "=3",
    "hidden",
    "model",
    "model=3",
    "model.=3",
    ".hidden=3",
    "model..hidden=3",
    "model.hidden.x=3",
    "model.hidden",
    "foo=1",
    "task=3",
    "task=sing",
    "task.inner=3",
    "model hidden=3",
    "modèle.hidden=3",
    "model.\udcff=3",
    "a.b.c.d.e=1",
    "model.foo=1",
    "compare.seeds=3",
    "train=x",
    "data=[1]",
    "x" * 3000 + "=1",
    "model.hidden=" + "9" * 5000,
    "model.hidden=" + "[" * 2000,
    "model={hidden='x'}",
)
TOGETHER = {
    "lm": (
        "data.label_column=label",
        "model.nonlinearity=relu",
        "model.cell=gru model.forget_bias=1",
        "model.cell=gru model.projection=4",
        "model.cell=lstm model.hidden=4 model.projection=4",
        "model.tied=true model.embedding=0",
        "model.tied=true model.softmax=adaptive",
        "model.kind=ngram model.direction=backward",
        "model.kind=ngram data.unit=line data.label_column=label",
        "text.kind=bytes text.size=20",
        "text.kind=bpe text.size=257",
        'text.specials=["<unk>"]',
        'text.specials=["a b"]',
        "data.encoding=utf-99",
        "data.encoding=rot13",
        "data.encoding=hex",
        "data.corpus=no-such-corpus",
        "train.betas=[0.9]",
        "train.betas=[0.9,1.5]",
        "train.betas=[1,2,3]",
    ),
    "classify": (
        "data.folds=1",
        "data.folds=3 data.test_fraction=0.2",
        "data.fold=4 data.folds=3",
        "data.dev_fraction=0.6 data.test_fraction=0.6",
        "data.several=false data.separator=;",
        "model.characters=4",
        'loss.class_weights=["north"]',
        'loss.class_weights=["north=-1"]',
        'loss.class_weights=["north=nan"]',
        "loss.class_weights=heavy",
        'loss.class_weights=["nowhere=2"]',
        "data.text_column=nothing",
        "data.label_column=nothing",
        "data.text_column=9",
        "data.text_column=0",
        "data.text_column=-1",
        "data.text_column=name data.label_column=name",
        "data.format=trees",
        "data.format=folders",
        "data.format=jsonl",
        "data.encoding=klingon",
    ),
    "tag": (
        "model.embedding=0 model.character_hidden=0 model.case_embedding=0",
        "model.vectors_frozen=true",
        "text.prefixes=[0]",
        "text.prefixes=[2,2]",
        "model.vectors=no-such-file.txt",
        "data.token_column=9",
        "data.tag_column=9",
        "data.token_column=0",
        "data.token_column=word",
        "data.token_column=1 data.tag_column=1",
        "data.format=jsonl",
        "data.format=conllu data.tag_column=nothing",
        "data.scheme=BIOES",
        "data.encoding=klingon",
    ),
    "translate": (
        "model.tied=all",
        "text.joint=true text.target_kind=words",
        "model.hidden=9",
        "model.hidden=8 model.encoder_hidden=3 model.attention=dot",
        "model.hidden=8 model.encoder_hidden=3 model.bridge=copy",
        "model.attention=fixed-length",
        "data.dev_fraction=0.6 data.test_fraction=0.6",
        "text.same_as=no-such-folder",
        "data.source=9",
        "data.source=0",
        "data.source=1 data.target=1",
        "data.source=nothing",
        "data.format=parallel",
        "data.format=jsonl",
        "data.format=cmudict",
        "data.format=trees",
        "data.format=headings",
        "data.format=dialogue data.source=en",
        "report.tokenize=klingon",
        "data.encoding=klingon",
    ),
    "series": (
        "data.target=nothing",
        "data.target=9",
        "data.target=0",
        "data.target=day,height",
        "data.target=['height','height']",
        "data.target=['height','nothing']",
        "data.target=height data.covariates=height",
        "data.covariates=nothing",
        "data.covariates=height",
        "data.time=nothing",
        "data.time=height",
        "data.key=nothing",
        "data.key=day",
        "data.label=nothing",
        "data.label=height",
        "data.key=day data.label=day",
        "data.label=height data.target=height",
        "data.missing=guess",
        "data.uneven=perhaps",
        "data.horizon=100",
        "data.context=1000",
        "data.season=1000",
        "data.dev_fraction=0.6 data.test_fraction=0.6",
        "data.dev_fraction=0.99",
        "model.quantiles=[0.9,0.1]",
        "model.quantiles=[0.5,0.5]",
        "model.quantiles=[0,1]",
        "model.quantiles=[nan]",
        "model.quantiles=[]",
        "model.cell=rnn model.forget_bias=1",
        "model.nonlinearity=relu",
        "data.corpus=no-such-corpus",
        "data.encoding=klingon",
    ),
    "answer": (
        "model.features=nothing",
        "model.features=nothing.npy",
        "model.features=efficientnet-lite0 model.image_size=100",
        "data.images=no-such-folder",
        "data.image=nothing",
        "data.question=nothing",
        "data.question=9",
        "data.answer=nothing",
        "data.question=question data.answer=question",
        "data.corpus=no-such-corpus",
        "data.encoding=klingon",
    ),
    "caption": (
        "model.features=nothing",
        "model.features=nothing.npy",
        "model.features=efficientnet-lite0 model.image_size=100",
        "model.image=first model.decoder=luong",
        "model.image=first model.gate=true",
        "model.image=first loss.doubly_stochastic=1",
        "model.attention=dot model.image_hidden=7",
        "model.learned_state=true",
        "data.images=no-such-folder",
        "data.image=nothing",
        "data.caption=9",
        "data.image=caption data.caption=caption",
        "data.corpus=no-such-corpus",
        "data.encoding=klingon",
    ),
    "tree": (
        "model.network=none",
        "model.parser=left",
        "model.vectors_frozen=true",
        "model.vectors=no-such-folder",
        "model.sparse=true train.weight_decay=0.1",
        "data.format=csv",
        "data.format=conllu",
        "data.classes=binary data.learned=some",
        "text.min_count=100000",
        "data.corpus=no-such-corpus",
        "data.encoding=klingon",
    ),
    "embed": (
        "model.buckets=10",
        "model.ngram_max=2",
        "text.kind=characters text.phrases=1",
        "text.min_count=100000",
        "train.optimizer=adam",
        "train.momentum=0.9",
        "train.clip_norm=1",
        "train.average=ema",
        "train.patience=2",
        "model.objective=none",
        "data.dev=no-such-file.txt",
        "data.corpus=no-such-corpus",
        "data.encoding=klingon",
    ),
}
MAY_WORK = (
    "data.scheme",
    "data.format=cmudict",
    "data.token_column=1",
    "data.source=1 ",
    "data.target=['height','height']",
    "data.target=height ",
    "data.key=day ",
    "data.label=height ",
    "data.season",
    "data.dev_fraction=0.99",
    "model.quantiles=[]",
)
MAY_WORK_FOR = {"series": ("data.dev_fraction=0.6 data.test_fraction=0.6",)}  # shares of what remains


def cases() -> list[Case]:
    """All of them."""
    found: list[Case] = []
    for task, described in TASKS.items():
        for key in known_keys(described.Recipe):
            if key not in ("task", "data.train"):  # which --train takes the place of
                found += _key(task, key, _kind(described.Recipe, key))
        found += _keys_that_are_none(task)
        for number, text in enumerate(SETTINGS):
            found.append(Case(f"{task}-setting-{number}", _train(task, ["-s", text])))
        for number, text in enumerate(TOGETHER.get(task, ())):
            more = [part for setting in text.split(" ") if "=" in setting for part in ("-s", setting)]
            if text.endswith('b"]'):
                more = ["-s", text]
            refused = not text.startswith(MAY_WORK) and text not in MAY_WORK_FOR.get(task, ())
            found.append(Case(f"{task}-together-{number}", _train(task, more), refused=refused))
        for number, text in enumerate(BROKEN):
            found.append(Case(f"{task}-broken-{number}", _train_by(task, text.encode()), refused=text != "task = 3\n"))
        for number, content in enumerate(CONTENTS):
            found.append(Case(f"{task}-content-{number}", _train_by(task, content), refused=False))
    return [*found, *_compare()]


def _key(task: str, key: str, kinds: set[Any]) -> Iterator[Case]:
    """A key with values of the wrong type, which have to be refused by name, and with odd ones of the right type."""
    slug = f"{task}-{key}"
    for number, value in enumerate(NO_COLUMNS if key in COLUMNS and tuple in kinds else _wrong(kinds)):
        make = _by_either(task, key, value, train="no-such-file.txt")
        yield Case(f"{slug}-wrong-{number}", make, mentions=(key.rpartition(".")[2],))
    if kinds & {int, float}:
        odd = ("-1", "0", *LARGE[:: 1 if key.startswith(("model", "batch")) else 2])
    else:
        odd = ODD[:3] if str in kinds and not key.startswith("data.t") else ()
    if key in ("train.epochs", "train.steps", "train.threads", "train.accumulate"):  # right, and slow
        odd = ()
    for number, value in enumerate(odd):
        yield Case(f"{slug}-odd-{number}", _by_either(task, key, value), refused=False, fails=value in LARGE)


def _wrong(kinds: set[Any]) -> tuple[str, ...]:
    """TOML values that none of the types of a key takes."""
    if tuple in kinds:
        return NO_TEXTS
    if int in kinds:
        return NO_INTEGER
    if float in kinds:
        return NO_NUMBER
    if bool in kinds:
        return NO_FLAG
    return NO_TEXT if str in kinds else NO_WORD


def _kind(recipe: type[BaseModel], key: str) -> set[Any]:
    """The types that a key takes; a choice of words has none of its own."""
    section, _, name = key.partition(".")
    inner = recipe.model_fields[section].annotation
    assert isinstance(inner, type) and issubclass(inner, BaseModel)
    return set(_parts(inner.model_fields[name].annotation))


def _parts(annotation: Any) -> Iterator[Any]:
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        yield from _parts(typing.get_args(annotation)[0])
    elif origin in (types.UnionType, typing.Union):
        for part in typing.get_args(annotation):
            yield from _parts(part)
    elif annotation is not types.NoneType:
        yield origin or annotation


def _keys_that_are_none(task: str) -> Iterator[Case]:
    known = [key for key in known_keys(TASKS[task].Recipe) if "." in key]
    for number, key in enumerate(known[::3]):
        wrong = key[:-1] if key[:-1] not in known else key + "x"
        yield Case(f"{task}-unknown-{number}", _by_either(task, wrong, "1"), mentions=(wrong,))


def _train(task: str, more: list[str], train: str | None = None) -> Callable[[Place], Command]:
    def make(place: Place) -> Command:
        data = place.world.data(task) if train is None else train
        return Command(["train", task, "--train", data, "--out", place.out, *settings(task), *more])

    return make


def _train_by(task: str, content: bytes) -> Callable[[Place], Command]:
    """The same with a recipe's file."""

    def make(place: Place) -> Command:
        path = place.write("recipe.toml", content)
        return Command(["train", task, path, "--train", place.world.data(task), "--out", place.out, *settings(task)])

    return make


def _by_either(task: str, key: str, value: str, train: str | None = None) -> Callable[[Place], Command]:
    """A key by `-s` or in a recipe's file, by chance."""

    def make(place: Place) -> Command:
        if place.chance.random() < 0.5:
            return _train(task, ["-s", f"{key}={value}"], train)(place)
        section, _, name = key.partition(".")
        path = place.write("recipe.toml", f"[{section}]\n{name} = {value}\n")
        data = place.world.data(task) if train is None else train
        short = [part for part in settings(task) if not part.startswith(f"{key}=") and part != "-s"]
        more = [part for setting in short for part in ("-s", setting)]
        return Command(["train", task, path, "--train", data, "--out", place.out, *more])

    return make


def _compare() -> Iterator[Case]:
    """`elman compare`, whose recipes have a table of their own."""
    tables = (
        "seeds = 0",
        'seeds = "x"',
        "seeds = []",
        "vary = 3",
        "vary = []",
        'vary = ["x"]',
        "vary = {}",
        "vary = [3]",
    )
    tables += ('vary = {"model.hidden" = 3}', 'vary = {"model.hiden" = [1]}', 'vary = {"model.hidden" = []}', "x = 1")
    tables += ("variants = 3", 'variants = ["=1"]', "variants = [[]]", "variants = {a = 3}", "variants = {a = {x = 1}}")
    for number, line in enumerate(tables):

        def by_recipe(place: Place, line: str = line) -> Command:
            path = place.write("recipe.toml", f'task = "classify"\n[compare]\n{line}\n')
            data = ["-s", f"data.train={place.world.data('classify')}"]
            return Command(["compare", path, "--out", place.out, *data])

        yield Case(f"compare-table-{number}", by_recipe)
    varied = (
        "",
        "=",
        "model.hidden",
        "model.hidden=",
        "model.hidden=,",
        "model.hiden=1,2",
        "foo=1",
        "model.hidden=x,y",
    )
    varied += ("train.seed=1,2", "model.hidden=[", "model=1,2", "task=lm,tag", "model.hidden=1,-1", "data.train=a,b")
    for number, text in enumerate(varied):

        def by_option(place: Place, text: str = text) -> Command:
            path = place.write("recipe.toml", 'task = "classify"\n')
            data = ["-s", f"data.train={place.world.data('classify')}", *settings("classify")]
            return Command(["compare", path, "--vary", text, "--seeds", "1", "--out", place.out, *data])

        yield Case(f"compare-vary-{number}", by_option, refused=text != "train.seed=1,2")
