# %% [markdown]
# # 4. Embeddings, names and an attention decoder
#
# This lesson follows the fourth set of notes: what an embedding layer is and can be told, names as code points,
# batches of different length with and without padding, the language of a surname, a decoder that attends, and the
# homework: which cell, of which size?

# %% [markdown]
# ## One-hot vectors and word vectors
#
# One-hot vectors say nothing of how words are related: any two are at right angles. A vector that is learned can say
# it. The lookup is the product with a one-hot vector, without the zeros:

# %%
import numpy as np

table = np.array([[17, 24, 1], [23, 5, 7], [4, 6, 13], [10, 12, 19], [11, 18, 25]])  # V x E
endure, tolerate = np.eye(2000)[[500, 1800]]
print("two one-hot words:", endure @ tolerate)
print("the fourth of five:", np.array([0, 0, 0, 1, 0]) @ table, "is row 3:", table[3])

# %% [markdown]
# Where do good vectors come from? From the company that words keep. Skip-gram learns to predict the words around a
# word, and throws everything away but the vectors. Here it is in full, with a softmax over all words, on sentences
# that are as poor as they are clear:

# %% The vectors of eight words, on their two main axes
import random

import torch
from torch import nn

from elman.draw.panels import Point, Points
from elman.draw.picture import figure

PEOPLE = {"king": ("he", "crown"), "queen": ("she", "crown"), "man": ("he", "hat"), "woman": ("she", "hat")}
PEOPLE |= {"prince": ("he", "castle"), "princess": ("she", "castle"), "boy": ("he", "ball"), "girl": ("she", "ball")}
EXAMPLES = 4000  # fast: 200
chance = random.Random(0)
vocabulary = sorted({*PEOPLE, *(word for pair in PEOPLE.values() for word in pair), "says", "has", "a", "the"})
number = {word: place for place, word in enumerate(vocabulary)}


def windows():
    """A word and one of its neighbours, again and again: the pronoun or the thing that a person has."""
    while True:
        person = chance.choice(list(PEOPLE))
        pronoun, thing = PEOPLE[person]
        words = ["the", person, "says", pronoun, "has", "a", thing]
        centre = chance.randrange(len(words))
        for other, word in enumerate(words):
            if other != centre:
                yield number[words[centre]], number[word]


torch.manual_seed(0)
inside, outside = nn.Embedding(len(vocabulary), 8), nn.Linear(8, len(vocabulary))
optimizer = torch.optim.Adam([*inside.parameters(), *outside.parameters()], lr=1e-2)
stream = windows()
for _ in range(EXAMPLES // 4):
    centres, around = zip(*(next(stream) for _ in range(128)))
    loss = nn.functional.cross_entropy(outside(inside(torch.tensor(centres))), torch.tensor(around))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

vectors = inside.weight.detach().numpy()
people = vectors[[number[word] for word in PEOPLE]]
_, _, axes = np.linalg.svd(people - people.mean(axis=0), full_matrices=False)
places = (people - people.mean(axis=0)) @ axes[:2].T
points = [Point(float(x), float(y), word, PEOPLE[word][0]) for word, (x, y) in zip(PEOPLE, places)]
figure(Points("words by the company they keep", points, "first axis", "second axis"))


# %%
def nearest(vector, without):
    cosine = vectors @ vector / (np.linalg.norm(vectors, axis=1) * np.linalg.norm(vector))
    return next(vocabulary[place] for place in np.argsort(-cosine) if vocabulary[place] not in without)


def analogy(a, b, c):
    """b is to a as the answer is to c; the three words themselves are no answer."""
    return nearest(vectors[number[b]] - vectors[number[a]] + vectors[number[c]], {a, b, c})


answer = analogy("man", "king", "woman")
print("king - man + woman =", answer)
print("boy - man + woman =", analogy("man", "boy", "woman"))

# %% [check]
assert answer == "queen" and analogy("man", "boy", "woman") == "girl"

# %% [markdown]
# A softmax over all words is slow where there are many of them. Elman's word vectors are learned by a compiled kernel,
# against a few words that are drawn ([the guide](../vectors.md)); for a vocabulary as small as this one the full
# softmax is there too:

# %% A map of words and their neighbours
import elman
import elman.inspect

EPOCHS = 20  # fast: 1
told = [f"the {person} says {pronoun} has a {thing}" for person, (pronoun, thing) in PEOPLE.items()] * 40
chance.shuffle(told)
WORDS = {"model.embedding": 8, "model.window": 6, "model.dynamic": False, "model.objective": "softmax"}
WORDS |= {"model.sample": 0, "train.lr": 0.2, "train.epochs": EPOCHS, "train.threads": 1}
learned = elman.fit("embed", train=["\n".join(told)], settings=WORDS, verbose=False)
royal = learned.predict("king - man + woman")[0]
print(f"king - man + woman = {royal.word}, cosine {royal.score:.2f}")
elman.inspect.explain(learned, ["king", "queen", "man", "woman"], view="map")

# %% [check]
assert royal.word == "queen"

# %% [markdown]
# ## What an embedding layer can be told
#
# `torch.nn.Embedding` takes indices of any shape and adds a dimension. Four options change what it does:

# %%
layer = nn.Embedding(10, 3, padding_idx=0)
ids = torch.tensor([[1, 2, 4, 5], [4, 3, 2, 0]])
print(f"{tuple(ids.shape)} -> {tuple(layer(ids).shape)}; the padding is {layer(ids)[1, 3].tolist()}")
layer(ids).sum().backward()
print("padding_idx: gradient of the padding", layer.weight.grad[0].tolist(), "of word 2", layer.weight.grad[2].tolist())

scaled = nn.Embedding(10, 3, scale_grad_by_freq=True)
scaled(ids).sum().backward()
print("scale_grad_by_freq: word 2, which stands there twice, has", scaled.weight.grad[2].tolist())

bounded = nn.Embedding(10, 3, max_norm=1.0)
bounded(ids)
longest = bounded.weight[ids.unique()].norm(dim=1).max()
print(f"max_norm: the longest of the vectors that were looked up has norm {longest:.3f}")

sparse = nn.Embedding(10, 3, sparse=True)
sparse(ids).sum().backward()
print(f"sparse: the gradient has {sparse.weight.grad.coalesce().values().shape[0]} rows of {sparse.num_embeddings}")

# %% [check]
assert layer.weight.grad[0].abs().max() == 0 and layer.weight.grad[2].tolist() == [2, 2, 2]
assert scaled.weight.grad[2].tolist() == [1, 1, 1] and sparse.weight.grad.is_sparse

# %% [markdown]
# Not every optimizer takes sparse gradients; SGD, SparseAdam and Adagrad do. The padding's vector is zero only at
# first: whoever initialises the matrix anew has to set it to zero again. In a recipe of Elman's the options are
# `model.padding_index`, `model.scale_by_frequency`, `model.max_norm` and `model.sparse` ([layers](../layers.md)).
#
# ## Names as code points
#
# A character is a number already. Four names make a table once they are padded with zeros to the length of the
# longest:

# %%
names = ["adylov", "solan", "hard", "san"]
codes = [[ord(letter) for letter in name] for name in names]
elman.pad(codes)

# %% [markdown]
# Of the 24 places 6 hold nothing, and a recurrent layer would compute steps for them. Packed, the first steps of all
# names stand side by side, then all second ones; the batch gets smaller as names end. `abc` and `x` become `axbc` in
# batches of 2, 1, 1:

# %%
from torch.nn.utils.rnn import pack_padded_sequence

two = elman.pack([list("abc"), list("x")])
print("".join(two.data), two.batch_sizes.tolist())
padded = torch.tensor(elman.pad([[97, 98, 99], [120]]))
packed = pack_padded_sequence(padded, torch.tensor([3, 1]), batch_first=True)
print("".join(map(chr, packed.data)), packed.batch_sizes.tolist(), "by torch")

# %% [check]
assert "".join(two.data) == "axbc" and two.batch_sizes.tolist() == packed.batch_sizes.tolist() == [2, 1, 1]

# %% [markdown]
# It is not only a matter of time. The last state of a padded name is one that has gone on reading zeros:

# %%
import elman.nn

torch.manual_seed(0)
embedding, gru = nn.Embedding(128, 16, padding_idx=0), elman.nn.GRU(16, 16, batch_first=True)
padded, lengths = torch.tensor(elman.pad(codes)), torch.tensor([len(name) for name in names])
with torch.no_grad():
    _, alone = gru(embedding(torch.tensor(codes[3]).unsqueeze(0)))  # "san" by itself
    _, in_padding = gru(embedding(padded))
    _, in_packing = gru(pack_padded_sequence(embedding(padded), lengths, batch_first=True))
print(f"padded, the state of `san` is off by {(alone[0, 0] - in_padding[0, 3]).abs().max():.2f}")
print(f"packed, by {(alone[0, 0] - in_packing[0, 3]).abs().max():.1e}")

# %% [check]
assert (alone[0, 0] - in_padding[0, 3]).abs().max() > 0.05 and torch.allclose(alone[0, 0], in_packing[0, 3], atol=1e-6)

# %% [markdown]
# ## The language of a surname
#
# Eighteen languages in Latin script, from lists that need no download (`pip install 'elman[demo]'`). The classifier
# of the notes, whole: embedding, GRU over the packed names, a linear layer over the last state.

# %%
from elman.generated.surnames import surname_lists

LATIN = """
    Italian Polish Chinese Croatian Czech Swedish Dutch English Finnish French German Hungarian Japanese Latvian
    Norwegian Portuguese Spanish Turkish
"""
COUNT = 18  # fast: 2
lists = surname_lists()
languages = [language for language in LATIN.split() if language in lists][:COUNT]
chance = random.Random(1)
people = []
for language in languages:
    people += [(name, language) for name in chance.sample(lists[language], min(400, len(lists[language])))]
chance.shuffle(people)
train, test = people[: len(people) * 4 // 5], people[len(people) * 4 // 5 :]
print(f"{len(languages)} languages, {len(train):,} names to learn from, {len(test):,} for the test")
print("for example", train[0])


class NameClassifier(nn.Module):
    def __init__(self, characters, hidden, classes):
        super().__init__()
        self.embedding = nn.Embedding(characters, hidden, padding_idx=0)
        self.gru = elman.nn.GRU(hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, classes)

    def forward(self, ids, lengths):  # B x T, B
        steps = pack_padded_sequence(self.embedding(ids), lengths, batch_first=True, enforce_sorted=False)
        return self.out(self.gru(steps)[1][-1])  # the last state: B x H to B x C


def batch(some):
    codes = elman.pad([[ord(letter) for letter in name] for name, _ in some])
    labels = torch.tensor([languages.index(language) for _, language in some])
    return torch.tensor(codes), torch.tensor([len(name) for name, _ in some]), labels


EPOCHS = 3  # fast: 1
torch.manual_seed(0)
model = NameClassifier(1 + max(ord(letter) for name, _ in people for letter in name), 64, len(languages))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for _ in range(EPOCHS):
    chance.shuffle(train)
    for start in range(0, len(train), 32):
        ids, lengths, labels = batch(train[start : start + 32])
        loss = nn.functional.cross_entropy(model(ids, lengths), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
ids, lengths, labels = batch(test)
with torch.no_grad():
    ours = (model(ids, lengths).argmax(dim=1) == labels).float().mean().item()
largest = labels.bincount().max().item() / len(labels)
print(f"{ours:.1%} of the test names right; the most frequent language is that of {largest:.1%}")

# %% [markdown]
# A name may be at home in several languages, so nobody gets all of them right. In Elman, where `codepoints` reads a
# character as its own number, and no vector may be longer than 3:

# %%
NAMES = {
    "text.kind": "codepoints",
    "model.max_norm": 3.0,
    "model.bidirectional": False,
    "model.pooling": "last",
    "model.embedding": 32,
}
NAMES |= {"train.lr": 5e-3, "train.epochs": EPOCHS, "batch.size": 32}
classifier = elman.fit("classify", train=train, test=test, settings=NAMES | {"model.hidden": 64}, verbose=False)
classifier

# %%
NEW = ["Kowalczyk", "Virtanen", "Esposito", "Johansson", "Novák"]
for name, found in zip(NEW, classifier.predict(NEW)):
    likeliest = sorted(found.probabilities.items(), key=lambda pair: -pair[1])[:2]
    print(f"{name:10}", ", ".join(f"{language} {p:.0%}" for language, p in likeliest))

# %% Which letters decided
elman.inspect.explain(classifier, ["Kowalczyk", "Virtanen"], view="saliency")

# %% [check]
assert ours > 0.35 and classifier.report["test"]["accuracy"] > 0.35

# %% [markdown]
# ## Homework: which cell, of which size?
#
# Three cells in three sizes, the same data, the same number of updates. `elman compare` does it with several seeds
# and keeps every run (`elman compare names-compare --out runs/cells`); a loop shows what it comes to:

# %% Accuracy on the test names by cell and by hidden size
from elman.draw.panels import Line, Lines

SIZES = (16, 64, 128)  # fast: (8,)
COMPARED = 3000  # fast: 60
accuracy = {}
for cell in ("rnn", "lstm", "gru"):
    for size in SIZES:
        settings = NAMES | {"model.cell": cell, "model.hidden": size, "train.epochs": 2, "baseline.ngrams": False}
        found = elman.fit("classify", train=train[:COMPARED], test=test, settings=settings, verbose=False)
        accuracy[cell, size] = found.report["test"]["accuracy"]
curves = [Line(cell, SIZES, [accuracy[cell, size] for size in SIZES]) for cell in ("rnn", "lstm", "gru")]
figure(Lines("accuracy", curves, "units", "share of names right", log_x=True))

# %% [markdown]
# The best of the nine is {{max(accuracy, key=accuracy.get)[0]}} with {{max(accuracy, key=accuracy.get)[1]}} units:
# {{max(accuracy.values()):.1%}}. One seed is not much: [the guide](../classify.md) tells what differences are worth.
#
# ## A decoder that attends
#
# The decoder of the notes computes its attention weights from the input of the step and its state, for a fixed
# greatest length of the source: place j has a row of weights of its own, whatever stands there. The context and the
# input then go through one linear layer and a ReLU into the cell (`model.decoder=tutorial-attention`). Each score is
# one class:

# %%
print(elman.nn.FixedLengthAttention.__doc__.strip().splitlines()[0])
print(elman.nn.AdditiveAttention.__doc__.strip().splitlines()[0])

# %% [markdown]
# Additive attention asks what stands at a place, not only which place it is, and Bahdanau's decoder gives the context
# to the cell as it is. The notes' decoder and that one on dates, as seven ways to write
# them have it, to their ISO form:

# %%
import datetime

MONTHS = [datetime.date(2000, month, 1).strftime("%B") for month in range(1, 13)]


def written(day, chance):
    """A date as people write it, and its ISO form."""
    month = MONTHS[day.month - 1]
    forms = [f"{day.day} {month} {day.year}", f"{month} {day.day}, {day.year}", f"{day.day}. {day.month}. {day.year}"]
    forms += [
        f"{day.day} {month[:3]} {day.year}",
        f"{month[:3]} {day.day} {day.year}",
        f"{day:%Y/%m/%d}",
        f"{day:%d-%m-%Y}",
    ]
    return chance.choice(forms), day.isoformat()


DATES = 2500  # fast: 60
EPOCHS = 5  # fast: 1
day_one = datetime.date(1950, 1, 1)
dates = [written(day_one + datetime.timedelta(chance.randrange(36_500)), chance) for _ in range(DATES)]
readers = {}
for decoder, attention in (("tutorial-attention", "fixed-length"), ("bahdanau", "additive")):
    settings = {"text.kind": "characters", "text.joint": True, "model.tied": "all", "model.cell": "gru"}
    settings |= {"model.hidden": 64, "model.embedding": 64, "model.decoder": decoder, "model.attention": attention}
    settings |= {"model.longest": 30, "model.input_dropout": 0, "model.output_dropout": 0, "loss.smoothing": 0}
    settings |= {
        "loss.teacher_forcing": 0.9,
        "batch.tokens": 300,
        "train.lr": 6e-3,
        "train.epochs": EPOCHS,
        "search.beam": 1,
    }
    readers[attention] = elman.fit("translate", train=dates, settings=settings, verbose=False)
    print(f"{decoder:18} {attention:12} {readers[attention].report['dev']['exact_match']:.1%} of held-out dates right")

# %% Where the additive decoder looks while it writes
elman.inspect.explain(readers["additive"], ["7 September 2031"], view="alignment")

# %% [check]
assert readers["additive"].report["dev"]["exact_match"] > 0.8
assert readers["additive"].report["dev"]["exact_match"] > readers["fixed-length"].report["dev"]["exact_match"]

# %% [markdown]
# `loss.teacher_forcing` is {{settings["loss.teacher_forcing"]}} here: nine of ten steps read the right character
# before them, the tenth what the decoder said itself. The same decoder over the parts of a picture in place of the
# words of a sentence writes captions.
#
# ## Exercises
#
# [The solutions](solutions.md#lesson-4) are tests.
#
# 1. Pack four names by hand, without `elman.pack` and without PyTorch, and unpack them again.
# 2. Which words' vectors change in one step of training with `sparse=True`, and which with Adam on a dense gradient?
#    Show it.
# 3. CBOW predicts a word from the mean of the vectors around it. Change skip-gram into CBOW.
# 4. (the notes' homework) Classify names with pad and pack; compare RNN, LSTM and GRU and several hidden sizes.
