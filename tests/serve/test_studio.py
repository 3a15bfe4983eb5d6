"""The Studio in a real browser: each view used as a person would, by pointer and by keys alone."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.browser import barriers
from tests.serve.running import Running

VIEWS = ["Write", "Read", "Translate", "Inside", "Train", "Lab"]


class Studio:
    """The page in the browser, all that it said, and all that it asked of others than its own service."""

    def __init__(self, browser: Any, url: str, **context: Any) -> None:
        self.said: list[str] = []
        self.outside: list[str] = []
        self.url = url
        self.context = browser.new_context(**{"viewport": {"width": 1300, "height": 900}} | context)
        self.page = self.context.new_page()
        self.page.set_default_timeout(30_000)
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", self._note)

    def _note(self, request: Any) -> None:
        if not request.url.startswith((self.url, "data:", "blob:")):
            self.outside.append(request.url)

    def open(self, place: str = "") -> Any:
        """Go to a place of the page and wait until it is drawn."""
        self.page.goto(f"{self.url}/{place}")
        self.page.wait_for_selector("main[id]", timeout=120_000)  # the first time, views are imported
        return self.page

    def address(self) -> dict[str, str]:
        """What the address says."""
        query = urlsplit(urlsplit(self.page.url).fragment).query
        return {key: values[0] for key, values in parse_qs(query).items()}


@pytest.fixture
def studio(browser: Any, service: Running) -> Iterator[Any]:
    opened: list[Studio] = []

    def open_studio(place: str = "", **context: Any) -> Studio:
        opened.append(Studio(browser, service.url, **context))
        opened[-1].open(place)
        return opened[-1]

    yield open_studio
    for one in opened:
        assert one.said == [] and one.outside == []  # no error, nothing against the policy, no request to anywhere else
        one.context.close()


def test_every_view_is_a_tab_and_the_back_button_goes_back(studio: Any) -> None:
    page = studio().page
    assert page.locator("nav a").all_inner_texts() == VIEWS
    for name in VIEWS[1:]:
        page.get_by_role("link", name=name).click()
        assert page.locator("nav a[aria-current]").inner_text() == name
    page.go_back()
    assert page.locator("nav a[aria-current]").inner_text() == "Train"
    page.keyboard.press("Alt+2")
    assert page.locator("nav a[aria-current]").inner_text() == "Read"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
def test_nothing_keeps_anyone_from_using_it(studio: Any, scheme: str, width: int) -> None:
    one = studio(color_scheme=scheme, viewport={"width": width, "height": 900})
    for place in ("#/write?prompt=one+two", "#/read?text=a+fine+film&model=classify", "#/translate?text=ab", "#/train"):
        page = one.open(place)
        page.wait_for_load_state("networkidle")
        assert barriers(page) == [], place
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_text_is_written_and_another_word_taken(studio: Any) -> None:
    one = studio("#/write?length=20")
    page = one.page
    page.get_by_label("Prompt").fill("one two")
    page.keyboard.press("Control+Enter")
    token = page.locator("[data-place]").nth(4)
    token.wait_for()
    token.click()
    choice = page.locator(".alternatives li button").nth(1)
    other = choice.inner_text()
    choice.click()
    taken = one.address()["prompt"]
    assert taken.startswith("one two") and taken.replace("\n", "⏎").endswith(other.strip() or " ")
    page.go_back()
    assert page.get_by_label("Prompt").input_value() == "one two"


def test_the_same_address_shows_the_same_text_to_a_colleague(studio: Any) -> None:
    place = "#/write?prompt=one&length=30&seed=7&samples=2"
    texts = []
    for _ in range(2):
        page = studio(place).page
        page.locator(".written").nth(1).locator("[data-place='5']").wait_for()
        page.wait_for_load_state("networkidle")
        texts.append(page.locator(".written .text").all_inner_texts())
    assert texts[0] == texts[1] and texts[0][0] != texts[0][1]


def test_tokens_are_reached_by_keys(studio: Any) -> None:
    page = studio("#/write?prompt=one&length=20").page
    page.locator("[data-place='3']").wait_for()
    page.locator("[data-place='0']").focus()
    for key in ("ArrowRight", "ArrowRight", "Enter"):
        page.keyboard.press(key)
        page.wait_for_timeout(50)
    assert page.evaluate("document.activeElement.dataset.place") == "2"
    assert page.locator(".alternatives").is_visible()


def test_a_text_is_read_as_it_is_typed(studio: Any, service: Running) -> None:
    page = studio("#/read?model=classify").page
    page.keyboard.press("/")
    page.keyboard.type("a fine film")
    told = service.post("/v1/classify", model="classify", input="a fine film").json()["results"][0]
    page.locator(".label", has_text=told["label"]).wait_for()
    assert page.locator(".sides tbody tr").count() == min(len(told["probabilities"]), 12)
    page.get_by_text("What if a word were another?").click()
    page.get_by_label("leave out fine").click()
    page.get_by_text("with the change").wait_for()
    page.get_by_text("What decided?").click()
    page.locator(".drawn .text span").first.wait_for()


def test_a_table_of_texts_becomes_predictions_and_a_confusion_matrix(studio: Any) -> None:
    page = studio("#/read?model=classify").page
    page.get_by_text("Many texts").click()
    page.locator(".batch textarea").fill('text,label\n"good, very good",pos\nbad,neg\nso so,neg')
    page.get_by_text("Read them").click()
    page.locator(".confusion").wait_for()
    assert page.locator(".batch table.cells tbody tr").count() == 3
    assert sum(int(text) for text in page.locator(".confusion td button").all_inner_texts()) == 3
    page.locator(".confusion td button", has_text="1").first.click()
    assert page.locator(".batch table.cells tbody tr").count() < 3
    with page.expect_download() as got:
        page.get_by_text("download CSV").click()
    assert Path(got.value.path()).read_text().startswith("text,label,predicted,probability\n")


def test_tags_stand_on_their_words(studio: Any) -> None:
    page = studio("#/read?model=tag&text=Ask+Ada+now").page
    page.locator(".sides [aria-live] p").first.wait_for()
    assert "Ada" in page.locator(".sides [aria-live]").inner_text()


def test_a_translation_is_aligned_and_searched_anew_from_a_word(studio: Any) -> None:
    one = studio("#/translate?text=abc&beam=3&prefix=ab")
    page = one.page
    page.locator(".align text[role=button]").nth(1).click()
    others = page.locator(".alternatives li button")
    others.first.wait_for()
    others.nth(int(others.all_inner_texts()[0].strip() == "b")).click()  # another than b
    assert one.address()["prefix"] != "ab" and one.address()["prefix"].startswith("a")
    page.locator("summary", has_text="The search").click()
    page.locator(".beam g[role=button]").nth(2).wait_for()
    page.locator(".beam g[role=button]").nth(2).focus()
    page.keyboard.press("Enter")
    with page.expect_download() as got:
        page.locator(".save button", has_text="SVG").first.click()
    assert Path(got.value.path()).read_text().startswith("<svg")


def test_every_view_of_every_model_is_drawn(studio: Any, service: Running) -> None:
    one = studio()
    with service.client() as client:
        models = client.get("/v1/models").json()["data"]
    texts = {"lm": "one two three", "classify": "a fine film", "tag": "Ask Ada now", "translate": "abc"}
    first = {model["task"]: model["views"][0]["name"] for model in models}
    for task, view in first.items():
        page = one.open(f"#/inside?model={task}&text={texts[task].replace(' ', '+')}&look={view}")
        page.reload()
        page.locator(".drawn .panel").first.wait_for()
        with page.expect_download() as got:
            page.locator(".save button", has_text="JSON").click()
        assert json.loads(Path(got.value.path()).read_text())["view"] == view


def test_runs_have_curves_and_their_recipes_are_compared(studio: Any) -> None:
    page = studio("#/train").page
    for name in ("classify", "lm"):
        page.get_by_label(f"show {name}", exact=True).check()
    page.locator(".curves canvas").wait_for()
    page.locator("summary", has_text="classify: recipe").click()
    assert page.locator("th[scope=row]", has_text="task").first.is_visible()


def test_an_experiment_runs_from_the_page(studio: Any) -> None:
    page = studio("#/lab?experiment=bptt").page
    page.get_by_role("button", name="Run").click()
    page.locator(".drawn .panel").first.wait_for(timeout=120_000)
    assert "verdict" in page.locator(".drawn").inner_text()


def test_a_run_is_started_from_the_page(browser: Any, models: Path, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    folders = ("--runs", str(tmp_path / "runs"), "--data", str(models))
    with Running(str(models / "classify"), "--allow-training", *folders) as running:
        page = Studio(browser, running.url).open("#/train")
        page.get_by_text("Start a run").click()
        page.get_by_role("combobox", name="task", exact=True).select_option("classify")
        page.get_by_role("combobox", name="training file").select_option("classify.csv")
        page.get_by_label("name of the run").fill("first")
        page.locator(".controls textarea").fill("train.steps=2\nmodel.hidden=4")
        page.get_by_role("button", name="Train").click()
        page.locator("tr", has_text="first").locator("td", has_text="finished").wait_for(timeout=120_000)
        refused = running.post("/v1/runs", task="classify", name="second", train=["../secret.csv"])
        assert refused.status_code == 400 and "there is no file" in refused.json()["error"]["message"]
        again = running.post("/v1/runs", task="classify", name="first", train=["classify.csv"])
        assert again.status_code == 409
        named = running.post("/v1/runs", task="classify", name="x", settings=["model.vectors=/etc/passwd"])
        assert named.status_code == 400
