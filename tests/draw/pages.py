"""Pages for the tests: one with every kind of panel, one of a long text."""

import math
import random
import re
from typing import Any

from elman.draw.panels import (
    Bars,
    Column,
    HeatMap,
    Line,
    Lines,
    Node,
    Note,
    Page,
    Point,
    Points,
    Table,
    Token,
    Tokens,
    Tree,
)

ODD = "</script><b>&amp; \"quotes\" 'too' \x00\x1b[31m \u202eabc\u202c שלום \ud800 🦉\u200d\n<!-- \t$x$ -->"
"""What is hard to write: tags, quotes, control characters, both directions, half a character, an owl."""
SENTENCE = "It was a bright cold day in April, and the clocks were striking thirteen."
RANKS = ("top 10", "top 100", "top 1,000", "below")


def every_panel(title: str = "ranks: how far down its list the model had each token") -> Page:
    """A page of two columns with all kinds of panels."""
    return Page(title, "language model, LSTM, 2 layers of 256, 1.3 million weights", [_first(), _second()])


def _first() -> Column:
    words = re.findall(r"\w+|[,.]", SENTENCE)
    buckets = [1, 0, 0, 2, 1, 0, 0, 1, 0, 0, 0, 3, 0, 2, 3, 0]
    chances = ["0.412", "0.207", "0.101", "0.055", "0.031", "0.018", "0.009", "0.004", "0.002", "0.001"]
    tip = {
        "rank": "17",
        "p": "0.0123",
        **dict(zip(["the", "a", "was", "it", "in", "of", "and", "is", "to", ","], chances, strict=True)),
    }
    ranks = [
        Token(word, bucket, tip=tip, marked=word == "thirteen") for word, bucket in zip(words, buckets, strict=True)
    ]
    letters = "the cat sat\non the mat  and purred"
    swings = [
        Token(letter, math.sin(place / 3), tip={"unit 14": f"{math.sin(place / 3):.2f}"})
        for place, letter in enumerate(letters)
    ]
    source = ["das", "haus", "steht", "am", "ende", "der", "langen", "straße", "."]
    target = ["the", "house", "stands", "at", "the", "end", "of", "the", "long", "road", "."]
    near = [
        [math.exp(-((row * 0.9 - column) ** 2) / 1.4) for column in range(len(source))] for row in range(len(target))
    ]
    wide = [[math.sin(row * 0.7 + column / 4) * (0.4 + row / 12) for column in range(60)] for row in range(8)]
    return Column(
        SENTENCE,
        [
            Tokens(
                "Ranks",
                ranks,
                "buckets",
                RANKS,
                spaced=True,
                note="Most words are among the first ten; the last is not.",
            ),
            Tokens("What unit 14 does", swings, "diverging", ("-1", "1")),
            Tokens(
                "Saliency",
                [Token(f" {word}", place / 15, tip={"share": f"{place / 15:.2f}"}) for place, word in enumerate(words)],
                "sequential",
                ("little", "much"),
            ),
            HeatMap(
                "Attention",
                near,
                target,
                source,
                marked=[(0, 0), (1, 1), (10, 8)],
                note="A row for each word that was written.",
            ),
            HeatMap(
                "Hidden state",
                wide,
                [f"unit {place}" for place in range(8)],
                list(letters * 2)[:60],
                "diverging",
                high=1.0,
            ),
        ],
    )


def _second() -> Column:
    names = ["location", "person", "organisation", "miscellaneous", "none"]
    steps = list(range(1, 41))
    loss = [3.0 * math.exp(-step / 12) + 0.6 for step in steps]
    curves = [
        Line("LSTM", steps, loss, [y * 0.93 for y in loss], [y * 1.07 for y in loss]),
        Line("GRU", steps, [y * 1.1 + 0.05 * math.sin(step) for y, step in zip(loss, steps, strict=True)]),
        Line("Elman", steps, [y * 1.5 if step != 20 else None for y, step in zip(loss, steps, strict=True)]),
        Line("5-gram", [1, 40], [1.45, 1.45], dashed=True),
    ]
    chance = random.Random(3)
    groups = {
        "animals": ["cat", "dog", "owl", "horse", "cow", "fox"],
        "towns": ["Rome", "Oslo", "Paris", "Kyiv", "Lima"],
        "verbs": ["run", "sit", "think", "write"],
    }
    points = [
        Point(
            place * 2 + chance.gauss(0, 0.6), (place % 2) * 2 + chance.gauss(0, 0.6), word, group, {"nearest": "horse"}
        )
        for place, (group, words) in enumerate(groups.items())
        for word in words
    ]
    return Column(
        "Das Haus steht am Ende der langen Straße.",
        [
            Bars("Scores", names, [2.31, 0.92, -0.4, -1.2, 0.05], [0.2, 0.1, 0.15, 0.3, 0.0], "nats"),
            Lines(
                "Loss",
                curves,
                "epoch",
                "bits per character",
                log_y=True,
                note="Bands are one standard deviation of five runs.",
            ),
            Table(
                "Runs",
                ["cell", "weights", "bits per character", "best epoch"],
                [["LSTM", "1.3M", "1.482", "34"], ["GRU", "1.0M", "1.497", "31"], ["Elman", "0.4M", "1.883", "40"]],
            ),
            Tree("Beam search", beam_tree(), note="Thick frames are finished hypotheses, dashed ones were pruned."),
            Points("Embeddings", points, "first component", "second component"),
            Note("What to look at", "The model has learnt where words begin.\n\nIt has not learnt what clocks do."),
        ],
    )


def beam_tree() -> list[Node]:
    """A tree of hypotheses, some of them pruned."""
    told: list[tuple[int | None, str, float, str]] = [
        (None, "<s>", 1.0, "kept"), (0, "the", 0.62, "kept"), (0, "a", 0.21, "kept"), (0, "this", 0.04, "pruned"),
        (1, "house", 0.55, "kept"), (1, "building", 0.12, "pruned"), (2, "house", 0.18, "pruned"),
        (4, "stands", 0.41, "kept"), (4, "is", 0.22, "kept"), (7, "at the end", 0.33, "finished"),
        (8, "standing", 0.09, "pruned"), (8, "at", 0.17, "finished"),
    ]  # fmt: skip
    return [
        Node(place, parent, text, value, state, {"log p": f"{math.log(value):.2f}"})
        for place, (parent, text, value, state) in enumerate(told)
    ]


def long_text(tokens: int = 3000, alternatives: int = 10) -> Page:
    """A page of one long text, with what a language model would have written in the place of each token."""
    chance = random.Random(5)
    words = ["".join(chance.choices("etaoinshrdlu", k=chance.randint(1, 9))) for _ in range(4000)]
    weights = [1 / (place + 1) for place in range(len(words))]
    drawn = chance.choices(words, weights, k=tokens)

    def tip() -> dict[str, str]:
        others = chance.choices(words, weights, k=alternatives)
        return {"rank": str(chance.randint(1, 5000)), "p": f"{chance.random():.4f}"} | {
            f" {word}": f"{chance.random() ** 4:.4f}" for word in others
        }

    text = [Token(f" {word}", chance.randint(0, 3), tip()) for word in drawn]
    return Page("ranks", "a model", [Column("a text", [Tokens("ranks", text, "buckets", RANKS)])])


def odd_page(text: str) -> Page:
    """A page that has a text wherever there can be one."""
    tip: dict[str, str] = {text: text}
    panels: list[Any] = [
        Tokens(
            text, [Token(text, 0.5, tip), Token(text, None, tip, marked=True)], "diverging", (text, text), note=text
        ),
        Tokens(text, [Token(text, 1, tip)], "buckets", (text, text), spaced=True, note=text),
        HeatMap(text, [[0.1, 0.9]], [text], [text, text], note=text),
        Bars(text, [text], [1.0], [0.1], text, text),
        Lines(text, [Line(text, [1, 2], [1.0, 2.0])], text, text, note=text),
        Table(text, [text], [[text]], text),
        Tree(text, [Node(0, None, text, 0.5, text, tip), Node(1, 0, text)], text),
        Points(text, [Point(0, 0, text, text, tip)], text, text, text),
        Note(text, text),
    ]
    return Page(text, text, [Column(text, panels), Column("", panels)])
