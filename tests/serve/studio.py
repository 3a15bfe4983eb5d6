"""The Studio in a real browser, as tests see it: the page, what it said, and whom it asked."""

from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.browser import PATIENCE, becomes

DROP = """([name, type, content]) => {
  const bytes = Uint8Array.from(atob(content), (one) => one.charCodeAt(0)), moved = new DataTransfer();
  moved.items.add(new File([bytes], name, {type}));
  return !document.body.dispatchEvent(new DragEvent("drop", {dataTransfer: moved, bubbles: true, cancelable: true}));
}"""


class Studio:
    """The page in the browser, all that it said, and all that it asked of others than its own service."""

    def __init__(self, browser: Any, url: str, **context: Any) -> None:
        self.said: list[str] = []
        self.outside: list[str] = []
        self.url = url
        self.context = browser.new_context(**{"viewport": {"width": 1300, "height": 900}} | context)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", self._note)

    def _note(self, request: Any) -> None:
        if not request.url.startswith((self.url, "data:", "blob:")):
            self.outside.append(request.url)

    def open(self, place: str = "") -> Any:
        """Go to a place of the page and wait until its view is drawn, not one that was there before."""
        self.page.goto(f"{self.url}/{place}")
        view = place.removeprefix("#/").partition("?")[0]
        drawn = f"main#{view}" if view else "main[id]"
        self.page.wait_for_selector(drawn, timeout=120_000)  # the first time, views are imported
        return self.page

    def address(self) -> dict[str, str]:
        """What the address says, as the page itself has it: the browser tells of a change a little later."""
        query = urlsplit(self.page.evaluate("location.hash").removeprefix("#")).query
        return {key: values[0] for key, values in parse_qs(query).items()}

    def address_has(self, **wanted: str | None) -> None:
        """Wait until the address says this; None is for a key that is not in it."""
        becomes(lambda: {key: self.address().get(key) for key in wanted}, wanted)

    def drop(self, name: str, content: bytes, type: str = "") -> None:
        """Drop a file on the page, again until there is something on it that takes one."""
        becomes(lambda: self.page.evaluate(DROP, [name, type, b64encode(content).decode()]), True)

    @contextmanager
    def answered(self, path: str, fits: Callable[[Any], bool]) -> Iterator[None]:
        """Go on when the service has answered a request that fits, not one that the page has sent on the way to it."""

        def is_it(response: Any) -> bool:
            return bool(response.url == self.url + path and fits(response.request.post_data_json))

        with self.page.expect_response(is_it):
            yield
