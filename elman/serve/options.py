"""Options of views and predictions as the service offers them: none that names a file of the machine."""

import re
from collections.abc import Mapping
from typing import Any

from pydantic.fields import FieldInfo

from elman.serve.errors import Refused
from elman.train.recipe import Section

FILES = re.compile(r"\b(file|folder)s?\b", re.IGNORECASE)
ALSO = {"channel_weights"}
"""What means nothing without an option that names a folder."""
BEGINNINGS = {"feature": "labels:"}
"""Options that name a file only where they begin so."""


def names_file(name: str, field: FieldInfo) -> bool:
    """Whether an option is the name of a file or folder, or goes with one: so its description says."""
    return name not in BEGINNINGS and (name in ALSO or bool(FILES.search(field.description or "")))


def refuse_files(given: Mapping[str, Any], fields: Mapping[str, FieldInfo]) -> None:
    """Refuse options that name files: a request has no business with those of this machine."""
    for name, value in given.items():
        if name not in fields:
            continue
        begins = name in BEGINNINGS and str(value).strip().startswith(BEGINNINGS[name])
        if begins or names_file(name, fields[name]):
            raise Refused(400, f"the option '{name}' names a file, which is not offered here: leave it out", param=name)


def offered(section: type[Section]) -> dict[str, Any]:
    """The JSON schema of the options that are offered."""
    schema = section.model_json_schema()
    hidden = {name for name, field in section.model_fields.items() if names_file(name, field)}
    known = schema.get("properties", {})
    schema["properties"] = {name: value for name, value in known.items() if name not in hidden}
    return {key: value for key, value in schema.items() if key in ("properties", "$defs")}
