"""Options of views and predictions as the service offers them: none that names a file of the machine."""

import re
from collections.abc import Mapping
from typing import Any

from pydantic.fields import FieldInfo

from elman.errors import nearest
from elman.serve.answering import check_most
from elman.serve.errors import Refused
from elman.serve.limits import Limits
from elman.train.recipe import Section

FILES = re.compile(r"\b(file|folder)s?\b", re.IGNORECASE)
ALSO = {"channel_weights"}
"""What means nothing without an option that names a folder."""
SOMETIMES = {"feature"}
"""Options that name a file with some values, and not with others."""


def names_file(name: str, field: FieldInfo) -> bool:
    """Whether an option is the name of a file or folder, or goes with one: so its description says."""
    return name not in SOMETIMES and (name in ALSO or bool(FILES.search(field.description or "")))


MOST_LISTED = 1000
"""Words that are listed for one at most."""


def check_options(given: Mapping[str, Any], limits: Limits) -> None:
    """Refuse options that ask for more than the service offers."""
    most = {"beam": limits.max_beam, "n_best": limits.max_n, "top": MOST_LISTED, "neighbours": MOST_LISTED}
    most |= dict.fromkeys(("min_length", "max_length"), limits.max_tokens)
    for name in most:
        value = given.get(name)
        if value is not None and type(value) is not int:  # else "64" or 64.0 would be taken for 64 later
            raise Refused(400, f"'{name}' should be a whole number: give one without quotes or a point", param=name)
        check_most(value, most[name], name)


def refuse_unknown(given: Mapping[str, Any], fields: Mapping[str, FieldInfo], whose: str) -> None:
    """Refuse options that there are not."""
    for name in given:
        if name not in fields:
            known = [key for key, field in fields.items() if not names_file(key, field)]
            near = nearest(name, known) if known else "leave it out"
            raise Refused(400, f"{whose} has no option '{name}': {near}", param="options")


def refuse_files(given: Mapping[str, Any], fields: Mapping[str, FieldInfo]) -> None:
    """Refuse options that name files: a request has no business with those of this machine."""
    for name, value in given.items():
        if name not in fields:
            continue
        if names_file(name, fields[name]) or (name in SOMETIMES and _names_labels(value)):
            raise Refused(400, f"the option '{name}' names a file, which is not offered here: leave it out", param=name)


def _names_labels(value: Any) -> bool:
    """Whether a feature is one of labels, which stand in a file."""
    from elman.inspect.features import label_file  # late, since only the view of features asks

    return label_file(str(value)) is not None


def offered(section: type[Section]) -> dict[str, Any]:
    """The JSON schema of the options that are offered."""
    schema = section.model_json_schema()
    hidden = {name for name, field in section.model_fields.items() if names_file(name, field)}
    known = schema.get("properties", {})
    schema["properties"] = {name: value for name, value in known.items() if name not in hidden}
    return {key: value for key, value in schema.items() if key in ("properties", "$defs")}
