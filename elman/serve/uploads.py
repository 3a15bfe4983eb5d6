"""Images that come with a request: their content in base64, never the name of a file of the machine."""

import base64
import re
from collections.abc import Sequence
from typing import Any

from elman.serve.answering import check_characters
from elman.serve.errors import Refused

DATA_URL = re.compile(r"^data:[^,]*;base64,", re.IGNORECASE)


def image_of(record: Any, number: int) -> bytes:
    """The content of a record's image, in base64 or as a data URL; whether it is one is found when it is opened."""
    if not isinstance(record, dict) or not isinstance(record.get("image"), str):
        message = f"record {number} needs 'image': the content of an image file in base64"
        raise Refused(400, message, param="records")
    try:
        return base64.b64decode(DATA_URL.sub("", record["image"]), validate=True)
    except ValueError:
        message = f"'image' of record {number} is not base64: give the content of an image file so, and not its name"
        raise Refused(400, message, param="records") from None


def question_of(record: dict[str, Any], number: int) -> str:
    """What a record asks about its image."""
    question = record.get("question")
    if not isinstance(question, str) or not question.strip():
        raise Refused(400, f"record {number} needs its 'question'", param="records")
    return question


def check_records(records: Sequence[Any], most: int, *, uploads: bool) -> None:
    """Refuse records with texts of more than `most` characters; with `uploads` their images are none."""
    content = {"image"} if uploads else set()
    for record in records:
        fields = {"text": record} if isinstance(record, str) else record if isinstance(record, dict) else {}
        lengths = [len(value) for name, value in fields.items() if isinstance(value, str) and name not in content]
        check_characters(max(lengths, default=0), most, "records")
