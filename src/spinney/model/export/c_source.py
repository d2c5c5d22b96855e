"""C99: one file of constant tables and short functions, which allocates nothing and keeps no state."""

from __future__ import annotations

import ctypes
import math
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._types import LEAF
from spinney.model.export.json_tables import note_dates
from spinney.model.export.literals import is_float, is_identifier, is_unicode
from spinney.model.export.scored import CannotRunError, Scored

if TYPE_CHECKING:
    from collections.abc import Iterable

    from spinney.model.export.tree_sum import TreeSum

LINE = 100  # letters
BITS = 32  # levels of a word
MOST_TEXT = 1 << 26  # bytes of source that are compiled to be compared
PLAIN_BYTES = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,-+=()<>:;"  # in literals
COMPILERS = ("cc", "gcc", "clang")

HEAD = """\
/* A model of trees, exported by Spinney %(version)s: C99, no allocation, no state.

   With double as float64 the answers have the bits of the model's; not with -ffast-math, which has no NaN.

   x     a value for each of NAME_columns; NAN where one is missing. A category is the index of its level, which
         NAME_level gives for text and NAME_number_level for numbers; any other value of it is missing.
   out   NAME_N_ANSWERS numbers: those of the model, or the probabilities of NAME_classes. */

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#elif defined(_MSC_VER)
#pragma fp_contract(off)
#endif

enum { NAME_N_COLUMNS = %(n_columns)d, NAME_N_ANSWERS = %(n_answers)d };
void NAME_answer(const double *x, double *out);
"""
EXP = """
static double NAME_exp(double x)
{
    double k, r, r2, r4, low, high;
    if (x != x) return x;
    if (x < -708.0) x = -708.0;
    if (x > 709.0) x = 709.0;
    k = x * 1.4426950408889634 + 6755399441055744.0;
    k = k - 6755399441055744.0;
    r = (x - k * 0.6931471803691238) - k * 1.9082149292705877e-10;
    r2 = r * r;
    r4 = r2 * r2;
    low = (0.5000000000000001 + 0.16666666666666669 * r) + (0.04166666666662413 + 0.008333333333330062 * r) * r2;
    high = (0.0013888888917213717 + 0.00019841269863053618 * r)
        + (2.4801521295954376e-05 + 2.7557268459997064e-06 * r) * r2
        + (2.7620088445409746e-07 + 2.510038549551032e-08 * r) * r4;
    return ldexp(1.0 + (r + r2 * (low + high * r4)), (int)k);
}
"""
LEVEL_OF = """
/* The level that a value is the index of; -1: none. */
static int32_t NAME_level_of(double value, int32_t column)
{
    return value >= 0.0 && value < (double)NAME_n_levels[column] && value == floor(value) ? (int32_t)value : -1;
}
"""
HAS = """
static int32_t NAME_has(int32_t subset, int32_t level)
{
    return (int32_t)(NAME_words[NAME_first_word[subset] + level / 32] >> (level % 32) & 1u);
}
"""
SURROGATES = """
/* The branch by the first test that stands in for that of a node and knows its value; -1: none does. */
static int32_t NAME_stand_in(const double *x, int32_t node)
{
    int32_t s;
    for (s = NAME_first_surrogate[node]; s < NAME_first_surrogate[node + 1]; s++) {
        const double value = x[NAME_surrogate_column[s]];
        int32_t branch;
        if (NAME_surrogate_known[s] < 0) {
            if (value != value) continue;
            branch = value > NAME_surrogate_cut[s];
        } else {
%(subset)s        }
        return branch ^ NAME_surrogate_reversed[s];
    }
    return -1;
}
"""
SURROGATE_SUBSET = """\
            const int32_t level = NAME_level_of(value, NAME_surrogate_column[s]);
            if (level < 0 || !NAME_has(NAME_surrogate_known[s], level)) continue;
            branch = !NAME_has(NAME_surrogate_subset[s], level);
"""
TERMS = """
static double NAME_bound(double x)
{
    const double most = 1.7976931348623157e308;
    return x > most ? most : x < -most ? -most : x;
}

/* The value of the linear model of a leaf; NAN of infinite values. */
static double NAME_linear(double total, const double *x, int32_t leaf)
{
    int32_t t;
    for (t = NAME_first_term[leaf]; t < NAME_first_term[leaf + 1]; t++) {
        const double value = x[NAME_term_column[t]];
        if (value != value) continue;
        if (isinf(value)) return NAN;
        total = NAME_bound(total + NAME_bound(NAME_coefficient[t] * NAME_bound(value - NAME_fill[t])));
    }
    return total;
}
"""
ONE_PATH = """
static void NAME_add(const double *x, int32_t node, double *sums)
{
    int32_t leaf, e;
    while (NAME_kind[node] != 0) node = NAME_first[node] + NAME_branch(x, node);
    leaf = NAME_first[node];
    for (e = NAME_first_entry[leaf]; e < NAME_first_entry[leaf + 1]; e++)
        sums[NAME_entry_sum[e]] += %(value)s;
}
"""
ALL_PATHS = """
/* A row that takes every branch of a node goes down each in turn, by the share of its weight. */
static void NAME_add(const double *x, int32_t root, double *sums)
{
    int32_t waiting[%(room)d], n_waiting = 1;
    double shares[%(room)d];
    waiting[0] = root;
    shares[0] = 1.0;
    while (n_waiting > 0) {
        int32_t node = waiting[--n_waiting], branch = 0, leaf, e;
        const double share = shares[n_waiting];
        while (NAME_kind[node] != 0 && (branch = NAME_branch(x, node)) >= 0) node = NAME_first[node] + branch;
        if (NAME_kind[node] != 0) {
            for (e = NAME_n_branches[node] - 1; e >= 0; e--) {
                const int32_t child = NAME_first[node] + e;
                if (!(NAME_share[child] > 0.0)) continue;
                waiting[n_waiting] = child;
                shares[n_waiting++] = share * NAME_share[child];
            }
            continue;
        }
        leaf = NAME_first[node];
        for (e = NAME_first_entry[leaf]; e < NAME_first_entry[leaf + 1]; e++)
            sums[NAME_entry_sum[e]] += share * NAME_entry_value[e];
    }
}
"""
STEPS = {
    "divide": "    for (k = 0; k < %(n)d; k++) sums[k] /= %(by)s;\n",
    "multiply": "    for (k = 0; k < %(n)d; k++) sums[k] *= %(by)s;\n",
    "exp": "    for (k = 0; k < %(n)d; k++) sums[k] = NAME_exp(sums[k]);\n",
    "contrast": """\
    for (k = 0; k < %(n)d; k++)
        sums[k] = (sums[k] - (%(total)s - sums[k]) / %(others)s) / %(weight)s;
""",
    "sort": """\
    for (k = 1; k < %(n)d; k++) {
        const double value = sums[k];
        int32_t at = k;
        for (; at > 0 && sums[at - 1] > value; at--) sums[at] = sums[at - 1];
        sums[at] = value;
    }
""",
    "median": """\
    {
        int32_t order[%(n)d];
        double total = 0.0, below = 0.0;
        for (k = 0; k < %(n)d; k++) {
            int32_t at = k;
            for (; at > 0 && sums[order[at - 1]] > sums[k]; at--) order[at] = order[at - 1];
            order[at] = k;
        }
        for (k = 0; k < %(n)d; k++) total += NAME_weights[order[k]];
        for (k = 0; k < %(n)d; k++) {
            below += NAME_weights[order[k]];
            if (below >= 0.5 * total) break;
        }
        out[0] = sums[order[k < %(n)d ? k : 0]];
        return;
    }
""",
    "logistic": """\
    {
        const double e = NAME_exp(-fabs(sums[0])), likely = 1.0 / (1.0 + e);
        const int32_t first = sums[0] < 0.0;
        sums[0] = first ? likely : e * likely;
        sums[1] = first ? e * likely : likely;
    }
""",
    "softmax": """\
    {
        double most = sums[0], total = 0.0;
        for (k = 1; k < %(n)d; k++) most = sums[k] > most ? sums[k] : most;
        for (k = 0; k < %(n)d; k++) total += sums[k] = NAME_exp(sums[k] - most);
        for (k = 0; k < %(n)d; k++) sums[k] /= total;
    }
""",
}
CHOICES = {
    "sign": "    return sums[0] > 0.0;\n",
    "sums": "    for (k = 1; k < %(n)d; k++)\n        if (sums[k] > sums[best]) best = k;\n    return best;\n",
}
TEXT_LEVEL = """
double NAME_level(int column, const char *text)
{
    int32_t at;
    if (column < 0 || column >= %(n_columns)d) return NAN;
    for (at = 0; at < NAME_n_levels[column]; at++) {
        const char *level = NAME_level_text[NAME_first_level[column] + at];
        if (level && strcmp(level, text) == 0) return (double)at;
    }
    return NAN;
}
"""
NUMBER_LEVEL = """
double NAME_number_level(int column, double number)
{
    int32_t at;
    if (column < 0 || column >= %(n_columns)d) return NAN;
    for (at = 0; at < NAME_n_levels[column]; at++)
        if (NAME_level_number[NAME_first_level[column] + at] == number) return (double)at;
    return NAN;
}
"""


def write_c(form: TreeSum, name: str = "model") -> str:
    """A model as a file of C; name: what all its names begin with."""
    if not is_identifier(name):
        raise ValueError(f"name={name!r}: it must be a name in C, of letters, digits and _")
    return CWriter(form).write().replace("NAME_", f"{name}_")


class CWriter:
    """Writes the parts of a file of C.

    Names of columns, levels and classes occur in literals alone, written by `quote_c`, and `NAME_` never in these.

    Parameters
    ----------
    form : TreeSum
    """

    def __init__(self, form: TreeSum) -> None:
        self.form = form
        levels = [level for column in form.columns for level in column.levels or ()]
        self.has_levels = any(column.levels is not None for column in form.columns)
        self.has_text = any(isinstance(level, str) for level in levels)
        self.has_numbers = any(not isinstance(level, str) for level in levels)
        self.size = max(len(form.start), form.n_answers)

    def write(self) -> str:
        """The whole file."""
        from spinney import __version__

        form = self.form
        numbers = {"version": __version__, "n_columns": len(form.columns), "n_answers": form.n_answers}
        note = f"/* {note_dates(self.form)} */\n" if self.form.dates else ""
        parts = [note + HEAD % numbers, self.declare(), self.list_names(), self.list_tables()]
        if any(step in {"exp", "logistic", "softmax"} for step, _ in form.steps):
            parts.append(EXP)
        if form.roots:
            parts += [self.write_walk(), self.write_add()]
        parts += [self.write_sums(), self.write_answer()]
        if form.classes is not None:
            parts.append(self.write_class())
        parts += [TEXT_LEVEL % numbers] * self.has_text + [NUMBER_LEVEL % numbers] * self.has_numbers
        return "".join(parts)

    def declare(self) -> str:
        """What else the file offers."""
        lines = ["extern const char *const NAME_columns[];\n"]
        if self.form.classes is not None:
            lines += [
                "extern const char *const NAME_classes[];\n",
                "int NAME_class(const double *x); /* its index */\n",
            ]
        lines += ["double NAME_level(int column, const char *text);\n"] * self.has_text
        lines += ["double NAME_number_level(int column, double number);\n"] * self.has_numbers
        return "".join(lines)

    def list_names(self) -> str:
        """Names of columns and classes, and the levels."""
        form = self.form
        parts = ["\n", list_c("const char *const NAME_columns", (quote_c(column.name) for column in form.columns))]
        if form.classes is not None:
            parts.append(list_c("const char *const NAME_classes", (quote_c(str(label)) for label in form.classes)))
        if not self.has_levels:
            return "".join(parts)
        n_levels = [len(column.levels or ()) for column in form.columns]
        levels = [level for column in form.columns for level in column.levels or ()]
        parts.append(list_c("static const int32_t NAME_n_levels", n_levels))
        if levels:
            parts.append(list_c("static const int32_t NAME_first_level", starts_of(n_levels)[:-1]))
        if self.has_text:
            parts.append(list_c("static const char *const NAME_level_text", map(quote_level, levels)))
        if self.has_numbers:
            parts.append(list_c("static const double NAME_level_number", map(number_level, levels)))
        return "".join(parts)

    def list_tables(self) -> str:
        """The trees."""
        form = self.form
        if not form.roots:
            return ""
        nodes = form.nodes
        whole = "static const int32_t NAME_"
        parts = [
            list_c("static const signed char NAME_kind", nodes.kind.tolist()),
            *(list_c(whole + name, getattr(nodes, name).tolist()) for name in ("column", "first", "missing")),
            list_c("static const double NAME_cut", map(show_c, nodes.cut.tolist())),
            list_c(f"{whole}roots", form.roots),
            list_c(f"{whole}first_entry", starts_of([len(entries) for entries in form.leaves])),
            list_c(f"{whole}entry_sum", (at for entries in form.leaves for at, _ in entries)),
            list_c("static const double NAME_entry_value", (show_c(x) for entries in form.leaves for _, x in entries)),
        ]
        if form.subsets:
            parts += [list_c(f"{whole}subset", nodes.subset.tolist()), self.list_subsets()]
        if form.surrogates:
            parts.append(self.list_surrogates())
        if form.terms:
            parts.append(self.list_terms())
        if form.has_spread:
            parts.append(list_c("static const double NAME_share", map(show_c, nodes.share.tolist())))
            parts.append(list_c(f"{whole}n_branches", (form.n_branches(node) for node in range(len(nodes.kind)))))
        weights = next((arguments["weights"] for step, arguments in form.steps if step == "median"), None)
        if weights is not None:
            parts.append(list_c("static const double NAME_weights", map(show_c, weights)))
        return "".join(parts)

    def list_subsets(self) -> str:
        """Subsets as bits, each as many words as any level may need."""
        most = max(len(column.levels or ()) for column in self.form.columns)
        n_words = max(-(-most // BITS), 1)
        words = np.zeros((len(self.form.subsets), n_words), np.uint32)
        for place, subset in enumerate(self.form.subsets):
            for level in subset:
                words[place, level // BITS] |= np.uint32(1 << level % BITS)
        first = range(0, words.size, n_words)
        return list_c("static const int32_t NAME_first_word", first) + list_c(
            "static const uint32_t NAME_words", (f"{word}u" for word in words.ravel().tolist())
        )

    def list_surrogates(self) -> str:
        """Tests that stand in for others."""
        form = self.form
        by_node = [form.surrogates.get(node, []) for node in range(len(form.nodes.kind))]
        tests = [test for found in by_node for test in found]
        whole = "static const int32_t NAME_"
        parts = [
            list_c(f"{whole}first_surrogate", starts_of([len(found) for found in by_node])),
            list_c(f"{whole}surrogate_column", (test.column for test in tests)),
            list_c(f"{whole}surrogate_known", (test.known for test in tests)),
            list_c(f"{whole}surrogate_reversed", (int(test.is_reversed) for test in tests)),
            list_c("static const double NAME_surrogate_cut", (show_c(test.cut) for test in tests)),
        ]
        if any(test.known >= 0 for test in tests):
            parts.append(list_c(f"{whole}surrogate_subset", (max(test.subset, 0) for test in tests)))
        return "".join(parts)

    def list_terms(self) -> str:
        """Linear models of leaves."""
        by_leaf = [self.form.terms.get(leaf, []) for leaf in range(len(self.form.leaves))]
        terms = [term for found in by_leaf for term in found]
        return "".join(
            [
                list_c("static const int32_t NAME_first_term", starts_of([len(found) for found in by_leaf])),
                list_c("static const int32_t NAME_term_column", (term.column for term in terms)),
                list_c("static const double NAME_coefficient", (show_c(term.coefficient) for term in terms)),
                list_c("static const double NAME_fill", (show_c(term.fill) for term in terms)),
            ]
        )

    def write_walk(self) -> str:
        """The branch that a row takes at a node."""
        form = self.form
        kinds = set(form.nodes.kind.tolist()) - {LEAF}
        has_known = any(test.known >= 0 for tests in form.surrogates.values() for test in tests)
        asks_levels = bool(kinds & {2, 3}) or has_known
        parts = [LEVEL_OF] * asks_levels + [HAS] * bool(form.subsets)
        if form.surrogates:
            parts.append(SURROGATES % {"subset": SURROGATE_SUBSET if has_known else "            continue;\n"})
        lines = ["\nstatic int32_t NAME_branch(const double *x, int32_t node)\n{\n"]
        if kinds:
            lines.append("    const double value = x[NAME_column[node]];\n")
        if kinds & {2, 3}:
            lines.append("    const int32_t level = NAME_level_of(value, NAME_column[node]);\n")
        if form.surrogates:
            lines.append("    int32_t branch;\n")
        tests = {
            1: "    if (NAME_kind[node] == 1 && value == value) return value > NAME_cut[node];\n",
            2: "    if (NAME_kind[node] == 2 && level >= 0) return !NAME_has(NAME_subset[node], level);\n",
            3: "    if (NAME_kind[node] == 3 && level >= 0) return level;\n",
        }
        lines += [tests[kind] for kind in sorted(kinds)]
        lines += ["    (void)x;\n"] * (not kinds) + ["    (void)NAME_cut;\n"] * (1 not in kinds)
        lines += ["    (void)NAME_column;\n"] * (not kinds)
        if form.surrogates:
            lines += ["    branch = NAME_stand_in(x, node);\n", "    if (branch >= 0) return branch;\n"]
        return "".join([*parts, *lines, "    return NAME_missing[node];\n}\n"])

    def write_add(self) -> str:
        """What a tree adds to the sums of a row."""
        form = self.form
        if form.has_spread:
            most = max(form.n_branches(node) for node in range(len(form.nodes.kind)))
            return ALL_PATHS % {"room": most * int(form.depths.max()) + 1}
        if form.terms:
            return TERMS + ONE_PATH % {"value": "NAME_linear(NAME_entry_value[e], x, leaf)"}
        return ONE_PATH % {"value": "NAME_entry_value[e]"}

    def write_sums(self) -> str:
        """The sums of a row."""
        form = self.form
        lines = ["\nstatic void NAME_add_up(const double *x, double *sums)\n{\n"]
        lines += ["    int32_t t;\n"] if form.roots else ["    (void)x;\n"]
        if len(set(map(show_c, form.start))) == 1 and len(form.start) > 1 and form.roots:
            lines.append(f"    for (t = 0; t < {len(form.start)}; t++) sums[t] = {show_c(form.start[0])};\n")
        else:
            lines += [f"    sums[{k}] = {show_c(value)};\n" for k, value in enumerate(form.start)]
        if form.roots:
            lines.append(f"    for (t = 0; t < {len(form.roots)}; t++) NAME_add(x, NAME_roots[t], sums);\n")
        return "".join([*lines, "}\n"])

    def write_answer(self) -> str:
        """From sums to answers."""
        n = len(self.form.start)
        lines = [
            f"\nvoid NAME_answer(const double *x, double *out)\n{{\n    double sums[{self.size}];\n    int32_t k;\n"
        ]
        lines.append("    NAME_add_up(x, sums);\n")
        for step, arguments in self.form.steps:
            shown = {name: show_c(value) for name, value in arguments.items() if isinstance(value, float)}
            lines.append(STEPS[step] % {"n": n, **shown})
            n = 2 if step == "logistic" else n
            if step == "median":
                return "".join([*lines, "}\n"])
        return "".join([*lines, f"    for (k = 0; k < {self.form.n_answers}; k++) out[k] = sums[k];\n}}\n"])

    def write_class(self) -> str:
        """The class of a row."""
        form = self.form
        ask = "NAME_answer" if form.choice == "answers" else "NAME_add_up"
        best = "" if form.choice == "sign" else "    int32_t k;\n    int best = 0;\n"
        begin = f"\nint NAME_class(const double *x)\n{{\n    double sums[{self.size}];\n{best}    {ask}(x, sums);\n"
        rule = CHOICES["sign" if form.choice == "sign" else "sums"]
        return f"{begin}{rule % {'n': form.n_answers} if '%' in rule else rule}}}\n"


# --- literals -----------------------------------------------------------------------------------------------------


def show_c(x: float) -> str:
    """A float64 as C reads it back."""
    if math.isinf(x):
        return "INFINITY" if x > 0.0 else "-INFINITY"
    return "NAN" if math.isnan(x) else repr(x)


def quote_c(text: str) -> str:
    """Text as a literal: UTF-8, everything but plain letters, digits and some signs as octal escapes."""
    encoded = text.encode("utf-8", "backslashreplace")
    return '"' + "".join(chr(byte) if byte in PLAIN_BYTES else f"\\{byte:03o}" for byte in encoded) + '"'


def quote_level(level: Any) -> str:
    """A level as a literal; 0 of one that no text in C equals: a number, or text with a zero byte or half a letter."""
    is_text = isinstance(level, str) and "\0" not in level and is_unicode(level)
    return quote_c(level) if is_text else "0"


def number_level(level: Any) -> str:
    """A level as a number; NAN of one that no float64 equals: text, or a whole number beyond 2**53."""
    return show_c(float(level)) if not isinstance(level, str) and is_float(level) else "NAN"


def starts_of(sizes: list[int]) -> list[int]:
    """Where each part begins, and where the last ends."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(int).tolist()


def list_c(what: str, items: Iterable[Any]) -> str:
    """An array with its items in lines; C has none without items, so that there is one at least."""
    lines, line = [f"{what}[] = {{"], "   "
    is_empty = True
    for item in items:
        is_empty = False
        text = f" {item},"
        if len(line) + len(text) > LINE:
            lines.append(line)
            line = "   "
        line += text
    return "\n".join([*lines, f"{line} 0" if is_empty else line, "};\n"])


# --- running ------------------------------------------------------------------------------------------------------


def run_c(content: str, form: TreeSum, cells: list[list[Any]], name: str = "model") -> Scored:
    """Compile the file into a library, and ask it."""
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CC", "cc"), *COMPILERS))), None)
    if compiler is None:
        raise CannotRunError("there is no C compiler")
    if len(content) > MOST_TEXT:
        raise CannotRunError("the file is so long that compiling it would take minutes")
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "model.c", Path(folder) / "model.so"
        source.write_text(content, encoding="ascii")
        command = [compiler, "-std=c99", "-O1", "-shared", "-fPIC", "-o", str(library), str(source), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            raise CannotRunError(f"{compiler} failed: {done.stderr[:200]}")
        return ask_library(ctypes.CDLL(str(library)), form, cells, name)


def ask_library(library: Any, form: TreeSum, cells: list[list[Any]], name: str) -> Scored:
    """Answers of a compiled model."""
    answer = getattr(library, f"{name}_answer")
    answer.argtypes, answer.restype = [ctypes.c_void_p, ctypes.c_void_p], None
    answers = np.empty((len(cells), form.n_answers))
    chosen: list[Any] | None = None if form.classes is None else []
    out, pointer = np.empty(form.n_answers), ctypes.c_void_p
    for i, row in enumerate(cells):
        x = np.array([look_up(library, name, *cell) for cell in zip(range(len(row)), row, form.columns, strict=True)])
        answer(pointer(x.ctypes.data), pointer(out.ctypes.data))
        answers[i] = out
        if chosen is not None and form.classes is not None:
            choose = getattr(library, f"{name}_class")
            choose.argtypes = [pointer]
            chosen.append(form.classes[choose(pointer(x.ctypes.data))])
    return Scored(answers, chosen)


def look_up(library: Any, name: str, j: int, cell: Any, column: Any) -> float:
    """The value of a cell, by the library's own look-up of levels."""
    if cell is None:
        return math.nan
    if column.levels is None:
        return float(cell)
    is_text = isinstance(cell, str)
    if not column.levels or is_text is not isinstance(column.levels[0], str):
        return math.nan
    find = getattr(library, f"{name}_level" if is_text else f"{name}_number_level")
    find.restype, find.argtypes = ctypes.c_double, [ctypes.c_int, ctypes.c_char_p if is_text else ctypes.c_double]
    if is_text and quote_level(cell) == "0":
        return float(column.levels.index(cell)) if cell in column.levels else math.nan
    if not is_text and not is_float(cell):
        return float(column.levels.index(cell)) if cell in column.levels else math.nan
    return float(find(j, cell.encode() if is_text else float(cell)))
