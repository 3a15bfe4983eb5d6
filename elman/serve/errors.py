"""Errors of the service: one JSON shape, one sentence, for every path."""

import re
from typing import Any

from fastapi import HTTPException

from elman.errors import ElmanError, UserError

KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}
"""The type of an error by its status; others below 500 are those of 400, others above are the server's."""
PATHS = re.compile(r"(?<![\w.:/])/(?:[^\s/:'\",;]+/)+")


class Refused(HTTPException):
    """A request that is not answered as it asks, and why: one sentence."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        retry_after: int | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        headers = dict(headers or {}) | ({} if retry_after is None else {"Retry-After": str(retry_after)})
        super().__init__(status, message, headers or None)
        self.code, self.param = code, param

    def body(self) -> dict[str, Any]:
        """As every error of the service looks."""
        return error_body(self.status_code, str(self.detail), self.code, self.param)


def error_body(status: int, message: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    """The one shape of errors.

    >>> error_body(404, "there is no model 'x'", "model_not_found", "model")["error"]["type"]
    'not_found_error'
    """
    kind = KINDS.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def without_paths(sentence: str) -> str:
    """A sentence in which files and folders are called by their names alone: where they are is nobody's business.

    >>> without_paths("/srv/models/mine/config.json is damaged: 'a/b' and 1/2 are not")
    "config.json is damaged: 'a/b' and 1/2 are not"
    """
    return PATHS.sub("", " ".join(sentence.split()))


def scrubbed(value: Any) -> Any:
    """Plain data in which no text has a path of this machine.

    >>> scrubbed({"data": {"train": ["/srv/data/train.csv"]}, "epochs": 3})
    {'data': {'train': ['train.csv']}, 'epochs': 3}
    """
    if isinstance(value, dict):
        return {key: scrubbed(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [scrubbed(each) for each in value]
    return PATHS.sub("", value) if isinstance(value, str) else value


def refusal_of(error: BaseException) -> Refused:
    """What to answer where something went wrong: the user's mistakes in their sentence, others without details."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, UserError):
        return Refused(400, without_paths(str(error)))
    if isinstance(error, ElmanError):
        return Refused(500, without_paths(str(error)))
    return Refused(500, "the service failed at this: its log says why, by the X-Request-Id")


def first_mistake(errors: list[Any]) -> tuple[str, str | None]:
    """The first of pydantic's complaints as a sentence, and the field that it is about.

    >>> first_mistake([{"loc": ("body", "input", "list[str]", 2), "msg": "Input should be a valid string"}])
    ("'input.2': input should be a valid string", 'input.2')
    >>> first_mistake([{"loc": ("body", "records"), "type": "too_short", "ctx": {"min_length": 1}}])
    ("'records' is empty: give at least one", 'records')
    >>> first_mistake([{"loc": ("body", "stop"), "type": "too_long", "ctx": {"max_length": 64, "actual_length": 65}}])
    ("'stop' has 65 parts: give at most 64", 'stop')
    >>> one, several = {"loc": ("input", "str"), "msg": "Not a text"}, {"loc": ("input", "list", 3), "msg": "Not one"}
    >>> first_mistake([one, several])
    ("'input.3': not one", 'input.3')
    """
    # Of a field that may be of several kinds each kind complains: that nothing or too much is in it says most, and else
    # the kind that got furthest into it.
    counted = (one for one in errors if one.get("type") in ("too_short", "too_long"))
    error = next(counted, None) or max(errors, key=lambda one: len(one.get("loc", ())))
    where = [part for part in error.get("loc", ()) if part not in ("body", "query", "path")]
    # Of a field that may be of several kinds the kind is named too, which says nothing to those who asked.
    name = ".".join(str(part) for part in where if isinstance(part, int) or part == where[0]) or None
    if error.get("type") == "json_invalid":
        return f"the body is no JSON: {error.get('ctx', {}).get('error', 'it cannot be read')}", None
    if error.get("type") == "too_short":
        return f"'{name}' is empty: give at least one", name
    if error.get("type") == "too_long":
        count, most = error["ctx"]["actual_length"], error["ctx"]["max_length"]
        more = f"has {count:,} parts: give at most {most}" if most else "is not offered: leave it out"
        return f"'{name}' {more}", name
    if error.get("type") == "extra_forbidden":
        return f"there is no '{name}' here: leave it out, or see /openapi.json for what there is", name
    message = str(error.get("msg", "is wrong"))
    message = message.removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return (message if name is None else f"'{name}': {message[:1].lower()}{message[1:]}"), name
