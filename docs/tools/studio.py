"""Takes the pictures of docs/studio.md: every view of a Studio that is being served, one picture each.

elman serve runs/shakespeare runs/ewt runs/reviews runs/dates runs/shapes --runs runs
python docs/tools/studio.py http://127.0.0.1:8000 IMAGE --out docs

The models are found by their task, a classifier before a tagger; IMAGE is what the captioner is shown.
"""

import argparse
import io
import json
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

SIZE = {"width": 1180, "height": 820}
COLOURS = 128  # of a picture, which is a third as large then
TEXT = "a film that is neither dull nor long , with a fine cast and a story that is worth being told ."
SPEECH = """ROMEO:
But, soft! what light through yonder window breaks?
It is the east, and Juliet is the sun.
Arise, fair sun, and kill the envious moon,
Who is already sick and pale with grief,
That thou her maid art far more fair than she.
"""

VIEWS: dict[str, tuple[str, str, str]] = {
    "write": (
        "lm",
        f"prompt={quote('ROMEO:' + chr(10))}&length=420&temperature=0.6&seed=2&token=0:65",
        ".alternatives li",
    ),
    "read": ("classify", f"text={quote(TEXT)}&why=1&o.method=occlusion", ".drawn .panel"),
    "translate": ("translate", f"text={quote('lundi 16 novembre 2026')}&tree=1&beam=3", ".beam g"),
    "pictures": ("caption", "", ".looking rect"),
    "inside": (
        "lm",
        f"look=neurons&text={quote(SPEECH)}&find=feature&feature=line-position",
        ".units button",
    ),
    "train": ("", "runs={runs}&figure=train+loss", ".curves canvas"),
    "lab": ("", "experiment=bptt", ".drawn .panel"),
}
"""The task of the model, what stands in the address, and what is waited for."""


def act(page: Any, view: str, image: Path) -> None:
    """What is done by hand before a picture is taken."""
    if view == "pictures":
        page.locator("input[type=file]").set_input_files(image)
        words = page.locator(".looking .words-row button")
        words.nth(1).wait_for()
        words.last.click()
    if view == "lab":
        page.get_by_role("button", name="Run").click()


def main() -> None:
    """Take them all."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("image", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", choices=list(VIEWS), nargs="*", default=list(VIEWS))
    asked = parser.parse_args()
    with urlopen(f"{asked.url}/v1/models") as answer:
        models = {card["task"]: card["id"] for card in reversed(json.load(answer)["data"])}
    with urlopen(f"{asked.url}/v1/runs") as answer:
        runs = ",".join(run["id"] for run in json.load(answer)["runs"] if run["task"] in ("tag", "classify"))
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--headless", "--no-sandbox"])
        for view in asked.only:
            task, place, awaited = VIEWS[view]
            page = browser.new_context(viewport=SIZE).new_page()
            page.set_default_timeout(180_000)
            named = f"model={models[task]}&" if task else ""
            page.goto(f"{asked.url}/#/{view}?{named}{place.format(runs=runs)}")
            page.wait_for_selector("main[id]")
            act(page, view, asked.image)
            page.locator(awaited).first.wait_for()
            page.wait_for_timeout(1500)
            taken = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            taken.quantize(COLOURS, dither=Image.Dither.NONE).save(asked.out / f"studio-{view}.png", optimize=True)
            page.context.close()
        browser.close()


if __name__ == "__main__":
    main()
