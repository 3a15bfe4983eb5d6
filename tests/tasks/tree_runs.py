"""A treebank so small that it is learned in seconds: grades of adjectives, which `not` turns."""

import random
from pathlib import Path

WORDS = {"awful": 0, "dull": 1, "film": 2, "fine": 3, "great": 4}
SMALL = (
    "model.hidden=16",
    "model.embedding=12",
    "model.input_dropout=0",
    "model.output_dropout=0",
    "batch.size=8",
    "train.lr=0.02",
    "train.steps=200",
    "train.evaluate_every=100",
    "train.log_every=1",
    "train.threads=1",
)


def sentence(generator: random.Random) -> str:
    """`(4 (2 the) (4 (4 great) (2 film)))`, or with `not` before the adjective and the other end of the scale."""
    word, grade = generator.choice([(word, grade) for word, grade in WORDS.items() if word != "film"])
    adjective = f"({grade} {word})"
    for _ in range(generator.choice((0, 0, 1, 2))):
        grade = 4 - grade
        adjective = f"({grade} (2 not) {adjective})"
    phrase = f"({grade} {adjective} (2 film))"
    return f"({grade} (2 {generator.choice(('the', 'a', 'this'))}) {phrase})" if generator.random() < 0.7 else phrase


def write_trees(path: Path, count: int = 80, seed: int = 1) -> Path:
    """A file of such sentences, with a neutral one at its end."""
    generator = random.Random(seed)
    lines = [sentence(generator) for _ in range(count - 1)]
    path.write_text("\n".join([*lines, "(2 (2 the) (2 film))"]) + "\n")
    return path


CONLLU = """\
# label = good
1\tMoles\tmole\tNOUN\tNNS\t_\t2\tnsubj\t_\t_
2\tdig\tdig\tVERB\tVBP\t_\t0\troot\t_\t_
3\tdeep\tdeep\tADJ\tJJ\t_\t4\tamod\t_\t_
4\tholes\thole\tNOUN\tNNS\t_\t2\tobj\t_\t_

# label = bad
1\tOwls\towl\tNOUN\tNNS\t_\t2\tnsubj\t_\t_
2\tsleep\tsleep\tVERB\tVBP\t_\t0\troot\t_\t_

"""
