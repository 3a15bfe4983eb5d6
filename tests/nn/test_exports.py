"""What `import elman.nn` offers."""

import elman.nn
from elman.nn import ATTENTIONS, CELLS, POOLINGS


def test_everything_that_has_a_name_in_recipes_is_exported() -> None:
    for kind in (*ATTENTIONS.values(), *CELLS.values(), *POOLINGS.values()):
        assert getattr(elman.nn, kind.__name__) is kind


def test_networks_and_their_parts_are_exported() -> None:
    assert {"Bridge", "Decoder", "LanguageNetwork", "Memory", "TranslationNetwork"} <= set(elman.nn.__all__)
    assert set(elman.nn.__all__) <= set(dir(elman.nn))
