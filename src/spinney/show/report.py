"""The report of a study: one page, from the advice down to the lines of Python that repeat it."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any

from spinney.show import charts
from spinney.show.charts import capital
from spinney.show.data_page import describe_data
from spinney.show.markup import Html, join, tag
from spinney.show.names import clip, shown
from spinney.show.numbers import seconds, short
from spinney.show.page import Section, explained, facts, folded, listed, missing, table, write_page
from spinney.show.score_table import show_curves, show_methods
from spinney.show.style import make_style
from spinney.show.svg import to_svg
from spinney.show.tree_page import explore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spinney.show.chart import Chart
    from spinney.study.evidence import Evidence
    from spinney.study.result import Figure, MethodResult, Study, TableSummary

WIDTH = 400.0  # pixels of a chart: its text can be read on a phone, and two stand side by side on a screen
MAX_TRACE = 12  # questions of the root
MAX_SENTENCE = 600  # letters of what it says of the root
KIND = "Comparison of tree methods"
UNSEEN = "This part was not looked at."
STOPS = {
    "budget": "The time was spent before the study was done: what is said here rests on the folds that were finished.",
    "interrupt": "The study was interrupted: what is said here rests on the folds that were finished.",
}


def make_report(
    study: Study, evidence: Evidence | None = None, *, made: str | None = None, command: str | None = None
) -> str:
    """A study and what was found beside the scores, as one HTML page.

    Parameters
    ----------
    study : Study
        The comparison of methods on a table.
    evidence : Evidence, optional
        Of `spinney.study.examine`; without it the page has the scores and the data alone.
    made : str, optional
        When it was made, for the head of the page.
    command : str, optional
        The command line that repeats it.

    Returns
    -------
    str
        The page, of less than 1.5 MB. It loads nothing, and a policy inside it forbids all scripts but its own.

    Examples
    --------
    >>> from spinney import datasets
    >>> from spinney.show.report import make_report
    >>> from spinney.study import compare, prepare
    >>> data = prepare(datasets.load("contact_lenses"), "contact-lenses")
    >>> study = compare(data, methods=["id3"], n_splits=2, n_repeats=1)
    >>> page = make_report(study)
    >>> page.count("<section"), "<h1>" in page
    (11, True)
    """
    summary = study.summary
    runs = [settings_of(one) for one in study.methods]
    about = f"{summary.n_rows:,} rows · predicting {shown(summary.target)} ({summary.task}) · {study.folds}"
    sections = [
        Section("advice", "Recommendation", "Recommendation", advise(study)),
        Section("methods", "Methods compared", "Methods", compare_methods(study)),
        *show_evidence(evidence, study.metric_title),
        Section("data", "The data", "Data", describe_data(summary)),
        Section("run", "What was run", "What was run", tell_run(study, evidence, command, study.seed, runs)),
    ]
    return write(study, shown(summary.name), about, sections, made)


def make_figure_report(
    figure: Figure,
    evidence: Evidence | None = None,
    *,
    summary: TableSummary | None = None,
    settings: Mapping[str, tuple[str, Mapping[str, Any]]] | None = None,
    seed: int | None = None,
    made: str | None = None,
    command: str | None = None,
) -> str:
    """Ensembles by their number of trees, and what was found of the best, as one HTML page; see `make_report`.

    `summary` is of the table, `settings` has class and parameters by ensemble.
    """
    about = f"R² and fit time of ensembles by their number of trees · mean of {figure.folds}"
    n_done = {curve.name: str(len(curve.scores)) for curve in figure.curves}
    runs = [
        (name, kind, say_settings(parameters), n_done.get(name, "0"))
        for name, (kind, parameters) in (settings or {}).items()
    ]
    sections = [
        Section("advice", "In short", "In short", sum_up(figure)),
        Section("methods", "Methods compared", "Methods", compare_curves(figure)),
        *show_evidence(evidence, "R²"),
        *([] if summary is None else [Section("data", "The data", "Data", describe_data(summary))]),
        Section("run", "What was run", "What was run", tell_run(figure, evidence, command, seed, runs)),
    ]
    return write(figure, shown(figure.table), about, sections, made)


def write(study: Study | Figure, title: str, about: str, sections: Sequence[Section], made: str | None) -> str:
    """The page of these sections."""
    return write_page(
        kind=KIND,
        title=title,
        about=about,
        sections=sections,
        version=study.versions.get("spinney", ""),
        style=make_style(has_themes=True),
        made=made,
    )


# --- The scores -----------------------------------------------------------------------------------------------


def advise(study: Study) -> Html:
    """The advice, the figures behind it, and what to know beside them."""
    pairs = []
    if study.best is not None:
        best = study.method(study.best)
        error, base = study.standard_error(best), next((one for one in study.methods if one.is_baseline), None)
        pairs.append(("Best method", capital(best.name)))
        pairs.append((capital(study.metric_title), with_error(best.mean, error)))
        if base is not None and base.mean is not None and base.key != study.best:
            pairs.append((f"Without a method ({base.name})", with_error(base.mean, study.standard_error(base))))
        pairs.append((f"To fit {study.train_rows:,.0f} rows", f"{seconds(fmean(best.fit_seconds))} s"))
        pairs.append((f"To answer {study.test_rows:,.0f} rows", f"{seconds(fmean(best.predict_seconds))} s"))
    return join(
        tag("p", study.recommendation, class_="verdict"),
        *halt(study),
        facts(pairs) if pairs else join(),
        listed([capital(note) for note in study.notes if not note.startswith("column ")]),  # those are with the data
    )


def compare_methods(study: Study) -> Html:
    """The table of methods, and how to read it."""
    better = "higher" if study.is_greater_better else "lower"
    done = "the finished ones of " if study.is_partial else ""
    return join(
        explained(
            f"{capital(study.metric_title)}: {better} is better. Dots are means over {done}{study.folds}, bars one "
            "standard error to each side (corrected for folds that share training rows), ticks the folds. Filled dots "
            "cannot be told from the best; hollow ones are worse beyond chance (p below 0.05, starred).",
        ),
        show_methods(study),
        explained(
            "Behind: mean difference to the best in the same folds. p: corrected resampled t-test (Nadeau and Bengio "
            f"2003) with Holm's correction. Times are means per fold, of {study.train_rows:,.0f} rows to fit and "
            f"{study.test_rows:,.0f} to answer, on {cores(study.n_cores)}; the fit alone"
            f"{', with its search for settings' if study.is_tuned else ''}, compiled before.",
        ),
    )


def sum_up(figure: Figure) -> Html:
    """The best ensemble at its most trees."""
    done = [curve for curve in figure.curves if curve.scores]
    if not done:
        return join(tag("p", "No ensemble was finished.", class_="verdict"), *halt(figure))
    finals = {curve.name: tuple(fold[-1] for fold in curve.scores) for curve in done}
    best = max(done, key=lambda curve: fmean(finals[curve.name]))
    score, spent = mean_of(figure, finals[best.name]), fmean(fold[-1] for fold in best.seconds)
    words = f"{capital(best.name)} is best with {figure.trees[-1]} trees: R² {score}, fitted in {seconds(spent)} s."
    rivals = [curve for curve in done if curve is not best and len(curve.scores) == len(best.scores)]
    if rivals:
        second = max(rivals, key=lambda curve: fmean(finals[curve.name]))
        gaps = tuple(a - b for a, b in zip(finals[best.name], finals[second.name], strict=True))
        words += f" {capital(second.name)} is {mean_of(figure, gaps)} behind in the same folds."
    return join(tag("p", words, class_="verdict"), *halt(figure))


def mean_of(figure: Figure, values: tuple[float, ...]) -> str:
    """The mean of a number for each fold, and its standard error."""
    error = figure.standard_error(values)
    return short(fmean(values)) + ("" if error is None else f" ± {short(error)}")


def compare_curves(figure: Figure) -> Html:
    """The table of ensembles at their most trees."""
    return join(
        explained(
            f"R²: higher is better. Dots are means over {figure.folds}, bars one standard error to each side "
            "(corrected for folds that share training rows), ticks the folds.",
        ),
        show_curves(figure),
    )


def halt(study: Study | Figure) -> list[Html]:
    """Why the study is not whole, if it is not."""
    return [tag("p", STOPS[study.stopped], class_="halt")] if study.stopped in STOPS else []


# --- The evidence ---------------------------------------------------------------------------------------------


def show_evidence(evidence: Evidence | None, metric: str) -> list[Section]:
    """The sections on how a method answers, what it uses, and the tree."""
    shows = (
        ("growth", "Learning curves", "Learning curves", lambda e: show_growths(e, metric), "growths"),
        (
            "answers",
            "Answers for held-out rows",
            "Answers",
            show_answers,
            "separations calibrations confusion residuals",
        ),
        ("coverage", "How sure answers are", "Intervals", show_coverage, "coverages"),
        ("importances", "Which columns matter", "Importances", show_importances, "importances"),
        ("dependence", "How answers depend on columns", "Dependence", show_dependences, "dependences"),
        ("tree", "A tree to read", "The tree", show_tree, "tree"),
        ("question", "Its first question", "First question", show_question, "tree"),
    )
    return [
        Section(key, title, brief, join(*show(evidence)) if evidence is not None and has(evidence, parts) else
                missing(say_why(evidence, parts)))
        for key, title, brief, show, parts in shows
    ]  # fmt: skip


def has(evidence: Evidence, parts: str) -> bool:
    """Whether any of these parts was found."""
    return any(getattr(evidence, part) for part in parts.split())


def note(evidence: Evidence, *parts: str) -> list[Html]:
    """What to know beside these parts."""
    known = dict(evidence.remarks)
    return [explained(known[part]) for part in parts if part in known]


def say_why(evidence: Evidence | None, parts: str) -> str:
    """Why there is none of these parts."""
    known = {} if evidence is None else dict(evidence.left_out)
    reasons = dict.fromkeys(known[part] for part in parts.split() if part in known)
    return f"Not shown: {'; '.join(reasons)}." if reasons else UNSEEN


def show_growths(evidence: Evidence, metric: str) -> list[Html]:
    """Ensembles by their number of trees."""
    return [
        explained("What more trees bring, and what they cost: ensembles read on their way, on held-out rows."),
        *note(evidence, "growths"),
        pictures(charts.growth_scores(evidence.growths, metric), charts.growth_seconds(evidence.growths)),
    ]


def show_answers(evidence: Evidence) -> list[Html]:
    """Curves and counts of classes, or errors of numbers."""
    made: list[Chart] = []
    if evidence.separations:
        made += [charts.roc(evidence.separations), charts.precision_recall(evidence.separations)]
    if evidence.calibrations:
        made.append(charts.calibration(evidence.calibrations))
    if evidence.confusion is not None:
        made.append(charts.confusion(evidence.confusion))
    if evidence.residuals is not None:
        made += [charts.residuals(evidence.residuals), charts.residual_histogram(evidence.residuals)]
    return [
        explained(f"{capital(evidence.name)}: what it said of held-out rows, which it had not seen."),
        *note(evidence, "confusion", "residuals"),
        pictures(*made),
    ]


def show_coverage(evidence: Evidence) -> list[Html]:
    """How often intervals and sets hold the truth."""
    return [
        explained(
            "A random forest gives intervals for numbers and sets of classes, made to hold the truth of a given share "
            "of rows. On the diagonal they keep their word; below it they promise too much.",
        ),
        pictures(charts.coverage(evidence.coverages)),
    ]


def show_importances(evidence: Evidence) -> list[Html]:
    """What each column is worth."""
    return [
        explained(
            "By permutation: how much worse a random forest answers out-of-bag rows when a column is shuffled; near "
            "zero it does without. By impurity: how much the column's tests cleared up while growing, which favours "
            "columns of many values.",
        ),
        *note(evidence, "importances"),
        pictures(
            charts.permutation_importances(evidence.importances), charts.impurity_importances(evidence.importances)
        ),
    ]


def show_dependences(evidence: Evidence) -> list[Html]:
    """Answers against the columns that matter most."""
    target = evidence.tree.target if evidence.tree is not None else "the answer"
    return [
        explained(
            f"The mean answer of {evidence.name} as one column varies and the others stay as they are; thin lines are "
            "single rows. Where rows are few, a curve is a guess.",
        ),
        pictures(*(charts.dependence(one, target) for one in evidence.dependences)),
    ]


def show_tree(evidence: Evidence) -> list[Html]:
    """The tree with its slider."""
    assert evidence.tree is not None
    return [*note(evidence, "tree"), explore(evidence.tree)]


def show_question(evidence: Evidence) -> list[Html]:
    """Why the root asks what it asks."""
    assert evidence.tree is not None
    tree = evidence.tree
    rows = [tuple(map(clip, row)) for row in tree.trace_rows[:MAX_TRACE]]
    more = len(tree.trace_rows) - len(rows)
    title = "What the root could have asked, best first"
    return [
        tag("p", clip(tree.trace_words, MAX_SENTENCE)),
        table(title if more <= 0 else f"{title}: {len(rows)} of {len(tree.trace_rows)}", tree.trace_columns, rows,
              numbers_from=2),
    ]  # fmt: skip


def pictures(*made: Chart) -> Html:
    """Charts side by side, each with its numbers."""
    return tag("div", *(picture(chart) for chart in made), class_="figures")


def picture(chart: Chart) -> Html:
    """A chart with what it shows in words, and in numbers on request."""
    numbers = chart.to_table()
    note = [explained(numbers.note)] if numbers.note else []
    return tag(
        "figure",
        tag("h3", chart.title),
        to_svg(chart, WIDTH, embed_style=False, has_title=False),
        tag("figcaption", chart.description),
        folded("Numbers", table(chart.title, numbers.header, numbers.rows), *note),
    )


# --- The run --------------------------------------------------------------------------------------------------


def tell_run(
    study: Study | Figure,
    evidence: Evidence | None,
    command: str | None,
    seed: int | None,
    runs: Sequence[tuple[str, ...]],
) -> Html:
    """Settings, versions, and how to do it again; `runs` are lines of the table of methods."""
    spent = study.seconds + (0.0 if evidence is None else evidence.seconds)
    words = f"{study.folds}; {spent:,.0f} s in all on {cores(study.n_cores)}"
    parts: list[Html] = [tag("p", f"{capital(words)}.")]
    if seed is not None:
        parts.append(explained(f"Folds and methods are seeded with {seed}; all other settings are defaults."))
    if runs:
        parts.append(table("Methods", ("method", "class", "settings", "folds done"), runs, numbers_from=3))
    versions = [(name, shown(version)) for name, version in study.versions.items()]
    parts.append(folded("Versions", table("Versions", ("what", "version"), versions, numbers_from=2)))
    if evidence is not None and evidence.recipe:
        parts += [tag("h3", "The same in Python"), code(evidence.recipe, "Lines of Python")]
    if command is not None:
        parts += [tag("h3", "The same on the command line"), code(command, "Command line")]
    return join(*parts)


def settings_of(result: MethodResult) -> tuple[str, ...]:
    """A method, its class, its settings, the folds that it finished."""
    parameters = say_settings(result.parameters)
    chosen = dict.fromkeys(map(say_settings, result.chosen))
    if chosen:
        parameters = "; ".join([*([parameters] if result.parameters else []), f"tuned to {' or '.join(chosen)}"])
    return result.name, result.estimator, parameters, str(len(result.folds))


def say_settings(parameters: Mapping[str, Any]) -> str:
    """Parameters in one line."""
    return ", ".join(f"{name}={value!r}" for name, value in parameters.items()) or "defaults"


def code(text: str, name: str) -> Html:
    """Lines to copy."""
    return tag("pre", tag("code", text), tabindex="0", role="region", aria_label=name)


# --- Words ----------------------------------------------------------------------------------------------------


def with_error(mean: float | None, error: float | None) -> Html:
    """A score and its standard error."""
    score = "" if mean is None else short(mean)
    return join(score) if error is None else join(score, tag("small", f" ± {short(error)}"))


def cores(n: int) -> str:
    """A number of processors."""
    return f"{n} core{'s' if n > 1 else ''}"
