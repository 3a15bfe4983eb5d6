"""How long one waits for the Studio, measured in a browser: the first picture, a typed word, a long text that scrolls.

python benchmarks/studio.py [MODEL...]

Without models, a tagger (bidirectional LSTM 256 over words and characters) and a character model (2 x LSTM 256) with
random weights are served. Needs playwright and chromium (`make browser`); nothing else should be busy on the machine.
"""

import json
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from elman.bench.serving import write_models

ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
OPENED, TOKENS = 7, 20_000
WORDS = ["the", "old", "dog", "of", "my", "brother", "barks", "at", "every", "cat", "in", "town"]
"""None of them is a part of one before it: when it is seen, it was answered."""

# From the event of a key to the picture of an answer that has the word.
TYPED = """(word) => new Promise((done) => {
  const box = document.querySelector("main textarea"), area = document.querySelector("main [aria-live]");
  let since = 0;
  box.addEventListener("keydown", (event) => { since = event.timeStamp; }, {once: true});
  const watch = new MutationObserver(() => {
    if (!since || !area.textContent.includes(word)) return;
    watch.disconnect();
    requestAnimationFrame(() => {  // which is called before the picture is made, and the message comes behind it
      const after = new MessageChannel();
      after.port1.onmessage = () => done(performance.now() - since);
      after.port2.postMessage(0);
    });
  });
  watch.observe(area, {childList: true, subtree: true, characterData: true});
})"""

# Down through the page, as far in each picture as a wheel that is turned fast.
SCROLLED = """(pixels) => new Promise((done) => {
  const times = [];
  let last = performance.now(), most = 0;
  const step = (now) => {
    times.push(now - last);
    last = now;
    most = Math.max(most, document.querySelectorAll("[data-place]").length);
    scrollBy(0, pixels);
    if (times.length < 400 && innerHeight + scrollY < document.body.scrollHeight - 1) requestAnimationFrame(step);
    else done({times: times.slice(1), most});
  };
  requestAnimationFrame(step);
})"""


@contextmanager
def service(models: Sequence[str]) -> Iterator[str]:
    """The address of a service of some models."""
    line = [sys.executable, "-m", "elman", "serve", *models, "--max-tokens", str(TOKENS), "--port", "0"]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.match(r"(http://\S+) serves", process.stdout.readline())
        assert found is not None, "the service did not start"
        yield found[1]
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def traced(browser: Any, page: Any) -> Iterator[list[float]]:
    """The processor time of every task of the page's main thread, in milliseconds, once it is over.

    It says more than the clock where other programs are busy.
    """
    tasks: list[float] = []
    browser.start_tracing(page=page, categories=["toplevel"])
    yield tasks
    events = json.loads(browser.stop_tracing())["traceEvents"]
    threads = {(one["pid"], one["tid"]): one["args"]["name"] for one in events if one.get("name") == "thread_name"}
    for one in events:
        main = threads.get((one["pid"], one["tid"])) == "CrRendererMain"
        if main and one.get("name") == "ThreadControllerImpl::RunTask" and "tdur" in one:
            tasks.append(one["tdur"] / 1e3)


def first_pictures(browser: Any, url: str) -> tuple[list[float], list[float]]:
    """Milliseconds to the first picture with something in it, and to the view, of a browser that knows nothing yet."""
    painted, viewed = [], []
    for _ in range(OPENED + 1):
        context = browser.new_context()
        page = context.new_page()
        page.add_init_script(
            "new MutationObserver((_, watch) => { if (document.querySelector('main[id]')) { watch.disconnect();"
            " requestAnimationFrame(() => setTimeout(() => { window.viewed = performance.now(); })); } })"
            ".observe(document, {childList: true, subtree: true});"
        )
        page.goto(url)
        page.wait_for_selector("main[id]")
        page.wait_for_timeout(300)
        viewed.append(page.evaluate("window.viewed"))
        painted.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
        context.close()
    return painted[1:], viewed[1:]  # the first waits until the service has looked at its models


def typed_words(browser: Any, url: str, tagger: str) -> tuple[list[float], list[float]]:
    """Milliseconds from the key that ends a word to the picture with its tag, of some words; and processor time."""
    page = browser.new_context().new_page()
    page.goto(f"{url}/#/read?model={tagger}")
    page.wait_for_selector("main textarea")
    page.keyboard.press("/")
    found, busy = [], []
    for word in WORDS:
        page.keyboard.type(" " + word[:-1], delay=60)
        page.wait_for_timeout(300)  # all that was typed before is answered
        page.evaluate(f"window.typed = ({TYPED})('{word}'); undefined")
        with traced(browser, page) as tasks:
            page.keyboard.press(word[-1])
            found.append(page.evaluate("window.typed"))
        busy.append(sum(tasks))
    page.context.close()
    return found[1:], busy[1:]  # the first is the first answer of all


def scrolled(browser: Any, url: str, writer: str) -> tuple[list[float], list[float], int, int]:
    """Milliseconds of each picture while a long text scrolls; tasks of its thread; tokens drawn at most; tokens."""
    page = browser.new_context(viewport={"width": 1300, "height": 900}).new_page()
    page.set_default_timeout(300_000)
    page.goto(f"{url}/#/write?model={writer}&prompt=the&temperature=1&length={TOKENS}")
    page.wait_for_selector(".written .save")
    tokens = page.evaluate("document.querySelector('.written .text').textContent.length")
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_timeout(500)
    with traced(browser, page) as tasks:
        found = page.evaluate(f"({SCROLLED})(90)")
    page.context.close()
    return found["times"], tasks, found["most"], tokens


def told(times: Sequence[float]) -> str:
    """A few milliseconds in a few words."""
    ordered = sorted(times)
    late = ordered[int(0.95 * (len(ordered) - 1))]
    return f"median {statistics.median(ordered):.0f} ms, 95 % within {late:.0f} ms"


def main(models: Sequence[str]) -> None:
    """Measure, and say what came of it."""
    from playwright.sync_api import sync_playwright

    with TemporaryDirectory(prefix="elman-studio-") as folder:
        if not models:
            write_models(Path(folder))
            models = [f"{folder}/tag", f"{folder}/lm"]
        with service(models) as url, sync_playwright() as started:
            browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
            tagger, writer = Path(models[0]).name, Path(models[1]).name
            painted, viewed = first_pictures(browser, url)
            print(f"first picture of {OPENED} visits: best {min(painted):.0f} ms, {told(painted)}")
            print(f"    with the view in it: best {min(viewed):.0f} ms, {told(viewed)}", flush=True)
            words, busy = typed_words(browser, url, tagger)
            print(f"a typed word of {len(words)}, from key to tag: best {min(words):.0f} ms, {told(words)}")
            print(f"    processor time of the page: {told(busy)}", flush=True)
            times, tasks, drawn, tokens = scrolled(browser, url, writer)
            print(f"{tokens:,} tokens scroll, {len(times)} pictures: {told(times)}; at most {drawn:,} tokens are drawn")
            mean, longest = sum(tasks) / len(times), max(tasks)
            print(f"    processor time of the page: {mean:.1f} ms a picture, longest task {longest:.0f} ms")
            browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
