"""The Studio in a real browser: each view used as a person would, by pointer and by keys alone."""

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.browser import barriers, becomes, expect
from tests.serve.running import Running
from tests.serve.studio import Studio

DRAWN = """() => {
  const seen = [...document.querySelectorAll(".text .block")].filter((block) => {
    const {top, bottom} = block.getBoundingClientRect();
    return bottom > 0 && top < innerHeight;
  });
  const spans = document.querySelectorAll(".text .block > span").length;
  return seen.every((block) => block.querySelector("span")) && spans > 0 && spans < 6000;
}"""
VIEWS = ["Write", "Read", "Translate", "Inside", "Train", "Lab"]


def test_every_view_is_a_tab_and_the_back_button_goes_back(studio: Any) -> None:
    page = studio().page
    tab = page.locator("nav a[aria-current]")
    expect(page.locator("nav a")).to_have_text(VIEWS, use_inner_text=True)
    for name in VIEWS[1:]:
        page.get_by_role("link", name=name).click()
        expect(tab).to_have_text(name, use_inner_text=True)
    page.go_back()
    expect(tab).to_have_text("Train", use_inner_text=True)
    page.keyboard.press("Alt+2")
    expect(tab).to_have_text("Read", use_inner_text=True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
def test_nothing_keeps_anyone_from_using_it(studio: Any, scheme: str, width: int) -> None:
    one = studio(color_scheme=scheme, viewport={"width": width, "height": 900})
    places = {
        "#/write?prompt=one+two": ".written .save",
        "#/read?text=a+fine+film&model=classify": "main .label",
        "#/translate?text=ab": "main .align",
        "#/inside?model=lm&look=neurons&text=one+two": ".drawn .panel",
        "#/train": "main table",
        "#/lab?experiment=bptt": "main button",
    }
    for place, awaited in places.items():
        page = one.open(place)
        page.locator(awaited).first.wait_for()
        expect(page.locator(".busy")).to_have_count(0)  # which is pale
        assert barriers(page) == [], place
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_on_a_phone_the_menu_takes_two_lines_at_most(studio: Any) -> None:
    page = studio("#/lab", viewport={"width": 390, "height": 800}).page
    expect(page.locator("nav a")).to_have_count(len(VIEWS))
    assert len({link.bounding_box()["y"] for link in page.locator("nav a").all()}) <= 2


@pytest.mark.parametrize("width", [390, 1300])
def test_all_fields_of_an_experiment_are_seen(studio: Any, width: int) -> None:
    page = studio("#/lab?experiment=gradients", viewport={"width": width, "height": 700}).page
    page.get_by_label("updates").wait_for()
    assert page.locator("#lab .controls").evaluate("(one) => one.scrollHeight <= one.clientHeight")


def test_a_text_is_written_and_another_word_taken(studio: Any) -> None:
    one = studio("#/write?length=20")
    page = one.page
    page.get_by_label("Prompt").fill("one two")
    page.keyboard.press("Control+Enter")
    page.locator(".written .save").wait_for()  # all of it is there
    page.locator("[data-place]").nth(4).click()
    choice = page.locator(".alternatives li button").nth(1)
    other = choice.inner_text()
    choice.click()
    one.address_has(token=None)
    taken = one.address()["prompt"]
    assert taken.startswith("one two") and taken.replace("\n", "⏎").replace(" ", "␣").endswith(other)
    prompt = page.locator(".written bdi")
    becomes(prompt.text_content, taken)
    page.go_back()
    expect(page.get_by_label("Prompt")).to_have_value("one two")
    becomes(prompt.text_content, "one two")  # and it is written again


@pytest.mark.parametrize("view", ["write", "inside"])
def test_of_a_long_text_only_what_is_seen_is_drawn(studio: Any, service: Running, view: str) -> None:
    if view == "write":
        page = studio("#/write?model=lm&prompt=one&length=20000").page
        page.locator(".written .save").wait_for(timeout=120_000)  # all of it is there
    else:
        text = service.post("/v1/completions", model="lm", max_tokens=20_000, seed=1).json()["choices"][0]["text"]
        page = studio(f"#/inside?model=lm&look=ranks&text={quote(text)}").page
        page.locator(".drawn .block").first.wait_for(timeout=120_000)
    whole = page.locator(".text:has(.block)")
    becomes(lambda: len(whole.text_content()) >= 20_000, True)  # it can be read, searched and copied all the same
    for part in (0.0, 0.3, 0.6, 0.9):
        page.evaluate(f"scrollTo(0, {part} * document.body.scrollHeight)")
        becomes(lambda: page.evaluate(DRAWN), True)


def test_keys_go_on_into_what_was_not_drawn(studio: Any) -> None:
    page = studio("#/write?model=lm&prompt=one&length=4000").page
    page.locator(".written .save").wait_for()
    page.locator("[data-place='3']").click()
    expect(page.locator("[data-place='3']")).to_be_focused()
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    last = page.locator(".written .block").last.locator("[data-place]").last  # not the last of what is drawn already
    last.click()
    expect(last).to_be_focused()  # which it is with the next picture
    place = int(last.get_attribute("data-place"))
    assert place > 3000
    expect(page.locator(".alternatives")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(f"[data-place='{place - 1}']")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".alternatives")).to_have_count(0)


def test_the_same_address_shows_the_same_text_to_a_colleague(studio: Any) -> None:
    place = "#/write?prompt=one&length=30&seed=7&samples=2"
    texts = []
    for _ in range(2):
        page = studio(place).page
        page.locator(".written").nth(1).locator("[data-place='5']").wait_for()
        expect(page.locator(".written .save")).to_have_count(2)  # both are there to their ends
        texts.append(page.locator(".written .text").all_inner_texts())
    assert texts[0] == texts[1] and texts[0][0] != texts[0][1]


def test_tokens_are_reached_by_keys(studio: Any) -> None:
    one = studio("#/write?prompt=one&length=20")
    page = one.page
    page.locator("[data-place='3']").wait_for()
    page.locator("[data-place='0']").focus()
    for key in ("ArrowRight", "ArrowRight", "Enter"):  # as quickly as they come
        page.keyboard.press(key)
    expect(page.locator("[data-place='2']")).to_be_focused()
    one.address_has(token="0:2")
    expect(page.locator(".alternatives")).to_be_visible()


def test_a_field_keeps_what_is_typed_while_a_text_is_written(studio: Any) -> None:
    one = studio("#/write?model=lm&prompt=one&length=4000")
    page, seed = one.page, one.page.get_by_label("seed")
    page.locator("[data-place='5']").wait_for()
    seed.fill("77")
    page.locator(".written .save").wait_for()  # all of it is drawn by now
    expect(seed).to_have_value("77")
    seed.press("Enter")
    one.address_has(seed="77")


def test_a_text_is_read_as_it_is_typed(studio: Any, service: Running) -> None:
    page = studio("#/read?model=classify").page
    page.keyboard.press("/")
    expect(page.get_by_label("Text", exact=True)).to_be_focused()
    page.keyboard.type("a fine film")
    told = service.post("/v1/classify", model="classify", input="a fine film").json()["results"][0]
    page.locator(".label", has_text=told["label"]).wait_for()
    expect(page.locator(".sides tbody tr")).to_have_count(min(len(told["probabilities"]), 12))
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
    rows, counts = page.locator(".batch table.cells tbody tr"), page.locator(".confusion td button")
    expect(rows).to_have_count(3)
    becomes(lambda: sum(map(int, counts.all_inner_texts())), 3)
    counts.filter(has_text="1").first.click()
    becomes(lambda: rows.count() < 3, True)
    with page.expect_download() as got:
        page.get_by_text("download CSV").click()
    assert Path(got.value.path()).read_text().startswith("text,label,predicted,probability\n")


def test_tags_stand_on_their_words(studio: Any) -> None:
    page = studio("#/read?model=tag&text=Ask+Ada+now").page
    page.locator(".sides [aria-live] p").first.wait_for()
    expect(page.locator(".sides [aria-live]")).to_contain_text("Ada", use_inner_text=True)


def test_tagged_sentences_have_a_confusion_matrix_of_tags(studio: Any, service: Running) -> None:
    one = studio("#/read?model=tag&many=1")
    page = one.page
    sentences = [["Kurt", "went", "home"], ["Ada", "met", "Kurt"]]
    tags = [one["tags"] for one in service.post("/v1/tag", model="tag", tokens=sentences).json()["results"]]
    known = service.http.get("/v1/models/tag", timeout=60).json()["tags"]
    wrong = next(tag for tag in known if tag != tags[1][2])
    lines = [f"{token}\t{tag}" for token, tag in zip(sentences[0], tags[0], strict=True)]
    lines += ["", *(f"{token}\t{tag}" for token, tag in zip(sentences[1], [*tags[1][:2], wrong], strict=True))]
    page.locator(".batch textarea").fill("\n".join(lines))
    page.get_by_text("Read them").click()
    page.get_by_label(f"{wrong} taken for {tags[1][2]}: 1", exact=True).click()
    rows = page.locator(".batch table.cells tbody tr")
    expect(rows).to_have_count(1)
    expect(rows.locator("td").first).to_have_text("Ada met Kurt", use_inner_text=True)
    page.go_back()
    expect(rows).to_have_count(2)
    with page.expect_download() as got:
        page.locator(".batch .save button", has_text="SVG").click()
    assert "<rect" in Path(got.value.path()).read_text()


def test_a_file_is_dropped_anywhere_and_filtered_by_confidence(studio: Any) -> None:
    one = studio("#/read?model=classify")
    page = one.page
    one.drop("some.jsonl", b'{"text": "one\\ntwo", "label": "north"}\n{"text": "three"}\n')
    rows = page.locator(".batch table.cells tbody tr")
    rows.nth(1).wait_for()
    page.get_by_label("at least").fill("1")
    page.get_by_text("0 of 2").wait_for()
    one.address_has(least="1")


def test_what_a_changed_word_does_is_in_the_address(studio: Any) -> None:
    one = studio("#/read?model=tag&text=Kurt+went+home&words=1")
    page = one.page
    page.get_by_label("word 1").fill("Ada")
    page.locator("details.words", has_text="tags").locator("text=/of the other/").wait_for()
    becomes(lambda: json.loads(one.address()["edits"]), {"0": "Ada"})
    page.get_by_text("As it was").click()
    one.address_has(edits=None)


def test_a_translation_is_aligned_and_searched_anew_from_a_word(studio: Any) -> None:
    one = studio("#/translate?text=abc&beam=3&prefix=ab")
    page = one.page
    page.locator(".align text[role=button]").nth(1).click()
    others = page.locator(".alternatives li button")
    others.first.wait_for()
    others.nth(int(others.all_inner_texts()[0].strip() == "b")).click()  # another than b
    one.address_has(word=None)
    taken = one.address()["prefix"]
    assert taken != "ab" and taken.startswith("a")
    page.locator("summary", has_text="The search").click()
    node = page.locator(".beam g[role=button]").nth(2)
    begins = node.get_attribute("aria-label").partition(": ")[0]
    node.focus()
    expect(node).to_be_focused()
    page.keyboard.press("Enter")
    one.address_has(prefix=begins)
    with page.expect_download() as got:
        page.locator(".save button", has_text="SVG").first.click()
    assert Path(got.value.path()).read_text().startswith("<svg")


def test_a_translation_keeps_to_what_it_must_and_must_not_have(studio: Any) -> None:
    one = studio("#/translate?text=abc&beam=4&prefix=ab")
    page = one.page
    page.locator(".translation", has_text="ab").wait_for()
    first = page.locator(".align text[role=button]").first
    first.focus()
    expect(first).to_be_focused()
    page.keyboard.press("Enter")
    page.locator(".alternatives button", has_text="Never").click()
    one.address_has(banned="a", prefix=None)
    page.get_by_label("must have").fill("c")
    expect(page.locator(".translation")).to_have_text(re.compile("^[^a]*c[^a]*$"), use_inner_text=True)
    page.locator("summary", has_text="The search").click()
    page.locator(".beam g[role=button]").nth(1).wait_for()
    assert "a" not in "".join(page.locator(".beam g text").all_text_contents())
    node = page.locator(".beam g[tabindex='0']")
    number = node.get_attribute("data-id")
    node.focus()
    expect(node).to_be_focused()
    page.keyboard.press("ArrowRight")
    reached = page.locator(f".beam g:focus:not([data-id='{number}'])")
    expect(reached).to_have_attribute("aria-label", re.compile("go on from here"))
    page.go_back()
    page.locator(".translation", has_text="ab").wait_for()


def test_units_are_found_by_a_part_of_the_text_and_by_a_feature(studio: Any) -> None:
    text = "the cat sat\nthe dog sat\nthe cat ran\n" * 12
    one = studio(f"#/inside?model=lm&look=neurons&text={quote(text)}")
    page = one.page
    page.get_by_text("Find units").click()
    page.get_by_label("part", exact=True).first.fill("cat")
    page.get_by_label("on from").fill("0.01")
    with one.answered("/v1/explain", lambda body: body["options"].get("threshold") == 0.01):
        page.keyboard.press("Enter")
    expect(page.locator(".units [role=status]")).to_have_count(0)  # those of the threshold before are no more
    unit = page.locator(".units .words-row button").first
    part, number = unit.inner_text().split()[:2]
    unit.click()
    layer, letter = part.split(".")
    one.address_has(**{"o.units": number, "o.layer": layer, "o.part": letter})
    page.locator(".drawn h3", has_text=f"unit h {number} of layer").first.wait_for()
    page.get_by_role("combobox", name="that are").select_option("feature")
    page.get_by_label("feature", exact=True).fill("line-position")
    page.get_by_text("A linear probe over all states").wait_for()
    expect(page.locator(".units .words-row button.quiet")).to_have_count(10)
    page.get_by_role("combobox", name="that are").select_option("near")
    page.locator(".units table strong").first.wait_for()
    expect(page.locator(".units table tbody tr").first).to_have_text(re.compile(r"^1\.000"), use_inner_text=True)


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
    expect(page.locator(".curves .u-series .u-label")).to_have_text(["updates", "classify", "lm"])  # both are drawn
    with page.expect_download() as got:
        page.locator(".save button", has_text="SVG").click()
    saved = Path(got.value.path()).read_text()
    assert saved.count("<polyline ") == 2 and "classify" in saved and "NaN" not in saved
    with page.expect_download() as got:
        page.locator(".save button", has_text="PNG").click()
    assert Path(got.value.path()).read_bytes().startswith(b"\x89PNG")
    page.locator("summary", has_text="classify: recipe").click()
    expect(page.locator("th[scope=row]", has_text="task").first).to_be_visible()


def test_an_experiment_runs_from_the_page(studio: Any) -> None:
    page = studio("#/lab?experiment=bptt").page
    page.get_by_role("button", name="Run").click()
    page.locator(".drawn .panel").first.wait_for(timeout=120_000)
    expect(page.locator(".drawn")).to_contain_text("verdict", use_inner_text=True)


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
        page.get_by_label("name of the run").fill("wrong")
        page.locator(".controls textarea").fill("model.hidden=-4")
        page.get_by_role("button", name="Train").click()
        failed = page.locator("tr", has_text="wrong").locator("td", has_text="failed")
        failed.wait_for(timeout=120_000)
        expect(failed).to_contain_text("hidden")
        page.get_by_label("name of the run").fill("long")
        page.locator(".controls textarea").fill("train.steps=100000000\nmodel.hidden=4\ntrain.log_every=1")
        page.get_by_role("button", name="Train").click()
        row = page.locator("tr", has_text="long")
        row.locator("td.number", has_text=re.compile("[1-9]")).wait_for(timeout=120_000)  # it saves itself then
        for button, state in (("Stop", "stopped"), ("Resume", "running"), ("Stop", "stopped")):
            row.get_by_role("button", name=button).click(timeout=120_000)
            row.locator("td", has_text=state).wait_for(timeout=120_000)
        refused = running.post("/v1/runs", task="classify", name="second", train=["../secret.csv"])
        assert refused.status_code == 400 and "there is no file" in refused.json()["error"]["message"]
        again = running.post("/v1/runs", task="classify", name="first", train=["classify.csv"])
        assert again.status_code == 409
        named = running.post("/v1/runs", task="classify", name="x", settings=["model.vectors=/etc/passwd"])
        assert named.status_code == 400
