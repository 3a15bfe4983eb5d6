"""Pictures: an image is given by pointer or keys, described or asked about; where the model looked is drawn on it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import elman
from tests.browser import barriers, expect
from tests.serve.running import Running
from tests.tasks import answer_runs, caption_runs
from tests.train.toy import quiet


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    for name in ("c", "a"):
        (folder / name).mkdir()
    captions, questions = caption_runs.images(folder / "c", 12), answer_runs.write(folder / "a" / "questions.tsv", 12)
    asked = {"caption": (captions, [*caption_runs.SMALL, "train.steps=40"]), "answer": (questions, answer_runs.SMALL)}
    for task, (file, settings) in asked.items():
        elman.fit(task, train=file, out=folder / task, settings=settings, reporter=quiet())
    return folder


@pytest.fixture(scope="module")
def service(folder: Path) -> Iterator[Running]:
    with Running(str(folder / "caption"), str(folder / "answer"), "--max-bytes", "60000") as running:
        yield running
        assert running.end() == 0


def shades(page: Any) -> list[str]:
    """How dark each place of the image is drawn."""
    found: list[str] = page.eval_on_selector_all(
        ".looking rect", "all => all.map(one => one.getAttribute('fill-opacity'))"
    )
    return found


def test_an_image_is_dropped_described_and_looked_at_word_by_word(studio: Any, folder: Path) -> None:
    image = folder / "c" / "0.png"
    found = elman.load(folder / "caption").predict(image, alignments=True)
    one = studio("#/pictures?model=caption")
    page = one.page
    one.drop("0.png", image.read_bytes(), "image/png")
    page.locator("p.caption", has_text=found.text).wait_for()
    words, places = page.locator(".looking .words-row button"), page.locator(".looking rect")
    expect(words).to_have_text(["the image", *found.tokens], use_inner_text=True)  # which come by themselves
    expect(places).to_have_count(0)
    words.nth(2).hover()  # one looks by pointing
    weights = found.weights[1]
    expect(places).to_have_count(len(weights))
    expect(page.locator("figcaption")).to_contain_text(f"“{found.tokens[1]}”: most at")
    dark = [float(value) for value in shades(page)]
    assert len(dark) == len(weights) and dark.index(min(dark)) == int(weights.argmax())
    page.mouse.move(0, 0)
    expect(places).to_have_count(0)
    words.nth(2).click()  # and keeps it in the address
    one.address_has(word="2")
    page.mouse.move(0, 0)
    expect(words.nth(2)).to_have_attribute("aria-pressed", "true")
    expect(places).to_have_count(len(weights))
    with page.expect_download() as got:
        page.locator(".looking .save button", has_text="SVG").click()
    saved = Path(got.value.path()).read_text()
    assert saved.startswith("<svg") and "data:image/png;base64," in saved and "<rect" in saved
    with page.expect_download() as got:
        page.locator(".looking .save button", has_text="JSON").click()
    assert json.loads(Path(got.value.path()).read_text())["tokens"] == found.tokens
    page.get_by_text("All of it side by side").click()
    page.locator(".drawn .looks figure").nth(len(found.tokens)).wait_for()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1300), ("dark", 390)])
def test_an_image_is_asked_about_by_keys_alone(studio: Any, folder: Path, scheme: str, width: int) -> None:
    one = studio("#/pictures?model=answer", color_scheme=scheme, viewport={"width": width, "height": 900})
    page = one.page
    chosen, question = page.locator("input[type=file]"), page.get_by_label("Question")
    chosen.wait_for()
    with page.expect_file_chooser() as chooser:  # which the browser has to be told of some time before
        page.keyboard.press("/")  # the first field chooses the file
        expect(chosen).to_be_focused()
        page.keyboard.press("Enter")
    chooser.value.set_files(folder / "a" / "images" / "train-0.png")
    page.locator(".looking svg").wait_for()
    page.keyboard.press("Tab")
    expect(question).to_be_focused()
    with one.answered("/v1/predict", lambda body: body["records"][0]["question"] == "is there a circle ?"):
        page.keyboard.type("is there a circle ?")
    expect(question).to_have_value("is there a circle ?")
    page.locator("main .label").wait_for()
    words = page.locator(".looking .words-row button")
    words.nth(1).wait_for()
    expect(page.locator(".busy")).to_have_count(0)
    page.keyboard.press("Tab")
    expect(words.first).to_be_focused()
    expect(words.first).to_have_text("the image")
    page.keyboard.press("ArrowRight")
    expect(words.nth(1)).to_be_focused()
    one.address_has(word="1")
    expect(page.locator(".looking rect").nth(4)).to_be_attached()  # more than four
    page.keyboard.press("End")
    expect(words.last).to_be_focused()
    expect(words.last).to_contain_text("what decides for")
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_large_image_is_made_to_fit_and_what_is_no_image_is_told(studio: Any, tmp_path: Path) -> None:
    import numpy as np
    from PIL import Image

    page = studio("#/pictures?model=caption").page
    noise = np.random.default_rng(0).integers(0, 255, (700, 500, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "large.png")
    page.locator("input[type=file]").set_input_files(tmp_path / "large.png")
    page.locator("p.caption").wait_for()
    expect(page.get_by_text("made smaller")).to_be_visible()
    (tmp_path / "no.png").write_text("no image")
    page.locator("input[type=file]").set_input_files(tmp_path / "no.png")
    expect(page.get_by_role("alert")).to_contain_text("no image that the browser can show")
