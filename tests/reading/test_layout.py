"""Where boxes stand: in order, apart, parents in the middle; and that text is not wider than thought."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.reading.layout import place_across, place_along, shorten, stack_ends, text_width, wrap


@st.composite
def shapes(draw):
    """Parents in the order of a walk that goes down first, and extents."""
    n = draw(st.integers(1, 25))
    parents, path = [-1], [0]
    for place in range(1, n):
        keep = draw(st.integers(1, len(path)))
        path = path[:keep]
        parents.append(path[-1])
        path.append(place)
    return parents, draw(st.lists(st.floats(1.0, 50.0), min_size=n, max_size=n))


def depths_of(parents):
    depths = []
    for parent in parents:
        depths.append(depths[parent] + 1 if parent >= 0 else 0)
    return depths


def check_tidy(parents, extents, centres):
    depths = depths_of(parents)
    for i in range(len(parents)):
        assert centres[i] - extents[i] / 2 >= -1e-9
        children = [j for j, parent in enumerate(parents) if parent == i]
        if children:
            assert centres[i] == pytest.approx((centres[children[0]] + centres[children[-1]]) / 2)
        for j in range(i + 1, len(parents)):
            if depths[i] == depths[j]:
                assert centres[j] - centres[i] >= (extents[i] + extents[j]) / 2 - 1e-9


@given(shapes())
def test_boxes_of_one_depth_are_apart_and_parents_in_the_middle(shape):
    check_tidy(*shape, place_across(*shape))


def test_the_check_notices_boxes_that_overlap():
    with pytest.raises(AssertionError):
        check_tidy([-1, 0, 0], [2.0, 2.0, 2.0], [2.0, 1.5, 2.5])


def test_boxes_are_as_close_as_they_can_be():
    assert place_across([-1, 0, 0], [2.0, 4.0, 2.0]) == [3.5, 2.0, 5.0]
    # a box below a narrow one moves beside the next: a leaf of depth 1 stands over nothing
    parents, extents = [-1, 0, 1, 1, 0], [2.0, 2.0, 2.0, 2.0, 2.0]
    assert place_across(parents, extents) == [3.0, 2.0, 1.0, 3.0, 4.0]


def test_a_small_subtree_between_large_ones_stands_in_the_middle():
    parents = [-1, 0, 1, 1, 0, 0, 5, 5]
    centres = place_across(parents, [2.0] * 8)
    assert centres[4] == pytest.approx((centres[1] + centres[5]) / 2)


@given(shapes())
def test_ends_have_lines_of_their_own(shape):
    parents, extents = shape
    centres = stack_ends(parents, extents)
    ends = [i for i in range(len(parents)) if i not in parents]
    for i, j in pairwise(ends):
        assert centres[j] - centres[i] == pytest.approx((extents[i] + extents[j]) / 2)
    for i in set(range(len(parents))) - set(ends):
        children = [j for j, parent in enumerate(parents) if parent == i]
        assert centres[i] == pytest.approx((centres[children[0]] + centres[children[-1]]) / 2)


def test_lines_begin_behind_the_longest_box():
    assert place_along([0, 1, 1, 2], [10.0, 5.0, 7.0, 3.0], [0.0, 2.0, 4.0]) == [0.0, 12.0, 23.0]


# Widths in ems from the tables (hmtx) of DejaVu Sans 2.37 and Liberation Sans 2.1.
@pytest.mark.parametrize(
    ("text", "is_bold", "true"),
    [("Petal length (cm) versicolor 150 rows", False, 18.732), ("Petal length (cm) versicolor 150 rows", True, 21.186)],
)
def test_text_is_not_wider_than_estimated(text, is_bold, true):
    assert true <= text_width(text, 1.0, is_bold=is_bold) <= 1.15 * true


@given(st.text(max_size=40), st.floats(20.0, 200.0))
def test_shortened_text_fits(text, width):
    short = shorten(text, width, 11.0)
    assert text_width(short, 11.0) <= width + 1e-3
    assert short == text or (short.endswith("…") and text.startswith(short[:-1].rstrip()))


def test_text_is_wrapped_at_blanks():
    lines = wrap("one two three four", text_width("one two", 11.0), 11.0)
    assert lines == ["one two", "three", "four"]
    assert " ".join(lines) == "one two three four"
