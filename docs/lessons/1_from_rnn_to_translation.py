# %% [markdown]
# # 1. From recurrent networks to translation
#
# This lesson follows the first set of notes: cells, gradients that vanish, translation with attention, beam search,
# and the room in which generated text is tested. It begins where most courses end, with a model that works; the rest
# explains it.
#
# To follow it: `pip install '.[demo]'` in Elman's folder, then a notebook or Python's prompt, cell by cell. The first
# model is there after a few seconds, the whole lesson takes some minutes.

# %% [markdown]
# ## A first model
#
# A translator needs pairs. A few words of English and Spanish and a small grammar make as many as we like. Spanish
# puts the adjective behind the noun and makes it agree with the noun's gender, so word by word will not do.

# %%
import random

NOUNS = {
    "cat": "gato",
    "dog": "perro",
    "book": "libro",
    "car": "coche",
    "house": "casa",
    "table": "mesa",
    "girl": "chica",
}
FEMININE = {"house", "table", "girl"}
ADJECTIVES = {"red": "roj", "small": "pequeñ", "white": "blanc", "tall": "alt", "new": "nuev"}
VERBS = {"sees": "ve", "wants": "quiere", "finds": "encuentra", "has": "tiene", "paints": "pinta"}
ARTICLES = {"the": ("el", "la"), "a": ("un", "una")}


def phrase(chance):
    noun, adjective, article = (chance.choice(list(words)) for words in (NOUNS, ADJECTIVES, ARTICLES))
    gender = noun in FEMININE
    spanish = f"{ARTICLES[article][gender]} {NOUNS[noun]}"
    if chance.random() < 0.4:
        return f"{article} {noun}", spanish
    return f"{article} {adjective} {noun}", f"{spanish} {ADJECTIVES[adjective]}{'oa'[gender]}"


def sentence(chance, clauses=1):
    english, spanish = [], []
    for _ in range(clauses):
        verb = chance.choice(list(VERBS))
        (subject, sujeto), (thing, cosa) = phrase(chance), phrase(chance)
        english.append(f"{subject} {verb} {thing}")
        spanish.append(f"{sujeto} {VERBS[verb]} {cosa}")
    return " and ".join(english), " y ".join(spanish)


chance = random.Random(0)
sentence(chance)

# %% [markdown]
# One call trains, keeps the best model on pairs that it holds out, and scores it on them beside the baselines that it
# has to beat. The settings make it small and quick; all have defaults. Without `verbose=False` it tells how it goes.

# %%
import elman

PAIRS = 800  # fast: 60
EPOCHS = 8  # fast: 1
SETTINGS = {
    "text.kind": "words",
    "model.cell": "gru",
    "model.hidden": 64,
    "model.embedding": 32,
    "model.input_dropout": 0,  # with so regular a language nothing has to be made harder
    "model.output_dropout": 0,
    "loss.smoothing": 0,
    "batch.tokens": 300,  # about 40 pairs an update
    "train.lr": 1e-2,
    "train.epochs": EPOCHS,
    "search.beam": 2,  # hypotheses that are kept while it writes; more of that below
}

pairs = [sentence(chance) for _ in range(PAIRS)]
first = elman.fit("translate", train=pairs, settings=SETTINGS, verbose=False)
first

# %% [markdown]
# Exact match is the share of sentences that are right to the last word; [lesson 3](3_derivations_by_hand.md) computes
# BLEU by hand. A sentence that it has not seen:

# %%
first.predict("the tall girl paints a small house").text

# %% [markdown]
# That is the whole of it. The command line wants the pairs in a file, a tab between the two:

# %%
from pathlib import Path

Path("pairs.tsv").write_text("".join(f"{english}\t{spanish}\n" for english, spanish in pairs), encoding="utf-8")
print(Path("pairs.tsv").read_text(encoding="utf-8").splitlines()[0])

# %% [markdown]
# ```
# elman train translate --train pairs.tsv -s text.kind=words -s model.hidden=64 -s train.lr=0.01 -s batch.tokens=300 \
#     -s train.epochs=8 --out runs/first
# elman predict runs/first "the tall girl paints a small house"
# ```
#
# While it writes, the model attends to the words that it has read. The picture shows how much: a row for each word
# that it wrote. The adjective and its noun cross.

# %% What the first translator attends to
import elman.inspect

elman.inspect.explain(first, ["the tall girl paints a small house"], view="alignment")

# %% [check]
assert first.predict("the tall girl paints a small house").text == "la chica alta pinta una casa pequeña"
assert first.report["dev"]["exact_match"] > 0.9

# %% [markdown]
# ## Cells
#
# A recurrent network reads a step at a time and carries a state. The simplest, Elman's, is one line:
#
# ```
# h_t = tanh(W [h_t-1; x_t] + b)
# ```
#
# An LSTM has a second state, the cell c, which is a conveyor: it is changed by a product and a sum, and by nothing
# else. Three gates and a candidate come from one matrix of 4D x 2D, where state and input both have D numbers:
#
# ```
# (i, f, o, g) = (σ, σ, σ, tanh)(W [h_t-1; x_t] + b)
# c_t = f * c_t-1 + i * g           forget some of the past, put in something new
# h_t = o * tanh(c_t)               and say some of it
# ```
#
# Written down as it stands there, it is what the library's layer computes:

# %%
import torch

import elman.nn

D = 5
torch.manual_seed(1)
lstm = elman.nn.LSTM(D, D, dtype=torch.float64)
x = torch.randn(7, D, dtype=torch.float64)  # T x D
W = torch.cat([lstm.weight_hh_l0, lstm.weight_ih_l0], dim=1)  # 4D x 2D; the blocks are i, f, g, o
b = lstm.bias_ih_l0 + lstm.bias_hh_l0

h = c = torch.zeros(D, dtype=torch.float64)
for x_t in x:
    i, f, g, o = (W @ torch.cat([h, x_t]) + b).chunk(4)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    h = torch.sigmoid(o) * torch.tanh(c)

output, (h_n, c_n) = lstm(x)
difference = (h - h_n[0]).abs().max().item()
print(f"W is {W.shape[0]} x {W.shape[1]}; by hand and by the layer differ by {difference:.1e}")
print("the last output is the last state:", torch.equal(output[-1], h_n[0]))

# %% [check]
assert difference < 1e-12 and tuple(W.shape) == (20, 10)

# %% [markdown]
# A GRU has no second state: an update gate z mixes the old state and a candidate. Cho's form puts the reset gate
# before the product with the state, libraries put it behind; the two are different networks with the same number of
# weights. MUT1, MUT2 and MUT3 were found by a search over thousands of such equations (Jozefowicz et al. 2015). Each
# is one class, whose docstring is the equation:

# %%
import inspect

print(inspect.getdoc(elman.nn.MUT1Cell).partition(">>>")[0])
for name, cell in elman.nn.CELLS.items():
    layer = elman.nn.Recurrent(cell, 64, 64)
    print(f"{name:8} {sum(weight.numel() for weight in layer.parameters()):6,} weights for 64 units")

# %% [markdown]
# Layers stack, the states of one being the inputs of the next, and a layer may read in both directions, with weights
# of its own for each; `output` then has both states side by side. Two to four layers are usual for translation;
# deeper ones need connections around the layers (`model.connections=residual`). [The equations](../equations.md) has
# all of them.

# %%
deep = elman.nn.LSTM(input_size=64, hidden_size=128, num_layers=4, bidirectional=True, batch_first=True)
output, (h_n, c_n) = deep(torch.zeros(16, 50, 64))  # B x T x I
print(f"output {tuple(output.shape)}, h {tuple(h_n.shape)}, c {tuple(c_n.shape)}")

# %% [markdown]
# ## Gradients that vanish
#
# An error at the last step reaches an earlier one through a product of Jacobians, one for each step between. Leave
# the inputs away and let the network be ReLU with H = 5 units and T = 50 steps; the gradient then goes through the
# same matrix again and again, and its largest singular value decides.

# %% The gradient of the last state on its way back through 50 steps
import numpy as np

from elman.draw.panels import Line, Lines
from elman.draw.picture import figure


def way_back(scale, H=5, T=50, seed=3):
    """The norm of the gradient at each step, from the last to the first."""
    chance = np.random.default_rng(seed)
    W_hh = chance.normal(size=(H, H))
    W_hh *= scale / np.linalg.norm(W_hh, 2)  # its largest singular value
    h = [np.abs(chance.normal(size=H))]
    for _ in range(T):
        h.append(np.maximum(0, W_hh @ h[-1]))
    gradient, norms = chance.normal(size=H), []
    for t in reversed(range(T)):
        gradient = W_hh.T @ ((h[t + 1] > 0) * gradient)  # through ReLU, then through the matrix
        norms.append(float(np.linalg.norm(gradient)))
    return norms


STEPS_BACK = list(range(1, 51))
curves = {scale: way_back(scale) for scale in (0.8, 1.2, 2.0)}
lines = [Line(f"largest singular value {scale}", STEPS_BACK, norms) for scale, norms in curves.items()]
figure(Lines("norm of the gradient", lines, "steps back", "norm", log_y=True))

# %% [markdown]
# Below 1 it vanishes for certain, since no factor can make it longer; above 1 it may explode, but need not: ReLU
# shuts units and the matrix turns the vector away from its longest direction.
#
# What about networks that read something? The experiment of the notes injects an error at the last of 128 steps and
# measures what every earlier step adds to the gradient of the input weights. It is an experiment of `elman lab`:

# %% Gradients at every step before an error: plain network, LSTM, GRU
import elman.lab

STEPS = 128  # fast: 16
UPDATES = 60  # fast: 1
gradients = elman.lab.run("gradients", cells=("rnn", "lstm", "gru"), seeds=1, steps=STEPS, updates=UPDATES)
gradients

# %% [markdown]
# {{gradients.verdict}} The LSTM owes that to the bias of its forget gate, which is open at the beginning.
#
# How far back does a network remember when it is trained? The notes say: about 7 steps for a plain network, about 100
# for an LSTM. Here two marked numbers have to be added, the first at the beginning of the text, the sum at its end:

# %%
DISTANCES = (2, 5, 10, 20, 50, 100)  # fast: (2, 4)
BUDGET = 500  # fast: 2
memory = elman.lab.run("memory", cells=("rnn", "lstm"), seeds=1, distances=DISTANCES, updates=BUDGET)
for result in memory.data.results:
    print(f"{result.cell:10} {result.task:7} longest distance learned: {result.longest.each[0]:.0f} steps")

# %% [markdown]
# It depends on what is to be remembered: [the page of the experiments](../lab.md#memory) has more cells and more
# seeds.

# %% [check]
longest = {(result.cell, result.task): result.longest.each[0] for result in memory.data.results}
assert longest["LSTM", "adding"] == 100 > 10 >= longest["RNN (tanh)", "adding"]
assert curves[0.8][-1] < 1e-4 * curves[0.8][0] and gradients.holds

# %% [markdown]
# ## Translation, without and with attention
#
# The first translators of this kind were two networks and nothing else: one reads the sentence into its last state,
# the other writes from that state. It is a language model with a condition:
#
# ```
# p(y | x) = p(y_1 | x) p(y_2 | y_1, x) ... p(y_T | y_1 ... y_T-1, x)
# ```
#
# All that the second knows of the sentence has to fit into one vector. Attention removes that bottleneck: at every
# step the decoder's state s scores the encoder's states h_1 ... h_N, a softmax makes weights of the scores, and the
# weighted sum is read beside s. The scores of the notes are one class each:

# %%
torch.manual_seed(2)
states, query = torch.randn(1, 6, 8), torch.randn(1, 1, 8)  # B x S x M, B x T x Q
padding = torch.zeros(1, 6, dtype=torch.bool)  # B x S: no place is empty
for name in ("dot", "general", "reduced-rank", "additive"):
    attention = elman.nn.ATTENTIONS[name](query_size=8, memory_size=8)
    weights = attention(query, attention.keys(states), padding)  # B x T x S
    context = weights @ states  # B x T x M
    print(f"{name:13}", *(f"{weight:.2f}" for weight in weights.flatten()), f" sum {weights.sum():.2f}")

# %% [markdown]
# Now both kinds of translator, with the same number of pairs and of epochs, on sentences of one to three clauses:

# %%
LONGER = 1600  # fast: 60
long_pairs = [sentence(chance, clauses=1 + number % 3) for number in range(LONGER)]
tests = {clauses: [sentence(chance, clauses) for _ in range(100)] for clauses in (1, 2, 3, 4)}
right = {}
for decoder in ("plain", "luong"):
    settings = SETTINGS | {"batch.tokens": 600, "model.decoder": decoder}
    model = elman.fit("translate", train=long_pairs, settings=settings, verbose=False)
    for clauses, test in tests.items():
        found = model.predict([english for english, _ in test])
        exact = sum(one.text == spanish for one, (_, spanish) in zip(found, test)) / len(test)
        right[decoder, clauses] = exact
    print(
        f"{decoder:6}",
        ", ".join(f"{clauses} clause{'s' * (clauses > 1)} {right[decoder, clauses]:.0%}" for clauses in tests),
    )

# %% [markdown]
# After these few epochs, with attention {{right["luong", 3]:.0%}} of sentences of three clauses are right to the last
# word, without it {{right["plain", 3]:.0%}}. Four clauses, which neither has ever seen, are beyond both:
# {{right["luong", 4]:.0%}} and {{right["plain", 4]:.0%}}.

# %% [check]
assert right["luong", 3] > 0.9 > 0.5 > right["plain", 3]
assert right["luong", 4] < 0.5

# %% [markdown]
# ## Searching for the best sentence
#
# A translator gives probabilities of the next word. To take the likeliest at each step is greedy, and a step once
# taken is never undone. The smallest example has two words and an end: at the first step `yes` is likelier, but what
# follows `ok` is surer.

# %%
from elman.decode import Beam, beam_search, exhaustive

WORDS = ["</s>", "yes", "ok"]


class YesOrOk:
    """The probabilities of </s>, yes and ok at each step; the state is the number of words read."""

    first = np.array([0.1, 0.5, 0.4])
    second = np.array([[1.0, 0.0, 0.0], [0.3, 0.4, 0.3], [0.1, 0.2, 0.7]])  # after </s>, yes, ok
    third = np.array([1.0, 0.0, 0.0])

    def start(self, batch_size):
        return 0

    def step(self, ids, state):
        ids = np.asarray(ids)
        rows = [np.tile(self.first, (len(ids), 1)), self.second[ids], np.tile(self.third, (len(ids), 1))][state]
        with np.errstate(divide="ignore"):  # some words are impossible
            return np.log(rows), state + 1

    def select(self, state, rows):
        return state


def say(ids):
    return " ".join(WORDS[i] for i in ids if i)


def search(size):
    beam = Beam(size=size, length=3, length_power=0)
    return beam_search(YesOrOk(), 1, start_id=0, stop_id=0, beam=beam)[0][0]


for size in (1, 2):
    found = search(size)
    print(f"beam of {size}: {say(found.ids)}, p = {np.exp(found.log_prob):.2f}")
best = exhaustive(YesOrOk(), start_id=0, stop_id=0, length=3)[0]
print(f"all sentences: {say(best.ids)}, p = {np.exp(best.log_prob):.2f}")

# %% [markdown]
# Greedy search, a beam of one, says `{{say(search(1).ids)}}`; a beam of two finds `{{say(search(2).ids)}}`, and
# looking at all sentences proves that there is none better. All sentences of T words of a vocabulary of V are V^T, so
# that proof is for toys.
#
# A hypothesis that ends is set aside. Since every word makes a sentence less likely, finished ones are compared by
# their log-probability divided by their length. This is the search of the first translator:

# %% Every hypothesis that the search looked at
elman.inspect.explain(first, ["the white dog has a book"], view="tree", beam=3)

# %% [check]
assert (say(search(1).ids), say(search(2).ids), say(best.ids)) == ("yes yes", "ok ok", "ok ok")

# %% [markdown]
# ## The test room
#
# How predictable is a text to a model? A language model gives the rank of every character among all that could have
# stood there. Text that a model wrote is made of likely characters; people surprise it more often. Here a small model
# learns from Python's own library, which every machine has.

# %%
from elman.decode import Sampling
from elman.generated.sources import python_sources

CHARACTERS = 1_500_000  # fast: 40_000
UPDATES = 500  # fast: 3
source = "".join(path.read_text(encoding="utf-8") for path in python_sources(CHARACTERS))
writer = elman.fit(
    "lm",
    train=[source],
    settings={
        "model.cell": "gru",
        "model.hidden": 128,
        "model.embedding": 32,
        "batch.size": 32,
        "batch.steps": 64,
        "train.steps": UPDATES,
        "train.lr": 6e-3,
        "baseline.order": 4,
        "data.dev_characters": 20_000,
    },
    verbose=False,
)
by_people = source[-400:-200]
by_model = "def " + writer.generate("def ", length=200, sampling=Sampling(temperature=0.7, seed=2))[0]
print(by_model)

# %% The rank of every character: on the left the library's text, on the right the model's own
room = elman.inspect.explain(writer, [by_people, by_model], view="ranks")
room

# %%
people, machine = room.data
print(f"mean log-probability of a character: people's {people.log_prob:.2f}, the model's own {machine.log_prob:.2f}")

# %% [check]
assert machine.log_prob > people.log_prob

# %% [markdown]
# Sampled at a temperature of 0.7 the model keeps to what it finds likely, and is given away by it.
# `elman explain --view ranks --against FILE` measures how well that tells texts apart, with an area under the ROC
# curve and its error.
#
# ## Exercises
#
# [The solutions](solutions.md#lesson-1) are tests: they run with all others.
#
# 1. Which of the three gates would you set to what, so that an LSTM keeps its cell for ever? Show it with a layer
#    whose weights are zero and whose biases you choose.
# 2. Write Cho's GRU step by step, with the reset gate before the product, and compare with `elman.nn.ChoGRUCell`.
#    Then move the reset gate behind the product, and compare with `torch.nn.GRU`.
# 3. Change the tree of `yes` and `ok` so that a beam of two misses the best sentence, and a beam of three does not.
# 4. (the notes' homework) Train a model that writes surnames of a language that it is told, and let it write some.
