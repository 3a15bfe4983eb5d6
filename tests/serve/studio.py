"""The Studio in a real browser, as tests see it: the page, what it said, and whom it asked."""

from typing import Any
from urllib.parse import parse_qs, urlsplit


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
