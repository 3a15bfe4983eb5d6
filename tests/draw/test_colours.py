import pytest

from elman.draw.colours import BUCKETS, DARK, LEVELS, LIGHT, Palette, contrast, ink, level
from elman.draw.page import page_style
from elman.draw.panels import Scale

SCALES: tuple[tuple[Scale, int], ...] = (("sequential", LEVELS), ("diverging", LEVELS), ("buckets", BUCKETS))


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_text_is_readable_on_every_colour(palette: Palette) -> None:
    for scale, levels in SCALES:
        for step in range(levels):
            colour = palette.colour(scale, step)
            assert contrast(ink(colour), colour) >= 4.5, f"{scale} {step}"
            assert f"--ground:{colour};--ink:{ink(colour)}" in page_style()


@pytest.mark.parametrize(("palette", "page"), [(LIGHT, "#ffffff"), (DARK, "#121519")], ids=["light", "dark"])
def test_colours_of_names_stand_out_from_the_page(palette: Palette, page: str) -> None:
    assert f"--page: {page};" in page_style()
    assert all(contrast(colour, page) >= 4.5 for colour in palette.names)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_the_further_from_nothing_the_further_from_the_ground(palette: Palette) -> None:
    ground = palette.colour("sequential", 0)
    away = [contrast(palette.colour("sequential", step), ground) for step in range(LEVELS)]
    assert away == sorted(away)
    middle = LEVELS // 2
    for steps in (range(middle, LEVELS), range(middle, -1, -1)):
        away = [contrast(palette.colour("diverging", step), palette.colour("diverging", middle)) for step in steps]
        assert away == sorted(away)


def test_numbers_beyond_a_scale_have_the_colour_of_its_end() -> None:
    assert level(7.0, "sequential") == level(1.0, "sequential") == LEVELS - 1
    assert level(-7.0, "sequential") == 0
    assert level(float("inf"), "diverging", high=3.0) == LEVELS - 1
    assert level(99, "buckets") == BUCKETS - 1
    assert level(None, "diverging") is None
    assert level(2.0, "sequential", low=2.0, high=2.0) == 0
