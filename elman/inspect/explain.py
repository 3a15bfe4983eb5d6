"""`explain`: a view of a model on some texts, as data, and as whatever it is to be drawn as."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elman.draw.output import write
from elman.draw.panels import Column, Page
from elman.draw.plain import plain
from elman.errors import UserError, nearest
from elman.inspect.view import AnyModel, View
from elman.inspect.views import VIEWS, each_view, find
from elman.tasks.model import Model, check_texts
from elman.train.recipe import parse

HEADING = 80  # characters


@dataclass(frozen=True)
class Explanation:
    """What a view computed for each text."""

    view: View[Any]
    about: str
    """The model in a few words."""
    texts: Sequence[str]
    data: Sequence[Any]

    def to_dict(self) -> dict[str, Any]:
        """The data as JSON has them: `docs/explain.md` says what each view's are."""
        about = {"view": self.view.name, "model": self.about}
        if self.view.joint:
            return {**about, "texts": list(self.texts), **plain(self.data[0])}
        return {**about, "texts": [{"text": text, **plain(data)} for text, data in self._each()]}

    def _each(self) -> Iterator[tuple[str, Any]]:
        """What was computed, with the text that it is about."""
        titles = [several(self.texts)] if self.view.joint else self.texts
        return zip(titles, self.data, strict=True)

    def page(self) -> Page:
        """What is to be drawn."""
        columns = [Column(heading(text), self.view.panels(data)) for text, data in self._each()]
        return Page(f"{self.view.name}: {self.view.about}", self.about, columns)

    def save(self, path: Path | str) -> None:
        """Write a page (.html), the data (.json) or a picture (.png, .svg)."""
        write(Path(path), self.page, self.to_dict)

    def _repr_html_(self) -> str:
        from elman.draw.page import page_frame

        return page_frame(self.page())


def heading(text: str) -> str:
    """The beginning of a text, on one line.

    >>> heading("to be,\\nor not " * 9)
    'to be, or not to be, or not to be, or not to be, or not to be, or not to be, or ...'
    """
    line = " ".join(text.split())
    return line if len(line) <= HEADING else line[:HEADING].rsplit(" ", 1)[0] + " ..."


def several(texts: Sequence[str]) -> str:
    """A heading for some texts together."""
    return texts[0] if len(texts) == 1 else f"{len(texts):,} texts" if texts else "held-out data"


def views_of(model: AnyModel) -> dict[str, View[Any]]:
    """The views that a model has, by name."""
    return {view.name: view for view in _fitting(model)}


def _fitting(model: AnyModel) -> Iterator[View[Any]]:
    return (view for view in each_view(model.task) if _refusal(view, model) is None)


def _refusal(view: View[Any], model: AnyModel) -> str | None:
    if len(model.members) > 1 and not view.averages:
        one = "give the folder of one, such as its members/2"
        return f"it is an ensemble of {len(model.members)}, and this view looks into one of them: {one}"
    return view.refusal(model)


def find_view(model: AnyModel, name: str | None) -> View[Any]:
    """A view of a model by its name, or its first of texts; one that it does not have is told with those it has."""
    if name is None:
        if not VIEWS.get(model.task):
            raise UserError(f"there is no view of a model for the task '{model.task}' yet")
        name = next((view.name for view in _fitting(model) if not view.takes_files), next(iter(VIEWS[model.task])))
    if not isinstance(name, str):
        raise UserError(f"a view is called by its name, not by a {type(name).__name__}: {', '.join(views_of(model))}")
    tasks = [task for task, views in VIEWS.items() if name in views]
    if model.task in tasks:
        view = find(VIEWS[model.task][name])
        reason = _refusal(view, model)
        if reason is None:
            return view
    else:
        reason = f"it is a view of {', '.join(tasks)}" if tasks else None
    has = views_of(model)
    if reason is None:
        raise UserError(f"there is no view '{name}': {nearest(name, has or VIEWS[model.task])}")
    raise UserError(f"this model has no view '{name}': {reason}{'; it has ' * bool(has)}{', '.join(has)}")


def explain(model: AnyModel, texts: str | Sequence[Any], view: str | None = None, **options: Any) -> Explanation:
    """Look at a model at work on a text, or on several side by side; `options` are the view's own.

    Some views of taggers take ready tokens in the place of a text: ["Ask", "Ada"]; those of trees and of questions
    about images take records of such.
    """
    if not isinstance(model, Model):
        raise UserError(f"a {type(model).__name__} is no model of Elman's: load one with elman.load(folder)")
    if isinstance(texts, Mapping) or hasattr(texts, "columns") or not isinstance(texts, Iterable):
        raise UserError(f"a {type(texts).__name__} is no text: give a str, or a list of them")
    texts = [texts] if isinstance(texts, str) else list(texts)
    found = find_view(model, view)
    if not texts and not found.takes_files:
        raise UserError("there is nothing to explain: give at least one text")
    texts = [tuple(text) if found.takes_tokens and isinstance(text, list | tuple) else text for text in texts]
    told = [_told(text, found.record) for text in texts]
    check_texts(told)
    asked: Mapping[str, Any] = {name: value for name, value in options.items() if value is not None}
    settled = parse(found.Options, asked, where=f"the view '{found.name}'")
    return Explanation(found, model.about(), told, found.compute(model, texts, settled))


def _told(text: Any, record: type[Any] | None) -> Any:
    """What a text is called: tokens and records by their text."""
    if isinstance(text, tuple):
        return " ".join(map(str, text))
    return text.text if record is not None and isinstance(text, record) else text
