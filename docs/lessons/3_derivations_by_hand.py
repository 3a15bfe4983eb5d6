# %% [markdown]
# # 3. Derivations by hand
#
# This lesson follows the third set of notes: backpropagation through time with every derivative written out, networks
# that read both ways, the shapes of what layers give back, automata, and BLEU. What is derived on paper is computed
# in NumPy and compared with autograd, to the last digits.

# %% [markdown]
# ## From a word to a vector
#
# A one-hot vector w has a 1 at the place of its word. A matrix E times it is a column of E: learning embeddings is
# learning E, and nobody multiplies by all those zeros.

# %%
import numpy as np

E = np.array([[17, 23, 4, 10, 11], [24, 5, 6, 12, 18], [1, 7, 13, 19, 25]])  # E x V: a column for each of 5 words
w = np.array([0, 0, 0, 1, 0])
print(E @ w, "is", E[:, 3])

# %% [markdown]
# ## The network, and its loss
#
# ```
# h_t = σ(W_h h_t-1 + W_e e_t)        h_0 = 0
# q_t = U h_t,  ŷ_t = softmax(q_t)
# L_t = -log ŷ_t[y_t]                 y_t is the word that came next
# ```
#
# It stands in one file that can be read in a sitting, `elman/lab/bptt_numpy.py`, in these letters. The forward pass:

# %%
import inspect

from elman.lab import bptt_numpy

print(inspect.getsource(bptt_numpy.forward))

# %% [markdown]
# ## Softmax and cross-entropy
#
# The derivative of ŷ_k by q_l is ŷ_k (1 - ŷ_k) on the diagonal and -ŷ_k ŷ_l beside it. With the derivative of the
# logarithm before it, nearly everything cancels: ∂L/∂q = ŷ - y. Both against differences of the function itself:

# %%
chance = np.random.default_rng(0)
q, y, small = chance.normal(size=4), 2, 1e-6
predicted = bptt_numpy.softmax(q)
jacobian = np.diag(predicted) - np.outer(predicted, predicted)
moved = [(bptt_numpy.softmax(q + small * one) - bptt_numpy.softmax(q - small * one)) / (2 * small) for one in np.eye(4)]
print(f"the Jacobian is off by {np.abs(jacobian - np.array(moved)).max():.1e}")

by_rule = predicted - np.eye(4)[y]
by_chain = jacobian @ np.where(np.arange(4) == y, -1 / predicted, 0)
print(f"ŷ - y and the chain rule differ by {np.abs(by_rule - by_chain).max():.1e}")

# %% [check]
assert np.allclose(jacobian, moved, atol=1e-8) and np.allclose(by_rule, by_chain)

# %% [markdown]
# ## The three gradients
#
# U is used at each step for that step's loss alone, so its gradient is simple. W_h and W_e are used at every step,
# and h_t depends on all earlier uses. Held fast at one step p at a time, the chain rule gives a sum:
#
# ```
# ∂L_t/∂U   = (ŷ_t - y_t) h_tᵀ
# ∂L_t/∂W_h = Σ_p≤t  δ_tp h_p-1ᵀ         ∂L_t/∂W_e = Σ_p≤t  δ_tp e_pᵀ
# δ_tt = Uᵀ (ŷ_t - y_t) * h_t * (1 - h_t)
# δ_tp = W_hᵀ δ_t,p+1 * h_p * (1 - h_p)
# ```
#
# δ_tp is the error of step t as it arrives at step p. The code has a line for each of them:

# %%
print(inspect.getsource(bptt_numpy.by_hand))

# %% [markdown]
# Autograd is the judge. For it every step gets weights of its own, so that each term of the sum can be compared, and
# not only the sum:

# %%
from elman.lab.bptt import by_autograd

network = bptt_numpy.Network.draw(hidden=8, steps=20, seed=0)
ours, theirs = bptt_numpy.by_hand(network), by_autograd(network)
worst = {name: np.abs(getattr(ours, name) - getattr(theirs, name)).max() for name in ("U", "W_h", "W_e")}
for name, difference in worst.items():
    print(f"∂L_t/∂{name:3} {getattr(ours, name).shape}: off by {difference:.1e} at most")

# %% [check]
assert max(worst.values()) < 1e-12

# %% [markdown]
# A program does not keep T² terms. It walks from the last step to the first once, and adds to the error of each step
# what all later steps send back:

# %%
print(inspect.getsource(bptt_numpy.gradients))

# %%
walked = bptt_numpy.gradients(network)
summed = ours.U.sum(axis=0), ours.W_h.sum(axis=(0, 1)), ours.W_e.sum(axis=(0, 1))
print("one walk is the sum of all terms:", all(np.allclose(one, other) for one, other in zip(walked, summed)))

# %% [check]
assert all(np.allclose(one, other) for one, other in zip(walked, summed))

# %% [markdown]
# And it learns. Eight units are to read `h`, `e`, `l`, `l` and to say `e`, `l`, `l`, `o`: after the first `l`
# another, after the second an `o`, so that the state has to tell them apart.

# %% Learning to spell, by gradients derived by hand
from elman.draw.panels import Line, Lines
from elman.draw.picture import figure

UPDATES = 500  # fast: 20
speller, losses = bptt_numpy.learn(bptt_numpy.hello("hello"), UPDATES)
said = "".join("ehlo"[k] for k in bptt_numpy.forward(speller)[1].argmax(axis=1))
figure(
    Lines("loss a letter", [Line("gradient descent", list(range(len(losses))), losses)], "update", "nats", log_y=True)
)

# %% [markdown]
# After {{len(losses) - 1}} updates it reads `hell` and says `{{said}}`.

# %% [check]
assert said == "ello"

# %% [markdown]
# ## How far back it goes
#
# A row of the picture is a loss, a column a step that its gradient goes back to. Most of it is near the diagonal: the
# factors W_h and σ' make it smaller at each step. Cutting the sum off after k steps, which is truncated
# backpropagation, therefore changes it little, and the experiment says how little.

# %% The gradient of each loss through each earlier step
import elman.lab

SEEDS = 3  # fast: 1
truncation = elman.lab.run("bptt", seeds=SEEDS)
truncation

# %% [markdown]
# {{truncation.verdict}}
#
# The same product bounds it: σ' is at most 1/4, so each step back multiplies the gradient by at most a quarter of the
# largest singular value of W_h. Where that bound is above 1 gradients may explode, and are clipped: if the norm of
# the gradient g is above a threshold, g becomes threshold · g / |g|, which keeps its direction.

# %%
gradient = np.array([3.0, 4.0])
threshold = 1.0
clipped = gradient * min(1, threshold / np.linalg.norm(gradient))
print(f"{gradient} has norm {np.linalg.norm(gradient):.0f}; clipped {clipped}, norm {np.linalg.norm(clipped):.0f}")

# %% [check]
assert truncation.holds and np.allclose(clipped, [0.6, 0.8])

# %% [markdown]
# ## Reading both ways
#
# A tagger that reads from the left has not seen what comes. In these sentences the word `back` is a noun, a verb or
# an adjective, and what tells is sometimes the word after it:

# %%
import random

import torch
from torch import nn

import elman.nn

FRAMES = [
    ("the back door closed", "DET ADJ NOUN VERB"),
    ("the back hurts", "DET NOUN VERB"),
    ("the back seat was taken", "DET ADJ NOUN AUX VERB"),
    ("the back was broken", "DET NOUN AUX VERB"),
    ("they back the bill", "PRON VERB DET NOUN"),
    ("senators back it", "NOUN VERB PRON"),
]
words = sorted({word for sentence, _ in FRAMES for word in sentence.split()})
tags = sorted({tag for _, named in FRAMES for tag in named.split()})


class Tagger(nn.Module):
    """Log-probabilities of the tags of each word: T to T x K."""

    def __init__(self, both):
        super().__init__()
        self.embedding = nn.Embedding(len(words), 8)
        self.gru = elman.nn.GRU(8, 8, bidirectional=both)
        self.out = nn.Linear(8 * (1 + both), len(tags))

    def forward(self, ids):
        return torch.log_softmax(self.out(self.gru(self.embedding(ids))[0]), dim=-1)


UPDATES = 600  # fast: 5
draw = random.Random(0)
both_ways = {}
for name, both in (("from the left", False), ("both ways", True)):
    torch.manual_seed(0)
    tagger = Tagger(both)
    optimizer = torch.optim.Adam(tagger.parameters(), lr=1e-2)
    for _ in range(UPDATES):
        sentence, named = draw.choice(FRAMES)
        ids = torch.tensor([words.index(word) for word in sentence.split()])
        loss = nn.functional.nll_loss(tagger(ids), torch.tensor([tags.index(tag) for tag in named.split()]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(name)
    both_ways[name] = {}
    for sentence, _ in FRAMES[:2]:
        found = tagger(torch.tensor([words.index(word) for word in sentence.split()]))[1].exp()  # of `back`
        both_ways[name][sentence] = {tag: found[tags.index(tag)].item() for tag in ("ADJ", "NOUN")}
        told = ", ".join(f"{tag} {p:.2f}" for tag, p in both_ways[name][sentence].items())
        print(f"  `back` of `{sentence}`: {told}")

# %% [markdown]
# From the left, `the back` is all that is known when `back` has to be tagged. A language model may not look ahead at
# the word that it predicts, but two of them, one in each direction with one embedding and one softmax, can be trained
# on the sum of their log-likelihoods (eqs 60 to 62 of the notes); in Elman that is `model.direction=both`:

# %%
import elman

EPOCHS = 6  # fast: 1
lines = [draw.choice(FRAMES)[0] for _ in range(300)]
towers = elman.fit(
    "lm",
    train=lines,
    settings={
        "data.unit": "line",
        "text.kind": "words",
        "model.direction": "both",
        "model.hidden": 16,
        "model.embedding": 8,
        "model.layers": 1,
        "train.epochs": EPOCHS,
        "train.lr": 1e-2,
        "baseline.order": 0,
    },
    verbose=False,
)
{name: round(value, 3) for name, value in towers.report["dev"].items() if "perplexity" in name}

# %% [check]
left, both = both_ways["from the left"], both_ways["both ways"]
assert left["the back door closed"] == left["the back hurts"]  # it has read the same
assert both["the back door closed"]["ADJ"] > 0.9 and both["the back hurts"]["NOUN"] > 0.9

# %% [markdown]
# ## Shapes
#
# For B = 16 texts of T = 512 steps, with 128 units: `output` has a row for each step, of the last layer, both
# directions side by side; `h` and `c` have one for each layer and direction, after the last step.

# %%
STEPS = 512  # fast: 8
for layers, both in ((1, False), (4, False), (1, True), (4, True)):
    lstm = elman.nn.LSTM(64, 128, num_layers=layers, bidirectional=both, batch_first=True)
    with torch.no_grad():
        output, (h, c) = lstm(torch.randn(16, STEPS, 64))
    print(
        f"{layers} layers, {1 + both} directions: output {tuple(output.shape)}, h {tuple(h.shape)}, c {tuple(c.shape)}"
    )

# %% [markdown]
# ## What can be counted
#
# A finite automaton has no memory but its state. Three states recognise ab*; for aⁿbⁿ it would need a state for every
# n. A stack needs no such bound: push for an a, pop for a b. `StackRecogniser` is such an automaton; told how deep its
# stack is at most, it is a finite one.

# %%
import re

from elman.lab.recognisers import StackRecogniser


def automaton(text, moves={("start", "a"): "seen a", ("seen a", "b"): "seen a"}):
    """Whether a finite automaton accepts: ab*."""
    state = "start"
    for symbol in text:
        state = moves.get((state, symbol), "dead")
    return state == "seen a"


strings = [
    "".join(symbols) for n in range(1, 9) for symbols in np.array(np.meshgrid(*[["a", "b"]] * n)).reshape(n, -1).T
]
print(
    "ab*: ", all(automaton(word) == bool(re.fullmatch("ab*", word)) for word in strings), "for", len(strings), "words"
)

stack = StackRecogniser({"a": "b"}, turns=True)  # after the first b no a
finite = stack.finite(states=7)
accepted = [word for word in strings if stack.accepts(word)]
print("aⁿbⁿ:", *accepted)
print(f"with {finite.states} states:", *(word for word in strings if finite.accepts(word)))

# %% [markdown]
# A weighted automaton gives a number in place of yes or no: the product of matrices, one for each symbol, between a
# first and a last vector. That is a recurrent network without its σ, in which the symbol picks the matrix, and Elman
# makes the one of the other. This one counts a's minus b's:

# %%
up, down = torch.tensor([[1.0, 1], [0, 1]]), torch.tensor([[1.0, -1], [0, 1]])
counter = elman.nn.WeightedAutomaton([1, 0], torch.stack([up, down]), [0, 1])
as_network = counter.network()
for text in ("aaab", "ab", "abb"):
    ids = ["ab".index(symbol) for symbol in text]
    print(f"{text:4} automaton {counter.score(ids):2.0f}, network {as_network(torch.tensor([ids])).item():2.0f}")

# %% [check]
assert counter.score([0, 0, 0, 1]) == 2 and as_network(torch.tensor([[0, 1, 1]])).item() == -1
assert accepted == ["a" * n + "b" * n for n in range(1, 5)]
assert finite.accepts("aaabbb") and not finite.accepts("aaaabbbb")

# %% [markdown]
# Can a network learn to count? It learns aⁿbⁿ and others with n up to 10 and is asked for more:

# %% Words right by length, for a plain network and an LSTM
UPDATES = 1200  # fast: 3
languages = elman.lab.run("languages", cells=("rnn", "lstm"), seeds=1, updates=UPDATES)
languages

# %% [markdown]
# {{languages.verdict}} In theory such networks compute whatever can be computed; what they learn from examples in a
# minute is much less.
#
# ## BLEU by hand
#
# How good is a translation, given some that people wrote? Count how many of its n-grams they have too.

# %%
from collections import Counter

candidate = ["the", "cat", "the", "cat", "on", "the", "mat"]
references = [["the", "cat", "is", "on", "the", "mat"], ["there", "is", "a", "cat", "on", "the", "mat"]]


def ngrams(tokens, n):
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def precision(n, clip):
    counts = ngrams(candidate, n)
    most = Counter()
    for reference in references:
        most |= ngrams(reference, n)  # as often as in the reference that has it most often
    matched = sum(min(count, most[ngram]) if clip else count * (ngram in most) for ngram, count in counts.items())
    return matched, sum(counts.values())


for clip in (False, True):
    told = [f"{n}-grams {matched}/{total}" for n in (1, 2) for matched, total in [precision(n, clip)]]
    print("clipped:    " if clip else "not clipped:", ", ".join(told))

# %% [markdown]
# Not clipped, as the notes count, every word of the candidate is somewhere in a reference, and saying `the` three
# times costs nothing. The published score clips: a word counts no more often than in the reference that has it most
# often. Then the geometric mean, and a penalty for what is too short, where c is the candidate's length and r that of
# the nearest reference:

# %%
from elman.metrics import bleu

c, r = len(candidate), min((abs(len(one) - len(candidate)), len(one)) for one in references)[1]
penalty = 1 if c > r else np.exp(1 - r / c)
by_hand = penalty * np.exp(
    np.mean([np.log(matched / total) for matched, total in (precision(1, True), precision(2, True))])
)
library = bleu([candidate], [references], order=2)
print(f"c = {c}, r = {r}, penalty {penalty:.2f}")
print(f"BLEU of order 2 by hand {by_hand:.4f}, by elman.metrics {library.score:.4f}")

# %% [check]
assert [precision(n, clip) for clip in (False, True) for n in (1, 2)] == [(7, 7), (5, 6), (5, 7), (4, 6)]
assert abs(by_hand - library.score) < 1e-12

# %% [markdown]
# A product of powers of numbers between 0 and 1 lies between 0 and 1, and so does BLEU. With order 4 this candidate
# has no 4-gram in common with either reference and scores 0, which is why BLEU is a score of whole corpora.
#
# ## Exercises
#
# [The solutions](solutions.md#lesson-3) are tests.
#
# 1. The notes have no biases. Derive ∂L/∂b of h_t = σ(W_h h_t-1 + W_e e_t + b), and check it with autograd.
# 2. Replace σ by tanh in `bptt_numpy`: which line of the backward pass changes, and to what?
# 3. Derive the gradient of the embedding matrix E: which of its columns get one?
# 4. Write a stack automaton for two kinds of brackets, and show that counting alone does not do.
# 5. Show that averaging the two directions in place of putting them side by side loses something: find two different
#    pairs of states with one mean.
