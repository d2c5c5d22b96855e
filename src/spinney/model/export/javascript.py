"""JavaScript without dependencies: one script, for node and browsers."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.model.export.json_tables import dump_tables, dump_value
from spinney.model.export.literals import is_float, is_identifier
from spinney.model.export.scored import CannotRunError, Scored

if TYPE_CHECKING:
    from spinney.model.export.tree_sum import TreeSum

HEAD = """\
// A model of trees, exported by Spinney %(version)s. It needs nothing else.
//
// predict(row): the class or the number of a row. answer(row): the probabilities of `classes`, or the numbers.
// A row is an array in the order of `columns`, an object or a Map by their names; null, undefined or NaN where a value
// is missing. A level that the model does not know is missing.
// In node: const { predict } = require("./FILE.js"); in a page: globalThis.%(name)s.predict
"use strict";
(function () {
const MODEL =
"""
CODE = """;

const MOST = Number.MAX_VALUE;
const nodes = MODEL.nodes;
const columns = MODEL.columns.map((column) => column.name);
const levels = MODEL.columns.map((column) => {
  if (column.levels === undefined) return null;
  const places = new Map();
  column.levels.forEach((level, place) => {
    places.set(typeof level === "boolean" ? Number(level) : level, place);
  });
  return places;
});
const subsets = MODEL.subsets.map((subset) => new Set(subset));
const surrogates = new Map(MODEL.surrogates);
const terms = new Map(MODEL.terms);
const bits = new DataView(new ArrayBuffer(8));

function cellOf(row, name) {
  if (row instanceof Map ? !row.has(name) : !Object.prototype.hasOwnProperty.call(row, name))
    throw new Error("the row has no column " + JSON.stringify(name));
  return row instanceof Map ? row.get(name) : row[name];
}

// Numbers, and places of levels; null where a value is missing or not known.
function read(row) {
  const cells = Array.isArray(row) ? row : columns.map((name) => cellOf(row, name));
  if (cells.length !== columns.length)
    throw new Error("a row has " + columns.length + " cells, not " + cells.length);
  return cells.map((cell, j) => {
    if (cell === null || cell === undefined || Number.isNaN(cell)) return null;
    if (levels[j] !== null) {
      const place = levels[j].get(typeof cell === "boolean" ? Number(cell) : cell);
      if (place !== undefined) return place;
      const known = MODEL.columns[j].levels;
      if (known.length && (typeof cell === "string") !== (typeof known[0] === "string"))
        throw new TypeError(
          "column " + JSON.stringify(columns[j]) + " has levels such as " + JSON.stringify(known[0]) +
          ", of another kind than " + String(cell)
        );
      return null;
    }
    if (!["number", "boolean", "bigint"].includes(typeof cell))  // a Date would be a number, and {} not even missing
      throw new TypeError("column " + JSON.stringify(columns[j]) + " holds numbers");
    return Number(cell);
  });
}

function branchOf(node, values) {
  const value = values[nodes.column[node]];
  if (value !== null) {
    if (nodes.kind[node] === 1) return value > nodes.cut[node] ? 1 : 0;
    return nodes.kind[node] === 3 ? value : subsets[nodes.subset[node]].has(value) ? 0 : 1;
  }
  for (const [column, cut, subset, known, isReversed] of surrogates.get(node) || []) {
    const other = values[column];
    if (other === null || (known >= 0 && !subsets[known].has(other))) continue;
    const isSecond = known < 0 ? other > cut : !subsets[subset].has(other);
    return isSecond !== isReversed ? 1 : 0;
  }
  return nodes.missing[node];
}

// The leaves that a row ends in, from left to right, and which part of it.
function find(root, values) {
  const found = [];
  const waiting = [[root, 1]];
  while (waiting.length) {
    let [node, share] = waiting.pop();
    let branch = 0;
    while (nodes.kind[node] !== 0 && (branch = branchOf(node, values)) >= 0) node = nodes.first[node] + branch;
    if (nodes.kind[node] === 0) {
      found.push([nodes.first[node], share]);
      continue;
    }
    const count = nodes.kind[node] === 3 ? MODEL.columns[nodes.column[node]].levels.length : 2;
    for (let child = nodes.first[node] + count - 1; child >= nodes.first[node]; child--)
      if (nodes.share[child] > 0) waiting.push([child, share * nodes.share[child]]);
  }
  return found;
}

const bound = (x) => Math.min(Math.max(x, -MOST), MOST);

function linear(total, leafTerms, values) {
  for (const [column, coefficient, fill] of leafTerms) {
    const value = values[column];
    if (value === null) continue;
    if (!Number.isFinite(value)) throw new Error("a linear leaf cannot take infinite values");
    total = bound(total + bound(coefficient * bound(value - fill)));
  }
  return total;
}

function addUp(values) {
  const sums = MODEL.start.slice();
  for (const root of MODEL.roots)
    for (const [leaf, share] of find(root, values))
      for (const [at, value] of MODEL.leaves[leaf])
        sums[at] += share * (terms.has(leaf) ? linear(value, terms.get(leaf), values) : value);
  return sums;
}

// Exp in additions and products alone, so that all languages give the same bits.
function exp(x) {
  if (Number.isNaN(x)) return x;
  x = Math.min(Math.max(x, -708), 709);
  const k = x * 1.4426950408889634 + 6755399441055744 - 6755399441055744;
  const r = x - k * 0.6931471803691238 - k * 1.9082149292705877e-10;
  const r2 = r * r;
  const r4 = r2 * r2;
  const low = 0.5000000000000001 + 0.16666666666666669 * r + (0.04166666666662413 + 0.008333333333330062 * r) * r2;
  const high =
    0.0013888888917213717 + 0.00019841269863053618 * r +
    (2.4801521295954376e-5 + 2.7557268459997064e-6 * r) * r2 +
    (2.7620088445409746e-7 + 2.510038549551032e-8 * r) * r4;
  bits.setUint32(0, (k + 1023) << 20);
  return (1 + (r + r2 * (low + high * r4))) * bits.getFloat64(0);
}

const steps = {
  divide: (sums, step) => sums.map((x) => x / step.by),
  multiply: (sums, step) => sums.map((x) => x * step.by),
  exp: (sums) => sums.map(exp),
  sort: (sums) => sums.slice().sort((a, b) => a - b),
  contrast: (votes, step) => votes.map((v) => (v - (step.total - v) / step.others) / step.weight),
  median: (sums, step) => {
    const order = sums.map((_, member) => member).sort((a, b) => sums[a] - sums[b] || a - b);
    let total = 0;
    const below = order.map((member) => (total += step.weights[member]));
    return [sums[order[Math.max(below.findIndex((weight) => weight >= 0.5 * total), 0)]]];
  },
  logistic: ([raw]) => {
    const e = exp(-Math.abs(raw));
    const likely = 1 / (1 + e);
    return raw < 0 ? [likely, e * likely] : [e * likely, likely];
  },
  softmax: (scores) => {
    const most = scores.reduce((a, b) => Math.max(a, b));
    const parts = scores.map((score) => exp(score - most));
    const total = parts.reduce((sum, part) => sum + part, 0);
    return parts.map((part) => part / total);
  },
};

const finish = (sums) => MODEL.steps.reduce((answers, step) => steps[step.step](answers, step), sums);
const answer = (row) => finish(addUp(read(row)));

function predict(row) {
  const sums = addUp(read(row));
  const answers = finish(sums);
  if (MODEL.classes === null) return answers.length === 1 ? answers[0] : answers;
  if (MODEL.choice === "sign") return MODEL.classes[sums[0] > 0 ? 1 : 0];
  const scores = MODEL.choice === "sums" ? sums : answers;
  return MODEL.classes[scores.indexOf(scores.reduce((a, b) => Math.max(a, b)))];
}

const api = { predict, answer, columns, classes: MODEL.classes };
if (typeof module === "object" && module.exports) module.exports = api;
else globalThis[%(name)s] = api;
})();
"""
DRIVER = """
const { answer, predict } = require(process.argv[2]);
const rows = JSON.parse(require("fs").readFileSync(0, "utf8"));
const isNumber = process.argv[3] === "numbers";
process.stdout.write(JSON.stringify(rows.map((row) => [answer(row).map(String), isNumber ? null : predict(row)])));
"""


def write_javascript(form: TreeSum, name: str = "model") -> str:
    """A model as a script; name: what it is called in a page."""
    from spinney import __version__

    if not is_identifier(name):
        raise ValueError(f"name={name!r}: it must be a name in JavaScript, of letters, digits and _")
    refuse_wide("class", form.classes or ())
    for column in form.columns:
        refuse_wide(f"level of column {column.name!r}", column.levels or ())
    tables = dump_tables(form).replace("<", "\\u003c")  # which stands in text alone: a script in a page ends nowhere
    return HEAD % {"version": __version__, "name": name} + tables + CODE % {"name": json.dumps(name)}


def refuse_wide(what: str, values: tuple[Any, ...]) -> None:
    """Refuse whole numbers that JavaScript would round."""
    for value in values:
        if isinstance(value, int) and not is_float(value):
            raise ValueError(
                f"the {what} {value} is beyond 2**53, and no number in JavaScript: make it text, or export to python"
            )


def run_javascript(content: str, form: TreeSum, cells: list[list[Any]], name: str = "model") -> Scored:
    """Run the script in node, and ask it."""
    del name
    node = shutil.which("node")
    if node is None:
        raise CannotRunError("node is not installed")
    with tempfile.TemporaryDirectory() as folder:
        script, driver = Path(folder) / "model.js", Path(folder) / "driver.js"
        script.write_text(content, encoding="ascii")
        driver.write_text(DRIVER, encoding="ascii")
        what = "numbers" if form.classes is None else "classes"
        done = subprocess.run(  # noqa: S603
            [node, str(driver), str(script), what], input=dump_value(cells), capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise CannotRunError(f"node failed: {done.stderr[:200]}")
    found = json.loads(done.stdout)
    answers = np.array([[float(x) for x in row] for row, _ in found]).reshape(len(cells), form.n_answers)
    return Scored(answers, None if form.classes is None else [label for _, label in found])
