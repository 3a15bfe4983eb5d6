"""Images that come with a request: their content in base64, never the name of a file of the machine."""

import base64
from collections.abc import Sequence
from typing import Any

from elman.serve.answering import check_characters
from elman.serve.errors import Refused


def image_of(record: Any) -> bytes:
    """The content of a record's image; whether it is one is found when it is opened."""
    needed = "a record needs 'image': the content of an image file in base64"
    if not isinstance(record, dict) or not isinstance(record.get("image"), str):
        raise Refused(400, needed, param="records")
    try:
        return base64.b64decode(record["image"], validate=True)
    except ValueError:
        raise Refused(400, needed, param="records") from None


def question_of(record: dict[str, Any]) -> str:
    """What a record asks about its image."""
    question = record.get("question")
    if not isinstance(question, str) or not question.strip():
        raise Refused(400, "a record needs its 'question'", param="records")
    return question


def check_records(records: Sequence[Any], most: int, *, uploads: bool) -> None:
    """Refuse records with texts of more than `most` characters; with `uploads`, an image's content is none."""
    content = {"image"} if uploads else set()
    for record in records:
        fields = {"text": record} if isinstance(record, str) else record if isinstance(record, dict) else {}
        lengths = [len(value) for name, value in fields.items() if isinstance(value, str) and name not in content]
        check_characters(max(lengths, default=0), most, "records")
