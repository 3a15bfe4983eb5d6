"""What requests and answers look like: their fields, for checks and for the OpenAPI document, each with an example."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from elman.decode.beam import MOST_COVERAGE
from elman.serve.drawing import Format
from elman.train.recipe import Count

FIRST = Field(fail_fast=True)
"""Of a list: its first mistake is told, and no other looked for, of which there may be a million."""
SOME = Field(min_length=1, fail_fast=True)
"""Of a list that has something in it: the same."""
Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[list[Text], SOME]
Tokens = Annotated[list[Text], SOME]
Number = Annotated[float, Field(allow_inf_nan=False)]


def example(**values: Any) -> ConfigDict:
    """The settings of a request: unknown fields are refused, an example is shown."""
    return ConfigDict(extra="forbid", json_schema_extra={"example": values})


def shown(**values: Any) -> ConfigDict:
    """The settings of an answer, which may say more than its schema does."""
    return ConfigDict(extra="allow", json_schema_extra={"example": values})


class _Request(BaseModel):
    model: str | None = Field(None, description="The model's name; not needed where one fits.")


class StreamOptions(BaseModel):
    """What is asked of an event stream."""

    model_config = ConfigDict(extra="forbid")
    include_usage: bool = False


class CompletionRequest(_Request):
    """A completion as OpenAI's clients ask for it; `top_k`, `repetition_penalty` and `label` are Elman's own."""

    model_config = example(model="mine", prompt="ROMEO:", max_tokens=40, temperature=0.8, seed=1)
    prompt: str | Annotated[list[str], FIRST] = ""
    max_tokens: int = Field(16, ge=0)
    temperature: Number = Field(1.0, ge=0, le=100)
    top_p: Number = Field(1.0, gt=0, le=1)
    top_k: Count = Field(0, ge=0)
    repetition_penalty: Number = Field(1.0, gt=0, le=100)
    seed: int | None = Field(None, ge=0, lt=2**63)
    stop: str | Annotated[list[str], Field(max_length=64, fail_fast=True)] | None = None
    n: int = Field(1, ge=1)
    echo: bool = False
    logprobs: int | None = Field(None, ge=0, le=20)
    stream: bool = False
    stream_options: StreamOptions | None = None
    label: str | None = Field(None, description="What to write, for models trained with labels.")
    best_of: int | None = Field(None, ge=1, description="As many as n, or left out.")
    suffix: None = None
    presence_penalty: Number | None = Field(None, ge=0, le=0, description="Not offered: 0, or left out.")
    frequency_penalty: Number | None = Field(None, ge=0, le=0, description="Not offered: 0, or left out.")
    logit_bias: Annotated[dict[str, Any], Field(max_length=0)] | None = Field(None, description="Not offered.")
    user: str | None = Field(None, description="Not used.")


class InputRequest(_Request):
    """A text, or several."""

    model_config = example(input=["a fine film", "late, again"])
    input: Text | Texts


class NextRequest(InputRequest):
    """A text whose next tokens are asked for."""

    model_config = example(input="To be, or not to ", top=3)
    input: str | Annotated[list[str], SOME]
    top: Count = Field(10, ge=1)
    label: str | None = None
    words: bool = False


class ScoreRequest(InputRequest):
    """A text, or several; of a translator, with their translations."""

    model_config = example(input="To be, or not to be")
    label: str | None = None
    target: Text | Texts | None = None


class TagRequest(_Request):
    """Texts, or ready tokens."""

    model_config = example(input="Ask Ada Lovelace.")
    input: Text | Texts | None = None
    tokens: Tokens | Annotated[list[Tokens], SOME] | None = None


class TranslateRequest(InputRequest):
    """Texts, and what is asked of their translations: the options of `elman predict`."""

    model_config = example(input="ein Hund läuft", beam=5, n_best=3, alignments=True)
    beam: Count | None = Field(None, ge=1)
    n_best: Count = Field(1, ge=1)
    length_power: Number | None = Field(None, ge=0, le=100)
    coverage: Number | None = Field(None, ge=0, le=MOST_COVERAGE)
    min_length: Count = Field(0, ge=0)
    max_length: Count | None = Field(None, ge=1)
    block_ngrams: Count = Field(0, ge=0)
    prefix: str = ""
    require: Annotated[tuple[str, ...], FIRST] = ()
    forbid: Annotated[tuple[str, ...], FIRST] = ()
    temperature: Number | None = Field(None, ge=0)
    top_k: Count = Field(0, ge=0)
    top_p: Number = Field(1.0, gt=0, le=1)
    seed: int | None = Field(0, ge=0, lt=2**64)
    alignments: bool = False
    replace_unknown: bool = False
    allow_unknown: bool = False
    stop_at: Count | None = Field(None, ge=1)


class PredictRequest(_Request):
    """Records of whatever task: texts, or objects with the fields that its files have; numbers are one series."""

    model_config = example(records=[{"text": "a fine film"}], options={})
    records: (
        Annotated[list[Text | dict[str, Any]], SOME]
        | Annotated[list[Number], SOME]
        | Annotated[list[Annotated[list[Number], FIRST]], SOME]
    )
    options: dict[str, Any] = Field(default_factory=dict, description="Those of `elman predict`, by name.")


class ExplainRequest(_Request):
    """Texts to be looked at; of models that see images, records with an image each."""

    model_config = example(view="saliency", input="a fine film", options={})
    view: str | None = Field(None, description="A view of the model; the first if not given.")
    input: Text | Annotated[list[Text | Tokens], SOME] | None = None
    records: Annotated[list[dict[str, Any]], SOME] | None = Field(
        None, description="As /v1/predict takes them: 'image' in base64 and, where one is asked about it, 'question'."
    )
    options: dict[str, Any] = Field(default_factory=dict, description="Those of the view, by name.")
    format: Format = Field("json", description="The view's data; or as panels of the Studio, a page or a picture.")


class LabRequest(BaseModel):
    """An experiment of the course to run."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"experiment": "bptt", "options": {}}})
    experiment: str
    options: dict[str, Any] = Field(default_factory=dict, description="Those of the experiment, by name.")


class RunRequest(BaseModel):
    """A training run to start."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"task": "classify", "name": "first", "train": ["reviews.csv"]}}
    )
    task: str
    name: str = Field(description="What the run is called: a folder of this name is made.")
    recipe: str | None = Field(None, description="A recipe that comes with Elman.")
    train: list[str] = Field(default_factory=list, fail_fast=True, description="Files of the service's folder of data.")
    settings: list[str] = Field(default_factory=list, fail_fast=True, description="Such as train.epochs=3.")


class LibreRequest(BaseModel):
    """A translation as LibreTranslate's clients ask for it."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"example": {"q": "Hallo", "target": "en"}})
    q: str | Annotated[list[str], SOME]
    source: str = "auto"
    target: str
    format: str = "text"
    alternatives: int = Field(0, ge=0)
    api_key: str | None = Field(None, description="Not used: the key is a header.")


# Answers


class StudioView(BaseModel):
    """What the Studio offers beside the models."""

    model_config = shown(
        version="0.1.0",
        runs=True,
        training=False,
        limits={"max_bytes": 1048576},
        lab=[{"name": "bptt", "about": "", "options": {}}],
    )
    version: str
    runs: bool
    training: bool
    limits: dict[str, float]
    lab: list[dict[str, Any]]


class TrainingView(BaseModel):
    """What a run can be started with."""

    model_config = shown(tasks=["classify"], recipes=[{"name": "trec", "task": "classify"}], files=["reviews.csv"])
    tasks: list[str]
    recipes: list[dict[str, str]]
    files: list[str]


class RunState(BaseModel):
    """What became of a run."""

    model_config = shown(id="first", state="running")
    id: str
    state: str


class ErrorDetail(BaseModel):
    """What went wrong."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorAnswer(BaseModel):
    """Every error of every path."""

    model_config = shown(
        error={"message": "there is no model 'x': known are: mine", "type": "not_found_error", "param": "model"}
        | {"code": "model_not_found"}
    )
    error: ErrorDetail


class LogProbs(BaseModel):
    """What the model thought of each token; ranks and entropies are Elman's own."""

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None]
    text_offset: list[int]
    ranks: list[int | None]
    entropies: list[float | None]


class Choice(BaseModel):
    """One text."""

    index: int
    text: str
    finish_reason: str | None
    logprobs: LogProbs | None


class Usage(BaseModel):
    """Tokens that were read and written."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class Completion(BaseModel):
    """What was written."""

    model_config = shown(
        id="cmpl-1",
        object="text_completion",
        created=1700000000,
        model="mine",
        choices=[{"index": 0, "text": "\nWhat light", "finish_reason": "length", "logprobs": None}],
        usage={"prompt_tokens": 6, "completion_tokens": 11, "total_tokens": 17},
    )
    id: str
    object: str
    created: int
    model: str
    choices: list[Choice]
    usage: Usage | None = None


class Results(BaseModel):
    """An answer for each text or record, in their order."""

    model_config = shown(model="mine", results=[{"text": "a fine film", "label": "good"}])
    model: str
    results: list[dict[str, Any]]


class Explanation(BaseModel):
    """What a view computed: `docs/explain.md` says what each view's data are."""

    model_config = shown(view="saliency", model="2 classes", texts=[{"text": "a fine film"}])
    view: str
    model: str
    texts: list[Any]


class ModelCard(BaseModel):
    """A model that is loaded."""

    model_config = shown(id="mine", object="model", created=1700000000, owned_by="elman", task="lm")
    id: str
    object: str
    created: int
    owned_by: str
    task: str


class ModelList(BaseModel):
    """All models that are loaded."""

    model_config = shown(object="list", data=[{"id": "mine", "object": "model", "created": 1700000000}])
    object: str
    data: list[dict[str, Any]]


class LibreAnswer(BaseModel):
    """A translation as LibreTranslate gives it."""

    model_config = shown(translatedText="Hello")
    translatedText: str | list[str]


class Language(BaseModel):
    """A language that can be translated, and into which."""

    model_config = shown(code="de", name="German", targets=["en"])
    code: str
    name: str
    targets: list[str]


class RunList(BaseModel):
    """The training runs of a folder."""

    model_config = shown(runs=[{"id": "mine", "task": "lm", "state": "running", "step": 200, "records": 9}])
    runs: list[dict[str, Any]]


class RunView(BaseModel):
    """One training run."""

    model_config = shown(id="mine", task="lm", state="finished", recipe={"task": "lm"}, metrics=None, card=None)
    id: str
    state: str
    recipe: dict[str, Any]
    metrics: dict[str, Any] | None
    card: str | None


class RunLogAnswer(BaseModel):
    """Records of a run's log, and the number to ask on from."""

    model_config = shown(records=[{"kind": "train", "step": 50, "loss": 2.1}], next=1)
    records: list[dict[str, Any]]
    next: int


class Status(BaseModel):
    """How the service is."""

    model_config = shown(status="ok")
    status: str


ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorAnswer, "description": "The request is wrong, or there is no room for it."},
    "5XX": {"model": ErrorAnswer, "description": "The service failed, is loading, ending, or took too long."},
}
"""What every path may answer beside what it is asked for."""
