# %% [markdown]
# # 5. Language models that write, and what else they do
#
# This lesson follows the fifth set of notes: what a language model is, how it learns from a text without end, the
# smallest one that can be written down, how text is drawn from it, and the other uses of a recurrent network, always
# beside a baseline.

# %% [markdown]
# ## Order matters
#
# A language model gives a text a probability, word by word:
#
# ```
# p(w_1 ... w_T) = p(w_1) p(w_2 | w_1) ... p(w_T | w_1 ... w_T-1)
# ```
#
# Python comes with its own manual, 465,000 characters of English. A model of its words prefers sentences whose words
# are in order:

# %%
from pydoc_data.topics import topics

import elman

PAGES = 60  # fast: 3
UPDATES = 300  # fast: 3
manual = [topics[name] for name in sorted(topics)][:PAGES]
words = elman.fit(
    "lm",
    train=manual,
    settings={
        "text.kind": "words",
        "text.lowercase": True,
        "text.min_count": 3,
        "model.cell": "lstm",
        "model.layers": 1,
        "model.hidden": 96,
        "model.embedding": 96,
        "model.tied": True,
        "batch.size": 16,
        "batch.steps": 32,
        "train.steps": UPDATES,
        "train.lr": 8e-3,
        "baseline.order": 3,
    },
    verbose=False,
)
words

# %%
in_order, shuffled = "the value of the object is a string", "string a is object the of value the"
scores = {text: sum(token.log_prob for token in words.score(text)) for text in (in_order, shuffled)}
for text, score in scores.items():
    print(f"log p = {score:7.2f}   {text}")

# %% [markdown]
# The same probabilities say what comes next; on the command line it is `elman predict MODEL "the value of" --top 4`:

# %%
for start in ("the value of", "raise a", "is not"):
    print(start, "...", ", ".join(f"{one.token} {one.probability:.0%}" for one in words.predict(start, top=4)))

# %% [check]
assert scores[in_order] > scores[shuffled] + 5
assert words.predict("the value of", top=1)[0].token == "the"

# %% [markdown]
# ## A text without end
#
# The loss of a whole book cannot be differentiated at once. Truncated backpropagation reads it in windows of k steps:
# the state is carried from window to window, the gradient stops at the border. Windows may be regular, of random
# length, or one window may be all the text (`batch.bptt=regular`, `random`, `full`). How long must they be?

# %% The loss on held-out text by the length of the window
from elman.draw.panels import Line, Lines
from elman.draw.picture import figure

CHARACTERS = 100_000  # fast: 3_000
BUDGET = 240_000  # fast: 4_000
text = "\n".join(manual)[:CHARACTERS]
CELL = {"model.cell": "gru", "model.layers": 1, "model.hidden": 64, "model.embedding": 16, "baseline.order": 0}
CELL |= {"model.dropout": 0, "model.output_dropout": 0, "train.lr": 1e-2, "batch.size": 16}
STEPS = [4, 10, 50]
reached = []
for steps in STEPS:
    settings = CELL | {
        "batch.steps": steps,
        "train.steps": BUDGET // (16 * steps),
    }  # every run reads as many characters
    reached.append(elman.fit("lm", train=[text], settings=settings, verbose=False).report["dev"]["loss"])
figure(Lines("loss", [Line("GRU of 64 units", STEPS, reached)], "steps of a window", "nats a character"))

# %% [markdown]
# Every run reads as many characters. Windows of {{STEPS[0]}} characters end at {{reached[0]:.2f}} nats a character,
# of {{STEPS[-1]}} at {{reached[-1]:.2f}}. Short windows make more updates, each from less of the gradient.
#
# ## The minimal character model
#
# All of it fits in a hundred lines of NumPy: forward pass, backward pass, clipping at ±5, Adagrad, sampling. It is
# `elman/lab/minimal_numpy.py`; this is its heart:

# %%
import inspect

from elman.lab import minimal_numpy

print(inspect.getsource(minimal_numpy.loss_and_gradients))

# %% [markdown]
# What is it to learn? A sonnet will do (the eighteenth):

# %%
SONNET = """Shall I compare thee to a summer's day?
Thou art more lovely and more temperate:
Rough winds do shake the darling buds of May,
And summer's lease hath all too short a date;
Sometime too hot the eye of heaven shines,
And often is his gold complexion dimm'd;
And every fair from fair sometime declines,
By chance or nature's changing course untrimm'd;
But thy eternal summer shall not fade,
Nor lose possession of that fair thou ow'st;
Nor shall death brag thou wander'st in his shade,
When in eternal lines to time thou grow'st:
So long as men can breathe or eyes can see,
So long lives this, and this gives life to thee.
"""

# %%
import numpy as np

UPDATES = 6000  # fast: 60
chance = np.random.default_rng(0)
characters = sorted(set(SONNET))
ids = [characters.index(one) for one in SONNET]
weights = minimal_numpy.draw_weights(len(characters), 64, chance)
losses = []
for number, loss in enumerate(minimal_numpy.train(weights, ids, UPDATES), 1):
    losses.append(loss / 25)
    if number in (1, UPDATES // 10, UPDATES):
        written = minimal_numpy.sample(weights, np.zeros(64), ids[0], 80, chance)
        print(f"--- after {number} windows, {np.mean(losses[-100:]):.2f} nats a character")
        print("".join(characters[one] for one in written))

# %% [markdown]
# While it reads along, it is surprised by little at last, {{np.mean(losses[-100:]):.2f}} nats a character, though
# left to itself it stumbles. That is no art: a network with {{sum(one.size for one in weights.values()):,}} weights
# learns {{len(SONNET)}} characters. To copy is the simplest way to continue, and a held-out text shows whether that
# is all. Elman's layer learns the same from the same weights, window by window, and faster where many windows stand
# side by side:

# %%
WINDOWS = 400  # fast: 20
minimal = elman.lab.run("minimal", updates=WINDOWS)
print(minimal.verdict)

# %% [check]
assert np.mean(losses[-100:]) < 0.5 < 2.5 < losses[0] and minimal.data.difference < 1e-6

# %% [markdown]
# ## Drawing from a distribution
#
# To take the likeliest symbol each time says the same thing again and again. To draw one, add the probabilities up,
# draw a number u between 0 and 1, and take the first symbol whose sum is above u: each symbol has a stretch of [0, 1)
# as long as it is likely.

# %% The cumulative distribution: a number drawn on the vertical axis finds its symbol
p = np.array([0.1, 0.45, 0.05, 0.3, 0.1])
cumulative = np.cumsum(p)
edges = [value for symbol in range(5) for value in (symbol, symbol + 1)]
heights = [value for height in cumulative for value in (float(height), float(height))]
u = 0.72
found = int(np.argmax(cumulative > u))
figure(
    Lines(
        "cumulative distribution",
        [Line("cumulative", edges, heights), Line(f"u = {u}", [0, found, found], [u, u, 0], dashed=True)],
        "symbol",
        "probability",
        y_range=(0, 1.05),
    )
)

# %%
drawn = np.searchsorted(cumulative, chance.random(100_000), side="right")
shares = np.bincount(drawn, minlength=5) / len(drawn)
for symbol in range(5):
    print(f"symbol {symbol}: probability {p[symbol]:.2f}, drawn {shares[symbol]:.3f}")

# %% [markdown]
# Elman's sampler does exactly this, in an order that is written down to the bit ([sampling](../sampling.md)), after a
# temperature has divided the logits: below 1 it makes the likely likelier.

# %%
from elman.decode import Sampling, next_ids, uniform

logits = np.tile(np.log(p), (2000, 1))  # B x V
numbers = uniform(0, np.arange(2000), 0)  # B: seed, stream, step
for temperature in (0.3, 1.0, 3.0):
    many = next_ids(logits, Sampling(temperature=temperature), None, numbers)
    print(f"temperature {temperature}: {(np.bincount(many, minlength=5) / 2000).round(2)}")

# %% [check]
assert np.abs(shares - p).max() < 0.01 and found == 3

# %% [markdown]
# ## Poems, formulas, programs
#
# A character model learns whatever regularity a text has: words, line ends, brackets that close. Three texts, three
# small models: the manual's prose, formulas made by a small grammar, and the C++ headers that come with PyTorch.

# %%
import random
from pathlib import Path

import torch

GRAMMAR = {
    "lemma": [r"\begin{lemma} Let $set$ be a ring and $map$. Then $formula$. \end{lemma}"],
    "set": ["X", "Y", r"\mathcal{F}", r"\mathbb{Z}"],
    "map": [r"f : set \to set", r"g \colon set \times set \to set"],
    "formula": [r"\frac{number}{number} \in set", r"\sum_{i=number}^{n} x_i = number", r"set \subset set"],
    "number": list("0123456789"),
}


def expand(symbol, chance):
    """A random text of the grammar."""
    words = chance.choice(GRAMMAR[symbol])
    for name in ("formula", "map", "set", "number"):
        while name in words and name != symbol:
            words = words.replace(name, expand(name, chance), 1)
    return words


latex_chance = random.Random(0)
headers = Path(torch.__file__).parent / "include" / "torch" / "csrc" / "api" / "include" / "torch"
TEXTS = {
    "prose": "\n".join(manual)[:300_000],
    "latex": "\n".join(expand("lemma", latex_chance) for _ in range(1500)),
    "c++": "\n".join(path.read_text(encoding="utf-8") for path in sorted(headers.rglob("*.h")))[:300_000],
}
UPDATES = 250  # fast: 2
LENGTH = 300_000  # fast: 4_000
EVERY = 50  # fast: 1
models = {}
for name, learned in TEXTS.items():
    settings = CELL | {"model.hidden": 128, "batch.size": 32, "batch.steps": 64, "train.steps": UPDATES}
    settings |= {"train.evaluate_every": EVERY, "data.dev_characters": 10_000}
    model = models[name] = elman.fit("lm", train=[learned[:LENGTH]], settings=settings, out=name, verbose=False)
    print(f"--- {name}, {model.report['dev']['loss']:.2f} nats a character")
    print(model.generate("\n", length=240, sampling=Sampling(temperature=0.7, seed=3))[0].strip(), "\n")

# %% [markdown]
# At each evaluation a model writes a little, always from the same seed, and the log keeps it. So the prose came:

# %%
import json

log = [json.loads(line) for line in Path("prose/log.jsonl").read_text(encoding="utf-8").splitlines()]
samples = [record for record in log if record["kind"] == "sample"]
for record in samples:
    print(f"update {record['step']:3}: {record['text'][:70]!r}")

# %% [markdown]
# Minutes instead of seconds, and two layers instead of one, make far better ones: `elman train lm sonnets`,
# `elman train lm python`. [The guide](../language-models.md) has their losses, each beside a Kneser-Ney model that
# was counted on the same text.
#
# What a model has read it keeps in its state, and another task can begin there. The states of the model of prose after
# a line, which learned nothing of formulas or programs, go into a linear layer that is to say where the line is from:

# %%
LINES = 150  # fast: 6
line_chance = random.Random(0)
lines = []
for label, text in enumerate(TEXTS.values()):
    lines += [(one, label) for one in line_chance.sample([one for one in text.splitlines() if len(one) > 30], LINES)]
line_chance.shuffle(lines)
states = models["prose"].states([one[:80] for one, _ in lines])
last = torch.tensor(np.array([trace.final["1.h"] for trace in states]))  # B x H
labels = torch.tensor([label for _, label in lines])
half = len(lines) // 2
torch.manual_seed(0)
layer = torch.nn.Linear(last.shape[1], len(TEXTS))
optimizer = torch.optim.Adam(layer.parameters(), lr=1e-2)
for _ in range(200):
    loss = torch.nn.functional.cross_entropy(layer(last[:half]), labels[:half])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
told_apart = (layer(last[half:]).argmax(dim=1) == labels[half:]).float().mean().item()
print(f"{told_apart:.1%} of {len(lines) - half} other lines right; chance is a third")

# %% [check]
assert told_apart > 0.7 and len(samples) == 5

# %% [markdown]
# To tune the layers as well, a classifier begins with them: `model.start` ([language models under other
# tasks](../transfer.md)).
#
# ## Beyond writing: classes and tags, beside baselines
#
# One rule before all others: compare with the most frequent class. A tagger with 90 % is worth little where every
# word's most frequent tag gets 89. Elman's reports always show both. First a classifier of opinions, in which single
# words mislead: `terribly exciting` is praise.

# %%
GOOD, BAD = ["exciting", "funny", "moving", "clever"], ["boring", "silly", "dull", "flat"]
STRONG = ["terribly", "awfully", "wonderfully", "really"]
FRAMES = ["the film was {}", "what a {} story", "i found it {}", "{} from the first scene to the last"]


def opinion(chance):
    good = chance.random() < 0.6
    word, negated = chance.choice(GOOD if good else BAD), chance.random() < 0.3
    said = f"{'not ' if negated else ''}{chance.choice(STRONG)} {word}"
    return chance.choice(FRAMES).format(said), "good" if good != negated else "bad"


OPINIONS = 1500  # fast: 60
opinion_chance = random.Random(0)
opinions = [opinion(opinion_chance) for _ in range(OPINIONS)]
pooled = {}
for pooling in ("last", "mean", "max"):
    settings = {"text.kind": "words", "model.pooling": pooling, "model.hidden": 32, "model.embedding": 16}
    settings |= {"model.bidirectional": False, "train.epochs": 4, "train.lr": 5e-3}
    classifier = elman.fit("classify", train=opinions, settings=settings, verbose=False)
    columns, rows = classifier.report.table("dev")
    pooled[pooling] = classifier.report["dev"]["accuracy"]
    print(f"{pooling:5}", ", ".join(f"{row[0]} {row[1]}" for row in rows))

# %% [markdown]
# A text's vector may be the last state, the mean of all states, or the largest value of each unit. With `not` before
# the word that it turns round, each can do it here, and the most frequent class cannot.

# %% [check]
assert min(pooled.values()) > 0.9

# %% [markdown]
# Then a tagger, which says something of every word. Words such as `fish`, `watch` and `light` are nouns or verbs or
# adjectives; which, is told by those around them. A word's most frequent tag is the baseline:

# %%
AMBIGUOUS = ["fish", "watch", "light", "play", "back", "water"]
WORDS = {
    "DET": ["the", "a", "this", "my"],
    "PRON": ["they", "we", "you"],
    "ADJ": ["old", "small", "light", "back"],
    "NOUN": ["man", "boat", "door", "garden", *AMBIGUOUS],
    "VERB": ["see", "find", "paint", *AMBIGUOUS],
    "ADV": ["often", "now", "well"],
}
PATTERNS = [
    "PRON VERB DET NOUN",
    "PRON ADV VERB DET ADJ NOUN",
    "DET NOUN PRON VERB",
    "VERB DET ADJ NOUN ADV",
    "PRON VERB ADV",
]
PATTERNS += ["VERB DET NOUN", "PRON VERB DET NOUN PRON VERB"]


def tagged(chance):
    tags = chance.choice(PATTERNS).split()
    return [chance.choice(WORDS[tag]) for tag in tags], tags


SENTENCES = 800  # fast: 40
EPOCHS = 4  # fast: 1
tag_chance = random.Random(0)
sentences = [tagged(tag_chance) for _ in range(SENTENCES)]
tagger = elman.fit(
    "tag",
    train=sentences,
    test=[tagged(tag_chance) for _ in range(200)],
    settings={"model.hidden": 32, "model.embedding": 16, "train.epochs": EPOCHS, "train.lr": 1e-2},
    verbose=False,
)
tagger

# %% Tags and how sure the tagger is of them
elman.inspect.explain(tagger, ["they watch the light boat"], view="marginals")

# %% [check]
baseline = tagger.report.table("test")[1][1]
assert tagger.report["test"]["accuracy"] > 0.95 > 0.01 * float(baseline[1].rstrip(" %")), baseline

# %% [markdown]
# The tagger has {{tagger.report["test"]["accuracy"]:.1%}} of the test's words right; the table has the baseline
# beside it. On real text the gap is smaller than it sounds, since most words are not ambiguous:
# [the guide](../tag.md) has the figures.
#
# ## Exercises
#
# [The solutions](solutions.md#lesson-5) are tests.
#
# 1. The notes' rule for drawing says: the first index for which u is larger than the sum. Show with p = (0.5, 0.5)
#    that it must be the other way round.
# 2. Clip a gradient by value and by norm. Which of the two changes its direction? Show it with (30, 4).
# 3. Draw with top-k and top-p from the distribution above; which symbols are left?
# 4. Write a sampler that never says the same three characters twice (a stop list of trigrams), and let the minimal
#    model write with it.
# 5. Compute the perplexity of the most frequent class: a model that always gives the words' own shares.
