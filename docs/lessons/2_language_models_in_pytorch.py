# %% [markdown]
# # 2. Language models and encoder-decoders in PyTorch
#
# This lesson follows the second set of notes: why a window of words is not enough, what a recurrent language model is
# in PyTorch, what its loss means, and how two of them make an encoder and a decoder. The models are small enough to
# be written out; beside each stands the call of Elman that does the same.

# %% [markdown]
# ## What a window cannot see
#
# A language model says how likely each word is to come next. An n-gram model counts what followed the last n - 1
# words; a window network reads their vectors. Both forget what stands further back. These sentences are made so that
# this matters: which sound is made depends on the animal, and some adverbs stand between the two.

# %%
import random

SOUNDS = {"cat": "meows", "dog": "barks", "cow": "moos", "duck": "quacks", "horse": "neighs", "sheep": "bleats"}
FILLERS = ["very", "quite", "always", "often", "really", "still", "never", "rather", "sometimes", "mostly"]


def sentence(chance, between=None):
    animal = chance.choice(list(SOUNDS))
    between = chance.randint(0, 6) if between is None else between
    return " ".join(["the", animal, *chance.choices(FILLERS, k=between), "now", SOUNDS[animal]])


chance = random.Random(0)
for _ in range(3):
    print(sentence(chance))

# %%
import elman

SENTENCES = 2000  # fast: 60
EPOCHS = 10  # fast: 1
LINES = {"data.unit": "line", "text.kind": "words", "baseline.order": 0}
NETWORK = {"model.hidden": 48, "model.embedding": 24, "model.layers": 1, "batch.size": 32}
NETWORK |= {"train.lr": 1e-2, "train.epochs": EPOCHS}
KINDS = {
    "4-gram": {"model.kind": "ngram", "model.order": 4},
    "window of 3": {"model.kind": "window", "model.window": 3} | NETWORK,
    "recurrent": {"model.cell": "gru"} | NETWORK,
}

texts = [sentence(chance) for _ in range(SENTENCES)]
held_out = [sentence(chance) for _ in range(200)]
models = {
    name: elman.fit("lm", train=texts, dev=held_out, settings=LINES | settings, verbose=False)
    for name, settings in KINDS.items()
}
for name, model in models.items():
    print(f"{name:12} perplexity {model.report['dev']['perplexity']:.2f}")

# %% [markdown]
# The perplexity is e to the mean loss: among how many equally likely words the model is undecided. Most words of
# these sentences are drawn by chance, which no model can foresee; the sounds are not. So look at the sounds alone, by
# how many adverbs stand before them:

# %% How likely each model finds the right sound, by what stands in between
import math

from elman.draw.panels import Line, Lines
from elman.draw.picture import figure


def sureness(model, between):
    """The mean probability that a model gives to the sound."""
    found = []
    for _ in range(40):
        tokens = model.score(sentence(random.Random(between * 1000 + len(found)), between))
        found.append(next(math.exp(token.log_prob) for token in tokens if token.token in SOUNDS.values()))
    return sum(found) / len(found)


BETWEEN = [0, 1, 2, 3, 4, 6]
sure = {name: [sureness(model, between) for between in BETWEEN] for name, model in models.items()}
figure(
    Lines(
        "probability of the right sound",
        [Line(name, BETWEEN, values) for name, values in sure.items()],
        "adverbs between animal and sound",
        "probability",
        y_range=(0, 1),
    )
)

# %% [markdown]
# Where six adverbs stand in between, the recurrent network gives the right sound {{sure["recurrent"][-1]:.0%}}, the
# window of three words {{sure["window of 3"][-1]:.0%}}, the 4-gram {{sure["4-gram"][-1]:.0%}}: for the last two the
# animal is out of sight, and one of six sounds is as good as another.

# %% [check]
assert sure["recurrent"][-1] > 0.5 > 0.2 > max(sure["window of 3"][-1], sure["4-gram"][-1])
assert models["recurrent"].report["dev"]["perplexity"] < models["window of 3"].report["dev"]["perplexity"]

# %% [markdown]
# ## The cell, the loss, the perplexity
#
# The simple recurrent network of the notes, with U, W and S tied over all steps:
#
# ```
# h_i = σ(W h_i-1 + U w_i)
# ŵ_i+1 = softmax(S h_i)
# ```
#
# In PyTorch W and U are one linear layer over both vectors side by side:

# %%
import torch
from torch import nn


class SimpleRNN(nn.Module):
    """One step: a one-hot word and a state to log-probabilities and the next state."""

    def __init__(self, words, hidden, classes):
        super().__init__()
        self.hidden = hidden
        self.both = nn.Linear(words + hidden, hidden)  # [U W]
        self.S = nn.Linear(hidden, classes)

    def forward(self, w, h):
        h = torch.sigmoid(self.both(torch.cat([w, h], dim=1)))  # B x H
        return torch.log_softmax(self.S(h), dim=1), h  # B x C


step = SimpleRNN(words=10, hidden=4, classes=10)
log_probs, h = step(torch.eye(10)[[3]], torch.zeros(1, 4))
print(f"{tuple(log_probs.shape)}, the probabilities sum to {log_probs.exp().sum():.4f}")

# %% [markdown]
# Without the σ, as in the notes' listing ([errata](../errata.md), C-2), two steps are no more than one: the state is
# a linear function of all words, and what a word does does not depend on those before it.
#
# The loss is the negative log-probability of the word that came. It has two spellings, which are one number, and a
# third that should not be used: the logarithm of a softmax overflows where the log-softmax does not.

# %%
logits, target = torch.tensor([[2.0, -1.0, 0.5]]), torch.tensor([2])
log_softmax_and_nll = nn.functional.nll_loss(torch.log_softmax(logits, dim=1), target)
cross_entropy = nn.functional.cross_entropy(logits, target)
print(f"log-softmax and negative log-likelihood {log_softmax_and_nll:.6f}, cross-entropy {cross_entropy:.6f}")
large = torch.tensor([200.0, 0.0, -200.0])
naive, stable = torch.log(torch.exp(large) / torch.exp(large).sum()), torch.log_softmax(large, dim=0)
print("large logits, naively:", naive.tolist(), "and with log-softmax:", stable.tolist())

# %% [check]
assert torch.equal(log_softmax_and_nll, cross_entropy) and naive.isnan().any() and stable.isfinite().all()

# %% [markdown]
# The notes' example gives eight words, the end among them, these probabilities. The mean of their negative logarithms
# is the loss of the sentence, and e to it the perplexity:

# %%
probabilities = [0.2, 0.12, 0.2, 0.19, 0.3, 0.2, 0.2, 0.3]
loss = -sum(math.log(p) for p in probabilities) / len(probabilities)
print(f"loss {loss:.3f} nats a word, perplexity {math.exp(loss):.2f}")

# %% [check]
assert round(loss, 3) == 1.578

# %% [markdown]
# ## The loop
#
# Predictions, loss, gradient, step: all training is these four lines. The task is that of the notes, a name read
# letter by letter, and at the end of it a guess at its language. One name at a time, as there:

# %%
from elman.generated.surnames import surname_lists

LANGUAGES = ["Italian", "Japanese", "Polish"]
NAMES = 4000  # fast: 60
lists = surname_lists()
letters = sorted({letter for language in LANGUAGES for name in lists[language] for letter in name})
torch.manual_seed(0)
rnn = SimpleRNN(len(letters), 64, len(LANGUAGES))
optimizer = torch.optim.SGD(rnn.parameters(), lr=0.3)


def one_hot(name):
    return torch.eye(len(letters))[[letters.index(letter) for letter in name]]  # T x V


def guess(name):
    h = torch.zeros(1, rnn.hidden)
    for w in one_hot(name):
        log_probs, h = rnn(w.unsqueeze(0), h)
    return log_probs  # of the last step, 1 x C


losses = []
for _ in range(NAMES):
    label = chance.randrange(len(LANGUAGES))
    names = lists[LANGUAGES[label]]
    prediction = guess(names[chance.randrange(len(names) * 3 // 4)])  # the last quarter is kept for the test
    loss = nn.functional.nll_loss(prediction, torch.tensor([label]))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(rnn.parameters(), 1.0)
    optimizer.step()
    losses.append(loss.item())

test = [
    (name, label)
    for label, language in enumerate(LANGUAGES)
    for name in lists[language][len(lists[language]) * 3 // 4 :]
]
with torch.no_grad():
    right = sum(guess(name).argmax().item() == label for name, label in test[::3]) / len(test[::3])
print(f"loss at first {sum(losses[:200]) / 200:.2f}, at last {sum(losses[-200:]) / 200:.2f}")
print(f"{right:.1%} of the test names right")

# %% [markdown]
# A name at a time uses little of a processor. Elman reads names of like length side by side, packed, and keeps the
# best model:

# %%
parts = {"train": [], "test": []}
for language in LANGUAGES:
    cut = len(lists[language]) * 3 // 4
    parts["train"] += [(name, language) for name in lists[language][:cut]][:NAMES]
    parts["test"] += [(name, language) for name in lists[language][cut:]]
classifier = elman.fit(
    "classify",
    train=parts["train"],
    test=parts["test"],
    settings={"text.kind": "characters", "model.hidden": 64, "model.embedding": 32, "train.epochs": 3},
    verbose=False,
)
accuracy = classifier.report["test"]["accuracy"]
classifier

# %% [check]
assert right > 0.6 and accuracy > max(right, 0.85)

# %% [markdown]
# ## An encoder and a decoder
#
# One network reads a sequence into its last state; another begins with that state, reads the start symbol, and writes
# until it says the end symbol. As a task that needs memory and no corpus: to write a word of four letters backwards.
# Both are a GRU, here `elman.nn.GRU`, which has the arguments and the weights of PyTorch's.

# %%
import elman.nn

START, END, A = 0, 1, 2
ALPHABET = "abcdefgh"


class Encoder(nn.Module):
    def __init__(self, size, hidden):
        super().__init__()
        self.embedding = nn.Embedding(size, hidden)
        self.gru = elman.nn.GRU(hidden, hidden, batch_first=True)

    def forward(self, source):  # B x S
        return self.gru(self.embedding(source))[1]  # the last state, 1 x B x H


class Decoder(nn.Module):
    def __init__(self, size, hidden):
        super().__init__()
        self.embedding = nn.Embedding(size, hidden)
        self.gru = elman.nn.GRU(hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, size)

    def forward(self, state, target, forced):
        """Log-probabilities, B x T x V. Forced, a step reads the right symbol before it; else what was written."""
        symbol, rows = torch.full((len(target), 1), START), []
        for t in range(target.shape[1]):
            output, state = self.gru(self.embedding(symbol), state)  # B x 1 x H
            rows.append(torch.log_softmax(self.out(output), dim=-1))
            symbol = target[:, t : t + 1] if forced else rows[-1].argmax(-1)  # argmax has no gradient
        return torch.cat(rows, dim=1)


def batch(size, generator):
    source = torch.randint(A, A + len(ALPHABET), (size, 4), generator=generator)
    return source, torch.cat([source.flip(1), torch.full((size, 1), END)], dim=1)


BATCHES = 400  # fast: 3


def learn(forced):
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    encoder, decoder = Encoder(A + len(ALPHABET), 48), Decoder(A + len(ALPHABET), 48)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=5e-3)
    for _ in range(BATCHES):
        source, target = batch(32, generator)
        log_probs = decoder(encoder(source), target, forced)
        loss = nn.functional.nll_loss(log_probs.flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        source, target = batch(500, torch.Generator().manual_seed(2))
        written = decoder(encoder(source), target, forced=False).argmax(-1)
    return (written == target).all(dim=1).float().mean().item()


backwards = {forced: learn(forced) for forced in (True, False)}
for forced, share in backwards.items():
    print(f"teacher forcing {'always' if forced else 'never':6}: {share:.1%} of new words backwards")

# %% [markdown]
# Teacher forcing feeds the right symbol while training, whatever the network said; never forced, the network learns
# from its own mistakes, and at first it makes many. In Elman the share is a setting, `loss.teacher_forcing`, and may
# change over the run (`loss.teacher_forcing_end`). The whole of the above is

# %%
TRAIN = 3000  # fast: 60
words = ["".join(chance.choices(ALPHABET, k=4)) for _ in range(TRAIN)]
translator = elman.fit(
    "translate",
    train=[(word, word[::-1]) for word in words],
    settings={
        "text.kind": "characters",
        "model.decoder": "plain",
        "model.cell": "gru",
        "model.hidden": 48,
        "model.embedding": 48,
        "model.bidirectional": False,
        "model.input_dropout": 0,
        "model.output_dropout": 0,
        "loss.smoothing": 0,
        "batch.tokens": 160,
        "train.lr": 5e-3,
        "train.epochs": 4,
        "search.beam": 1,
    },
    verbose=False,
)
new = ["fade", "head", "bach", "cafe"]
print({one: found.text for one, found in zip(new, translator.predict(new))})
print(f"exact match on held-out words: {translator.report['dev']['exact_match']:.1%}")

# %% [check]
assert backwards[True] > 0.9 and translator.report["dev"]["exact_match"] > 0.9

# %% [markdown]
# ## Exercises
#
# [The solutions](solutions.md#lesson-2) are tests.
#
# 1. Show that the recurrent network without σ is linear: the state after three words is the sum of what each word
#    does by itself, wherever the others stand.
# 2. Write a bigram model with add-one smoothing, and its perplexity on held-out sentences of this lesson; compare it
#    with `elman.baselines.KneserNey`.
# 3. How wide must the window be for the sounds to be certain? Say it before you train, then train and see.
# 4. Perplexities of models over different vocabularies cannot be compared. Turn a perplexity a word into bits a
#    character.
