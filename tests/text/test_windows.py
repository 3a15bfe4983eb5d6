"""Long texts are cut between sentences, else between words."""

from elman.text.windows import windows


def test_windows() -> None:
    def count(text: str) -> int:
        return len(text.split())

    text = "a b c. d e? f g h i j k; l"
    found = windows(text, 3, count)
    assert found == ["a b c.", "d e?", "f g h", "i j k;", "l"]
    assert windows(text, 20, count) == [text]
    assert windows("犬。猫。鳥がいる。", 4, len) == ["犬。猫。", "鳥がいる。"]
    assert windows("犬。猫。鳥がいる。", 4, len, inside=True) == ["犬。猫。", "鳥が", "いる。"]
    assert windows("a b c d e", 4, count) == ["a b c", "d e"]  # not four and one
    assert windows("aaaaaaa b", 3, len) == ["aaaaaaa", "b"]
