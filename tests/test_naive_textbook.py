"""The plain ID3, C4.5 and prunings against printed trees and numbers: an oracle must be right by itself."""

import csv
import math
from fractions import Fraction

import pytest

import naive_pruning
import naive_textbook
from naive_textbook import Params, read_table

# ---------------------------------------------------------------------------------------- tables, and trees as text


class Named:
    """A table with names: levels and classes in order of the alphabet, as Weka was given them."""

    def __init__(self, header, rows, numeric=()):
        *self.features, self.target = header
        columns = list(zip(*rows, strict=True))
        self.levels = [
            None if name in numeric else sorted({cell for cell in column if cell != "?"})
            for name, column in zip(self.features, columns, strict=False)
        ]
        self.classes = sorted(set(columns[-1]))
        self.columns = [
            [read(cell, levels) for cell in column] for column, levels in zip(columns, self.levels, strict=False)
        ]
        self.y = [self.classes.index(cell) for cell in columns[-1]]

    def read(self, weights=None):
        is_categorical = [levels is not None for levels in self.levels]
        n_levels = [len(levels or ()) for levels in self.levels]
        return read_table(self.columns, self.y, weights, len(self.classes), is_categorical, n_levels)

    def grow(self, **params):
        return naive_textbook.grow_cases(*self.read(), Params(**params))

    def column(self, name):
        """The table with this column alone."""
        alone = object.__new__(Named)
        at = self.features.index(name)
        alone.features, alone.levels, alone.columns = [name], [self.levels[at]], [self.columns[at]]
        alone.classes, alone.y, alone.target = self.classes, self.y, self.target
        return alone


def read(cell, levels):
    if cell == "?":
        return math.nan
    return float(cell) if levels is None else float(levels.index(cell))


def load(folder, name, numeric=()):
    with (folder / f"toy_{name}.csv").open() as file:
        header, *rows = csv.reader(file)
    return Named(header, rows, numeric)


def draw(root, table, *, has_counts=True):
    """The tree as Weka prints it: J48 with weights, Id3 without."""
    lines = []

    def add(node, depth):
        for branch, child in enumerate(node.children):
            bar = "|" + (3 if has_counts else 2) * " "
            line = bar * depth + table.features[node.feature] + test_of(node, branch, table)
            if child.is_leaf:
                line += (
                    ": " + table.classes[naive_pruning.heaviest_class(child)] + (counts(child) if has_counts else "")
                )
            lines.append(line)
            add(child, depth + 1)

    if root.is_leaf:
        return ": " + table.classes[naive_pruning.heaviest_class(root)] + counts(root)
    add(root, 0)
    return "\n".join(lines)


def test_of(node, branch, table):
    if node.threshold is None:
        return " = " + table.levels[node.feature][branch]
    return f" {'<=' if branch == 0 else '>'} {node.threshold:g}"


test_of.__test__ = False


def counts(leaf):
    wrong = leaf.weight - max(leaf.sums)
    return f" ({hundredths(leaf.weight)}/{hundredths(wrong)})" if wrong else f" ({hundredths(leaf.weight)})"


def hundredths(x):
    return str(math.floor(float(x) * 100 + 0.5) / 100)


def grow_j48(table, options):
    """As J48 with these options."""
    words = options.split()
    root = naive_pruning.collapse(table.grow(rule="c45", min_samples_leaf=int(words[words.index("-M") + 1])))
    if "-U" in words:
        return root
    confidence = float(words[words.index("-C") + 1])
    return naive_pruning.prune_pessimistic(root, confidence, table=table.read()[0], is_raising="-S" not in words)


# ----------------------------------------------------------------------- trees that Weka 3.6.14 (Debian) has printed

COLOURS = Named(
    ["colour", "shape", "size", "class"],
    [
        line.split(",")
        for line in """\
?,round,8,a
red,round,6,b
blue,square,5,b
green,?,7,a
?,square,2,b
red,square,8,b
?,square,5,b
blue,square,5,b
?,square,5,b
green,round,5,a
red,round,1,a
green,?,9,a
?,round,9,b
?,round,?,a
green,?,5,a
green,square,2,b
?,?,9,a
?,square,5,b
green,square,6,a""".splitlines()
    ],
    numeric=["size"],
)

SHAPES = Named(
    ["colour", "shape", "size", "class"],
    [
        line.split(",")
        for line in """\
blue,round,1,a
blue,square,8,b
green,round,?,b
blue,round,1,b
red,round,2,a
red,square,9,b
blue,round,8,a
blue,square,4,a
blue,square,5,b
?,square,3,a
blue,square,7,b
?,round,3,a""".splitlines()
    ],
    numeric=["size"],
)

TIED = Named(
    ["shape", "size", "age", "class"],
    [
        line.split(",")
        for line in """\
round,1,1,a
round,6,4,a
round,5,2,a
square,9,5,b
round,2,3,a
square,7,4,a
round,2,3,a
square,2,1,a
square,6,5,b
square,6,1,b""".splitlines()
    ],
    numeric=["size", "age"],
)

PRINTED = {
    (COLOURS, "-U -M 2"): """\
colour = blue: b (3.45/0.55)
colour = green
|   shape = round: a (4.01/0.55)
|   shape = square
|   |   size <= 5: b (3.8/0.61)
|   |   size > 5: a (2.56)
colour = red
|   shape = round: a (2.97/1.27)
|   shape = square: b (2.21/0.12)""",
    (COLOURS, "-S -C 0.25 -M 2"): """\
colour = blue: b (3.45/0.55)
colour = green
|   shape = round: a (4.01/0.55)
|   shape = square
|   |   size <= 5: b (3.8/0.61)
|   |   size > 5: a (2.56)
colour = red: b (5.18/1.82)""",
    # the subtree below green has been raised to the root
    (COLOURS, "-C 0.25 -M 2"): """\
shape = round: a (7.6/2.0)
shape = square
|   size <= 5: b (7.6/0.6)
|   size > 5: a (3.8/1.0)""",
    (COLOURS, "-U -M 1"): """\
colour = blue: b (3.45/0.55)
colour = green
|   shape = round: a (4.01/0.55)
|   shape = square
|   |   size <= 5: b (3.8/0.61)
|   |   size > 5: a (2.56)
colour = red
|   shape = round
|   |   size <= 2: a (1.1)
|   |   size > 2: b (1.87/0.6)
|   shape = square: b (2.21/0.12)""",
    (SHAPES, "-U -M 2"): """\
shape = round
|   size <= 1: b (2.4/1.0)
|   size > 1: a (3.6/0.6)
shape = square
|   size <= 4: a (2.0)
|   size > 4: b (4.0)""",
    (SHAPES, "-S -C 0.25 -M 2"): """\
shape = round: a (6.0/2.0)
shape = square
|   size <= 4: a (2.0)
|   size > 4: b (4.0)""",
    (SHAPES, "-C 0.25 -M 2"): """\
size <= 4: a (6.55/1.55)
size > 4: b (5.45/1.0)""",
    (TIED, "-U -M 2"): """\
shape = round: a (5.0)
shape = square
|   age <= 4: a (3.0/1.0)
|   age > 4: b (2.0)""",
    # both branches of the root hold five rows: the last of them is raised
    (TIED, "-C 0.25 -M 2"): """\
age <= 4: a (8.0/1.0)
age > 4: b (2.0)""",
    (SHAPES, "-U -M 1"): """\
shape = round
|   colour = blue: a (3.6/1.0)
|   colour = green: b (1.2/0.2)
|   colour = red: a (1.2)
shape = square
|   size <= 4: a (2.0)
|   size > 4: b (4.0)""",
}


@pytest.mark.parametrize(("case", "printed"), PRINTED.items(), ids=lambda x: x[1] if isinstance(x, tuple) else "")
def test_j48_of_small_tables(case, printed):
    table, options = case
    assert draw(grow_j48(table, options), table) == printed


def test_j48_answers_a_row_of_unknown_shape():
    """What distributionForInstance of J48 -C 0.25 -M 2 says; rows 3, 14 and 16 go down both branches of the root."""
    root = grow_j48(COLOURS, "-C 0.25 -M 2")
    shares = [naive_textbook.class_shares(root, row) for row in zip(*COLOURS.columns, strict=True)]
    printed = {0: (14, 19), 2: (3, 38), 3: (14, 19), 14: (13, 38), 16: (14, 19)}
    for row, (part, whole) in printed.items():
        assert shares[row][0] == pytest.approx(part / whole, abs=1e-12)


J48_TOYS = {
    "play_tennis": """\
outlook = overcast: yes (4.0)
outlook = rainy
|   wind = strong: no (2.0)
|   wind = weak: yes (3.0)
outlook = sunny
|   humidity = high: no (3.0)
|   humidity = normal: yes (2.0)""",
    "weather_numeric": """\
outlook = overcast: yes (4.0)
outlook = rainy
|   windy = FALSE: yes (3.0)
|   windy = TRUE: no (2.0)
outlook = sunny
|   humidity <= 75: yes (2.0)
|   humidity > 75: no (3.0)""",
    "dhbw_q1": """\
A1 = a
|   A3 = x: + (2.0)
|   A3 = y: + (2.0)
|   A3 = z: - (2.0)
A1 = b: - (4.0)""",
    "dhbw_sport": """\
humidity = high: squash (8.0/3.0)
humidity = low: soccer (4.0/2.0)""",
    "contact_lenses": """\
tear-prod-rate = normal
|   astigmatism = no: soft (6.0/1.0)
|   astigmatism = yes
|   |   spectacle-prescrip = hypermetrope: none (3.0/1.0)
|   |   spectacle-prescrip = myope: hard (3.0)
tear-prod-rate = reduced: none (12.0)""",
    "casablanca": """\
major = CS: Yes (2.0)
major = History: No (2.0)
major = Math: No (4.0/2.0)""",
}


@pytest.mark.parametrize("name", J48_TOYS)
def test_j48_of_the_lectures_tables(shared_data, name):
    table = load(shared_data, name, numeric=["temperature", "humidity"] if name == "weather_numeric" else ())
    assert draw(grow_j48(table, "-C 0.25 -M 2"), table) == J48_TOYS[name]


def test_unpruned_j48_of_the_sport_table(shared_data):
    table = load(shared_data, "dhbw_sport")
    printed = """\
humidity = high
|   outlook = cloudy: tennis (3.0/1.0)
|   outlook = rainy: squash (3.0)
|   outlook = sunny: soccer (2.0/1.0)
humidity = low: soccer (4.0/2.0)"""
    assert draw(grow_j48(table, "-U -M 2"), table) == printed


ID3_TOYS = {
    "play_tennis": """\
outlook = overcast: yes
outlook = rainy
|  wind = strong: no
|  wind = weak: yes
outlook = sunny
|  humidity = high: no
|  humidity = normal: yes""",
    "dhbw_q1": """\
A1 = a
|  A3 = x: +
|  A3 = y: +
|  A3 = z: -
A1 = b: -""",
    "contact_lenses": """\
tear-prod-rate = normal
|  astigmatism = no
|  |  age = pre-presbyopic: soft
|  |  age = presbyopic
|  |  |  spectacle-prescrip = hypermetrope: soft
|  |  |  spectacle-prescrip = myope: none
|  |  age = young: soft
|  astigmatism = yes
|  |  spectacle-prescrip = hypermetrope
|  |  |  age = pre-presbyopic: none
|  |  |  age = presbyopic: none
|  |  |  age = young: hard
|  |  spectacle-prescrip = myope: hard
tear-prod-rate = reduced: none""",
    "dhbw_sport": """\
outlook = cloudy
|  humidity = high
|  |  temperature = cold: squash
|  |  temperature = warm: tennis
|  humidity = low: soccer
outlook = rainy: squash
outlook = sunny
|  wind = strong: tennis
|  wind = weak
|  |  temperature = cold: soccer
|  |  temperature = warm: soccer""",
}


@pytest.mark.parametrize("name", ID3_TOYS)
def test_weka_id3(shared_data, name):
    table = load(shared_data, name)
    assert draw(table.grow(), table, has_counts=False) == ID3_TOYS[name]


# ---------------------------------------------------------------------------------------------- numbers of lectures

TENNIS = {
    "outlook": (0.246750, 1.577406, 0.156428, 0.116327),
    "temperature": (0.029223, 1.556657, 0.018773, 0.018707),
    "humidity": (0.151836, 1.000000, 0.151836, 0.091837),
    "wind": (0.048127, 0.985228, 0.048849, 0.030612),
}


@pytest.mark.parametrize("name", TENNIS)
def test_candidates_of_play_tennis(shared_data, name):
    table = load(shared_data, "play_tennis").column(name)
    data, cases = table.read()
    root = naive_textbook.make_node(data, cases, 0, ())
    (candidate,) = naive_textbook.id3_candidates(data, cases, 0)
    gains = [
        naive_textbook.decrease(
            data, criterion, naive_textbook.impurity(criterion, root.sums, root.weight), root, candidate
        )
        for criterion in ("entropy", "gini")
    ]
    information = naive_textbook.split_information(root.weight, candidate.bags)
    found = [gains[0], information, naive_textbook.ratio(gains[0], information), gains[1]]
    assert [float(x) for x in found] == pytest.approx(TENNIS[name], abs=1e-6)


def test_id3_cuts_numbers_at_midpoints(shared_data):
    table = load(shared_data, "weather_numeric", numeric=["temperature", "humidity"])
    cuts = [(table.column(name).grow(max_depth=1)).threshold for name in ("temperature", "humidity")]
    assert cuts == [84.0, 82.5]


def test_c45_moves_a_cut_to_a_value_of_the_table(shared_data):
    table = load(shared_data, "weather_numeric", numeric=["temperature", "humidity"])
    root = table.grow(rule="c45", min_samples_leaf=2)
    assert root.children[2].threshold == 75.0  # between 70 and 85 among the sunny days; 75 was overcast


def test_xor_is_split_without_gain():
    root = naive_textbook.grow([[0, 0, 1, 1], [0, 1, 0, 1]], [0, 1, 1, 0], n_classes=2)
    assert [leaf.weight for leaf in naive_textbook.leaves(root)] == [1] * 4
    assert naive_textbook.grow([[0, 0, 1, 1], [0, 1, 0, 1]], [0, 1, 1, 0], n_classes=2, rule="c45").is_leaf


def test_an_empty_branch_answers_as_its_parent():
    """Level 1 occurs elsewhere in the table only."""
    columns = [[0, 0, 0, 1, 1, 1], [0, 0, 2, 0, 1, 2]]
    root = naive_textbook.grow(columns, [0, 0, 1, 2, 2, 2], n_classes=3, is_categorical=[True, True])
    assert root.feature == 0
    below = root.children[0]
    assert [child.is_empty for child in below.children] == [False, True, False]
    assert naive_textbook.class_shares(root, [0.0, 1.0]) == [Fraction(2, 3), Fraction(1, 3), 0]


def test_missing_is_a_value_of_its_own():
    columns = [[0, 0, math.nan, math.nan, 1, 1]]
    root = naive_textbook.grow(columns, [0, 0, 1, 1, 0, 0], n_classes=2, is_categorical=[True])
    assert [child.weight for child in root.children] == [2, 2, 2]
    assert root.missing_branch == 2
    number = naive_textbook.grow(columns, [0.5, 0.5, 3, 3, 0.5, 0.5], criterion="squared_error")
    assert (number.threshold, number.missing_branch) == (0.5, 2)
    known = naive_textbook.grow([[1.0, 1, math.nan]], [0.5, 0.5, 3], criterion="sdr")
    assert (known.threshold, known.missing_branch) == (math.inf, 1)
    assert naive_textbook.mean(known, [math.nan]) == 3


# -------------------------------------------------------------------------------------------------------- prunings


def test_quinlans_error_bounds():
    """Chapter 4 of "C4.5: Programs for Machine Learning": U(0, 6) = 0.206, U(0, 9) = 0.143, U(0, 1) = 0.750.

    A subtree with such leaves is expected to make 3.273 errors, a leaf in its place 16 U(1, 16) = 16 * 0.157 = 2.512.
    That last U is binomial; with one error and more, C4.5's program and Weka take a normal approximation.
    """
    for n, printed in [(6, 0.206), (9, 0.143), (1, 0.750)]:
        assert naive_pruning.added_errors(n, 0) / n == pytest.approx(printed, abs=5e-4)
    subtree = sum(naive_pruning.added_errors(n, 0) for n in (6, 9, 1))
    assert subtree == pytest.approx(3.273, abs=5e-3)
    leaf = 1 + naive_pruning.added_errors(16, 1)
    assert leaf == pytest.approx(2.512, abs=0.05)


def test_bounds_of_parts_of_errors_lie_between_those_of_whole_ones():
    low, high = naive_pruning.added_errors(6, 0), naive_pruning.added_errors(6, 1)
    assert naive_pruning.added_errors(6, 0.5) == pytest.approx((low + high) / 2, rel=1e-12)
    assert naive_pruning.added_errors(2, 1.7) == pytest.approx(0.3, rel=1e-12)
    assert naive_pruning.added_errors(9, 3, 0.7) == 0.0


def nested_subtrees(node):
    """Every subtree with the same root, cut anywhere."""
    yield naive_pruning.as_leaf(node)
    if node.children:
        for children in combine([list(nested_subtrees(child)) for child in node.children]):
            yield naive_pruning.replace(node, children=children)


def combine(choices):
    if not choices:
        yield []
        return
    for first in choices[0]:
        for rest in combine(choices[1:]):
            yield [first, *rest]


def shape(node):
    return (node.feature, node.threshold, [shape(child) for child in node.children])


@pytest.mark.parametrize("risk", ["impurity", "error"])
@pytest.mark.parametrize("name", ["contact_lenses", "dhbw_sport"])
def test_the_sequence_is_that_of_all_subtrees(shared_data, name, risk):
    table = load(shared_data, name)
    root = table.grow(criterion="gini")
    risk = naive_pruning.impurity_risk(root, "gini") if risk == "impurity" else naive_pruning.error_risk(root, 3)
    every = list(nested_subtrees(root))
    steps = naive_pruning.sequence(root, risk)
    assert len(every) >= 8
    assert len(steps) > 2
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        between = step.alpha if after is None else (step.alpha + after.alpha) / 2
        for alpha in {step.alpha, between} - {0}:
            costs = [sum(risk(leaf) + alpha for leaf in naive_textbook.leaves(tree)) for tree in every]
            best = [tree for tree, cost in zip(every, costs, strict=True) if cost == min(costs)]
            smallest = min(best, key=lambda tree: len(naive_textbook.leaves(tree)))
            found = naive_pruning.prune_to_alpha(root, alpha, risk)
            assert shape(found) == shape(smallest)
            assert len(naive_textbook.leaves(found)) == step.n_leaves
            assert sum(risk(leaf) for leaf in naive_textbook.leaves(found)) == step.risk


def test_reduced_error_merging_and_little_gain(shared_data):
    """On cloudy days the subtree makes two errors, and so does "tennis"; on sunny days without wind all is soccer."""
    table = load(shared_data, "dhbw_sport")
    data, cases = table.read()
    root = table.grow()
    reduced = """\
outlook = cloudy: tennis
outlook = rainy: squash
outlook = sunny
|  wind = strong: tennis
|  wind = weak: soccer"""
    merged = ID3_TOYS["dhbw_sport"].rsplit("\n", 2)[0] + ": soccer"
    assert draw(naive_pruning.prune_on_rows(root, data, cases), table, has_counts=False) == reduced
    assert draw(naive_pruning.merge_leaves(root, 3), table, has_counts=False) == merged
    # 5/12 of 0.419973 below cloudy, 3/12 of 0.251629 below that; 4/12 of 0.811278 below sunny, 3/12 of 0.251629 there
    assert draw(naive_pruning.prune_by_gain(root, 0.06, "entropy"), table, has_counts=False) == ID3_TOYS["dhbw_sport"]
    assert draw(naive_pruning.prune_by_gain(root, 0.18, "entropy"), table, has_counts=False) == reduced
    assert naive_pruning.prune_by_gain(root, 2.0, "entropy").is_leaf
    assert naive_pruning.prune_on_rows(root, data, []).is_leaf


def test_a_poor_split_above_a_good_one_stays():
    root = naive_textbook.grow([[0, 0, 1, 1], [0, 1, 0, 1]], [0, 1, 1, 0], n_classes=2)
    assert len(naive_textbook.leaves(naive_pruning.prune_by_gain(root, 0.5, "entropy"))) == 4


def test_snip(shared_data):
    table = load(shared_data, "play_tennis")
    root = table.grow()
    cut = naive_pruning.snip(root, root.children[1])
    assert draw(cut, table, has_counts=False).splitlines()[:3] == [
        "outlook = overcast: yes",
        "outlook = rainy: yes",
        "outlook = sunny",
    ]
    assert len(naive_textbook.leaves(root)) == 5
