"""What is known of each corpus that Elman knows by name."""

from dataclasses import dataclass

GITHUB = "https://raw.githubusercontent.com"
WIKITEXT2 = f"{GITHUB}/pytorch/examples/main/word_language_model/data/wikitext-2"
NAMES = f"{GITHUB}/hunkim/PyTorchZeroToAll/master/data"
TREC_HOME = "https://cogcomp.seas.upenn.edu/Data/QA/QC"
EWT = f"{GITHUB}/UniversalDependencies/UD_English-EWT/r2.16"
MULTI30K_RAW = f"{GITHUB}/multi30k/dataset/master/data/task1/raw"
WNUT = f"{GITHUB}/leondz/emerging_entities_17/master"


@dataclass(frozen=True)
class CorpusFile:
    """One file: its name, size and checksum once unpacked, and its public address if it has one."""

    name: str
    bytes: int
    sha256: str
    address: str | None = None


@dataclass(frozen=True)
class Corpus:
    """A corpus: facts for people, and its files by split. One without files is made on the spot."""

    name: str
    description: str
    tasks: tuple[str, ...]
    licence: str
    home: str
    files: tuple[CorpusFile, ...]
    splits: dict[str, tuple[str, ...]]
    notes: str
    encoding: str = "utf-8"


TINYSHAKESPEARE = Corpus(
    "tinyshakespeare",
    "1.1 million characters of Shakespeare's plays",
    ("lm",),
    "public domain",
    "https://github.com/karpathy/char-rnn",
    (
        CorpusFile(
            "input.txt",
            1_115_394,
            "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
            f"{GITHUB}/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
        ),
    ),
    {"train": ("input.txt",)},
    "no split of its own; the usual one is the first 90 % of the characters for training, the rest to validate",
)
SONNETS = Corpus(
    "sonnets",
    "Shakespeare's 154 sonnets",
    ("lm",),
    "public domain",
    "https://github.com/enerrio/Generate-Shakespeare-Sonnets",
    (
        CorpusFile(
            "sonnets.txt",
            94_082,
            "4e5e5812959a59e06ebd719641be487c64b7496ace51a9e2594b8c0dca485562",
            f"{GITHUB}/enerrio/Generate-Shakespeare-Sonnets/17398f0d878f13c20f7b93fb9201470d29888908/sonnets.txt",
        ),
    ),
    {"train": ("sonnets.txt",)},
    "one verse a line, an empty line between sonnets; no split",
)
WIKITEXT_2 = Corpus(
    "wikitext2",
    "2 million words of Wikipedia articles, rare words replaced by <unk>",
    ("lm",),
    "CC BY-SA",
    "https://github.com/pytorch/examples",
    (
        CorpusFile(
            "train.txt",
            10_797_148,
            "9e9fa1ad55b1c2c95b08e37dd8e653f638fac2c6de904b79e813611eefbc985f",
            f"{WIKITEXT2}/train.txt",
        ),
        CorpusFile(
            "valid.txt",
            1_121_681,
            "f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8",
            f"{WIKITEXT2}/valid.txt",
        ),
        CorpusFile(
            "test.txt",
            1_256_449,
            "d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0",
            f"{WIKITEXT2}/test.txt",
        ),
    ),
    {"train": ("train.txt",), "dev": ("valid.txt",), "test": ("test.txt",)},
    "words stand between blanks; published figures count one <eos> a line: 2,088,628 / 217,646 / 245,569 tokens",
)
NAMES_18 = Corpus(
    "names",
    "20,074 surnames in 18 languages",
    ("lm", "classify"),
    "none stated",
    "https://github.com/hunkim/PyTorchZeroToAll",
    (
        CorpusFile(
            "names_train.csv",
            280_352,
            "408687cf9cf917854cf9b7e860e482499009cf0b5aa7b2f2a47e2f560cbc0521",
            f"{NAMES}/names_train.csv.gz",
        ),
        CorpusFile(
            "names_test.csv",
            140_061,
            "28ad30296998ee57bb43ef9c5ed21327f0a453210a86b7d30251daa9336b2a7f",
            f"{NAMES}/names_test.csv.gz",
        ),
    ),
    {"train": ("names_train.csv",), "test": ("names_test.csv",)},
    "no header; column 1 the name, column 2 the language; 11.5 % of the test rows stand in train too",
)
PYTHON = Corpus(
    "python",
    "source code of the standard library of the Python that runs Elman, about 8 million characters",
    ("lm",),
    "PSF-2.0",
    "https://www.python.org",
    (),
    {"train": ()},
    "built in, one document a file; differs from one version of Python to the next",
)

TREC = Corpus(
    "trec",
    "5,952 questions by what they ask for, 6 coarse and 50 fine classes",
    ("classify",),
    "research",
    f"{TREC_HOME}/",
    (
        CorpusFile(
            "TREC.train",
            335_858,
            "9e4c8bdcaffb96ed61041bd64b564183d52793a8e91d84fc3a8646885f466ec3",
            f"{TREC_HOME}/train_5500.label",
        ),
        CorpusFile(
            "TREC.test",
            23_354,
            "033f22c028c2bbba9ca682f68ffe204dc1aa6e1cf35dd6207f2d4ca67f0d0e8e",
            f"{TREC_HOME}/TREC_10.label",
        ),
    ),
    {"train": ("TREC.train",), "test": ("TREC.test",)},
    "one question a line, `COARSE:fine question`, words separated, latin-1; the test part has 42 of the fine classes",
    "latin-1",
)
SST_TREES = Corpus(
    "sst-trees",
    "Stanford Sentiment Treebank: 11,855 film-review sentences as trees, a grade at every node",
    ("classify",),
    "cite Socher et al. 2013",
    "https://nlp.stanford.edu/sentiment/",
    (
        CorpusFile("train.txt", 2_160_058, "e2f3f41b0b1e6d4dddc0effe3bfc2d27ed8928079aa9a03d652311614fc5feb7"),
        CorpusFile("dev.txt", 280_825, "0e9336aed6e4730e19f58d00a77b3f0297efdb755f7b5e598c98a05e3f97ea40"),
        CorpusFile("test.txt", 559_614, "6e54806dee95cf80cd918e7dfb3f6770f6df24bf826f289a4d1f709e1c8f6761"),
    ),
    {"train": ("train.txt",), "dev": ("dev.txt",), "test": ("test.txt",)},
    "one bracketed tree a line, labels 0 (very negative) to 4; published as a zip, trainDevTestTrees_PTB; the binary "
    "task leaves out sentences labelled 2: 6,920 / 872 / 1,821",
)
SENTENCE_POLARITY = Corpus(
    "sentence-polarity",
    "10,662 sentences of film reviews, positive and negative",
    ("classify",),
    "CC BY 4.0",
    "https://www.cs.cornell.edu/people/pabo/movie-review-data/",
    (
        CorpusFile("rt-polarity.neg", 612_441, "614274f81185a850e5a88d533d4679f916d6f62e9af6f0b4ec71fb94bf466ea5"),
        CorpusFile("rt-polarity.pos", 626_334, "c2dc6b2f55bcf725725372916287cc3f8f9b19402edaa9167de5287cb3ade421"),
    ),
    {"train": ("rt-polarity.neg", "rt-polarity.pos")},
    "a file a class, one sentence a line, in utf-8; no split: published figures are ten-fold cross-validation",
)
UD_ENGLISH_EWT = Corpus(
    "ud-english-ewt",
    "Universal Dependencies 2.16, English Web Treebank: 16,622 sentences with parts of speech and features",
    ("tag",),
    "CC BY-SA 4.0",
    "https://github.com/UniversalDependencies/UD_English-EWT",
    tuple(
        CorpusFile(f"en_ewt-ud-{split}.conllu", size, digest, f"{EWT}/en_ewt-ud-{split}.conllu")
        for split, size, digest in (
            ("train", 14_203_025, "3fb78e2b55482c8ee00caa653af436c88c9e5bc9a73ce26e4ae3ddc79d2b7e7b"),
            ("dev", 1_805_545, "531a54ff90d6ab12201c5a50c3e78e6ddac4de69abc4bce5d275d3cd29efe2b6"),
            ("test", 1_804_515, "e266e515a0a7547657ed3d90d9ba46487d6bd251f27ad4269d4e8a427c8555cd"),
        )
    ),
    {split: (f"en_ewt-ud-{split}.conllu",) for split in ("train", "dev", "test")},
    "CoNLL-U; 204,577 / 25,147 / 25,094 words without multiword tokens and empty nodes",
)
WNUT17 = Corpus(
    "wnut17",
    "WNUT 2017: rare and emerging entities of 6 types in 5,690 posts",
    ("tag",),
    "CC BY 4.0",
    "https://github.com/leondz/emerging_entities_17",
    tuple(
        CorpusFile(name, size, digest, f"{WNUT}/{name}")
        for name, size, digest in (
            ("wnut17train.conll", 493_781, "731820e13f71af324c6b55a1575ec2ce59fbaa2a0806f8f0400b98d56cd6a7a5"),
            ("emerging.dev.conll", 114_749, "e053b752b8155113ca66e7db08af5f2f5f43ab993694e4774f1ec5bad42312d8"),
            ("emerging.test.annotated", 192_425, "2aa79b764e56ec9264a1b30fdd9b70195bd00ff400b62edd8f399d5f13c178f0"),
        )
    ),
    {"train": ("wnut17train.conll",), "dev": ("emerging.dev.conll",), "test": ("emerging.test.annotated",)},
    "two columns, token and BIO tag; 3,394 / 1,009 / 1,287 sentences",
)
SURNAMES = Corpus(
    "surnames",
    "about 24,000 surnames in 36 languages, from Faker's lists",
    ("lm", "classify"),
    "MIT",
    "https://github.com/joke2k/faker",
    (),
    {"train": (), "test": ()},
    "built in, made with Faker (pip install elman[demo]); columns text and label; no test name stands in train; "
    "differs from one version of Faker to the next",
)
ENTITIES = Corpus(
    "entities",
    "personal data in 13,650 made-up sentences of 7 languages: persons, addresses, phones, e-mail, companies, dates, "
    "IBANs, cards",
    ("tag",),
    "MIT",
    "https://github.com/joke2k/faker",
    (),
    {"train": (), "dev": (), "test": ()},
    "built in, made with Faker (pip install elman[demo]); token and BIO tag; each split has templates of its own; "
    "differs from one version of Faker to the next",
)
MULTI30K = Corpus(
    "multi30k",
    "31,014 image descriptions in German and English",
    ("translate",),
    "research",
    "https://github.com/multi30k/dataset",
    tuple(
        CorpusFile(name, size, digest, f"{MULTI30K_RAW}/{name}.gz")
        for name, size, digest in (
            ("train.de", 2_110_398, "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72"),
            ("train.en", 1_801_238, "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6"),
            ("val.de", 75_981, "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660"),
            ("val.en", 63_297, "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227"),
            ("test_2016_flickr.de", 70_649, "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16"),
            ("test_2016_flickr.en", 62_076, "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182"),
        )
    ),
    {
        split: (f"{name}.de", f"{name}.en")
        for split, name in (("train", "train"), ("dev", "val"), ("test", "test_2016_flickr"))
    },
    "parallel files, neither tokenised nor lower-cased; 29,000 / 1,014 / 1,000 pairs, the test set of 2016; German to "
    "English unless source=en is said",
)
TATOEBA_FRA_ENG = Corpus(
    "tatoeba-fra-eng",
    "142,787 short sentence pairs, English and French",
    ("translate",),
    "CC BY 2.0",
    "https://www.manythings.org/anki/",
    (CorpusFile("fra.txt", 10_009_515, "2546838ae46e0eac4c02ab7032ea0a02a006074a5340077a36a9444f41e02888"),),
    {"train": ("fra.txt",)},
    "English, tab, French, sorted by length; published as a zip; no split: 98,659 English sides differ, so split by "
    "them, or a sentence lands on both sides",
)
CMUDICT = Corpus(
    "cmudict",
    "CMU pronouncing dictionary: 135,166 pronunciations of English words",
    ("translate",),
    "BSD-2-Clause",
    "https://github.com/cmusphinx/cmudict",
    (
        CorpusFile(
            "cmudict.dict",
            3_618_488,
            "81917843c7f44ce2b094ac63873c2c7a4cf802040792c455ba3ca406891c3d22",
            f"{GITHUB}/cmusphinx/cmudict/master/cmudict.dict",
        ),
    ),
    {"train": ("cmudict.dict",)},
    "a word a line, then its sounds; word(2) is a second pronunciation; no split: split by word",
)
DATES = Corpus(
    "dates",
    "20,000 dates as 59 languages and regions write them, and their ISO form",
    ("translate",),
    "BSD-3-Clause",
    "https://github.com/python-babel/babel",
    (),
    {"train": (), "dev": (), "test": ()},
    "built in, worded by Babel (pip install elman[demo]); columns source and target; no date of dev and test stands in "
    "train; differs from one version of Babel to the next",
)
NUMBERS = Corpus(
    "numbers",
    "20,000 numbers below a million and how they are read out in English, French, German, Turkish",
    ("translate",),
    "Apache-2.0",
    "elman.generated.numbers",
    (),
    {"train": (), "dev": (), "test": ()},
    "built in; columns source (`de 21`) and target (`einundzwanzig`); no number of dev and test stands in train",
)
WAVES = Corpus(
    "waves",
    "8 noisy series of 600 steps with a daily and a weekly rhythm",
    ("series",),
    "Apache-2.0",
    "elman.generated.waves",
    (),
    {"train": ()},
    "built in; columns series, step and value; no split: the end of each series is held out",
)
SUNSPOTS = Corpus(
    "sunspots",
    "sunspots seen in each year from 1700 to 2008",
    ("series",),
    "public domain",
    "https://www.statsmodels.org/stable/datasets/generated/sunspots.html",
    (),
    {"train": ()},
    "inside statsmodels (pip install statsmodels); columns YEAR and SUNACTIVITY; no split",
)
CO2 = Corpus(
    "co2",
    "carbon dioxide in the air above Mauna Loa, every week from 1958 to 2001",
    ("series",),
    "public domain",
    "https://www.statsmodels.org/stable/datasets/generated/co2.html",
    (),
    {"train": ()},
    "inside statsmodels (pip install statsmodels); columns date and co2; 59 of 2,284 weeks are missing: say "
    "data.missing=interpolate; no split",
)

CATALOGUE: dict[str, Corpus] = {
    corpus.name: corpus
    for corpus in (
        *(TINYSHAKESPEARE, SONNETS, WIKITEXT_2, NAMES_18, TREC, SST_TREES, SENTENCE_POLARITY, UD_ENGLISH_EWT, WNUT17),
        *(MULTI30K, TATOEBA_FRA_ENG, CMUDICT, PYTHON, SURNAMES, ENTITIES, DATES, NUMBERS),
        *(WAVES, SUNSPOTS, CO2),
    )
}
