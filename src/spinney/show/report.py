"""The report of a study: one page, from the advice down to the lines of Python that repeat it."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any

from spinney.show import charts, reason_charts
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

    from spinney.show.chart_model import Chart
    from spinney.study.evidence import Evidence
    from spinney.study.result import Figure, MethodResult, Study, TableSummary

WIDTH = 400.0  # pixels of a chart: its text can be read on a phone, and two stand side by side on a screen
MAX_NOTES = 12  # beside the advice
MAX_TRACE = 12  # candidate splits of the root
MAX_SENTENCE = 600  # letters of the sentence on the root
KIND = "Comparison of tree methods"
SCORED = ("boosting", "adaboost")  # their trees add up to scores
UNSEEN = "This part was not looked at."
STOPS = {
    "budget": "The budget was spent before the study was done: everything here rests on the folds that were finished.",
    "interrupt": "The study was interrupted: everything here rests on the folds that were finished.",
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
        Section("data", "The data", "Data", describe_data(summary, *show_columns(summary, evidence))),
        Section("run", "What was run", "What was run", describe_run(study, evidence, command, study.seed, runs)),
    ]
    return write(study, shown(summary.name), about, sections, made)


def make_figure_report(
    figure: Figure,
    evidence: Evidence | None = None,
    *,
    summary: TableSummary | None = None,
    settings: Mapping[str, tuple[str, Mapping[str, Any]]] | None = None,
    words: Mapping[str, str] | None = None,
    seed: int | None = None,
    made: str | None = None,
    command: str | None = None,
) -> str:
    """Ensembles by their number of trees, and what was found of the best, as one HTML page; see `make_report`.

    `summary` is of the table, `settings` has class and parameters by ensemble, `words` what names mean.
    """
    about = f"R² and fit time of ensembles by their number of trees · mean of {figure.folds}"
    n_done = {curve.name: str(len(curve.scores)) for curve in figure.curves}
    runs = [
        (name, kind, format_settings(parameters), n_done.get(name, "0"))
        for name, (kind, parameters) in (settings or {}).items()
    ]
    sections = [
        Section("advice", "In short", "In short", sum_up(figure)),
        Section("methods", "Methods compared", "Methods", compare_curves(figure, words or {})),
        *show_evidence(evidence, "R²"),
        *(
            []
            if summary is None
            else [Section("data", "The data", "Data", describe_data(summary, *show_columns(summary, evidence)))]
        ),
        Section("run", "What was run", "What was run", describe_run(figure, evidence, command, seed, runs)),
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
            pairs.append((f"Baseline ({base.name})", with_error(base.mean, study.standard_error(base))))
        pairs.append((f"To fit {study.train_rows:,.0f} rows", f"{seconds(fmean(best.fit_seconds))} s"))
        pairs.append((f"To predict {study.test_rows:,.0f} rows", f"{seconds(fmean(best.predict_seconds))} s"))
    return join(
        tag("p", study.recommendation, class_="conclusion"),
        *halt(study),
        facts(pairs) if pairs else join(),
        warn(study),
    )


def warn(study: Study) -> Html:
    """What to know before the advice is taken: what leaks first, then what is odd or left out, then the rest."""
    leaks = set(study.summary.leaks)
    asked = {f"column {name!r} was left out: {study.summary.dropped[name]}" for name in study.summary.asked}
    notes = [note for note in study.notes if note not in asked]
    listed_notes = [capital(note) for note in notes if note not in leaks]
    if len(listed_notes) > MAX_NOTES:
        listed_notes = [*listed_notes[:MAX_NOTES], f"{len(listed_notes) - MAX_NOTES:,} more are with the data below"]
    return join(*(tag("p", capital(note), class_="halt") for note in notes if note in leaks), listed(listed_notes))


def compare_methods(study: Study) -> Html:
    """The table of methods, and how to read it."""
    better = "higher" if study.is_greater_better else "lower"
    done = "the finished ones of " if study.is_partial else ""
    return join(
        explained(
            f"{capital(study.metric_title)}: {better} is better. Dots are means over {done}{study.folds}, bars one "
            "standard error to each side (corrected for folds that share training rows), ticks the folds. Hollow "
            "dots are significantly worse than the best (p below 0.05, starred); filled ones are not.",
        ),
        show_methods(study),
        explained(
            "Behind: mean difference to the best in the same folds. p: corrected resampled t-test (Nadeau and Bengio "
            f"2003) with Holm's correction. Times are means per fold, of {study.train_rows:,.0f} rows to fit and "
            f"{study.test_rows:,.0f} to predict, on {cores(study.n_cores)}; of the fit alone"
            f"{', with its search for settings' if study.is_tuned else ''}, with kernels compiled before.",
        ),
    )


def sum_up(figure: Figure) -> Html:
    """The best ensemble at its most trees."""
    done = [curve for curve in figure.curves if curve.scores]
    if not done:
        return join(tag("p", "No ensemble was finished.", class_="conclusion"), *halt(figure))
    finals = {curve.name: tuple(fold[-1] for fold in curve.scores) for curve in done}
    best = max(done, key=lambda curve: fmean(finals[curve.name]))
    score, spent = mean_of(figure, finals[best.name]), fmean(fold[-1] for fold in best.seconds)
    words = f"{capital(best.name)} is best with {figure.trees[-1]} trees: R² {score}, fitted in {seconds(spent)} s."
    rivals = [curve for curve in done if curve is not best and len(curve.scores) == len(best.scores)]
    if rivals:
        second = max(rivals, key=lambda curve: fmean(finals[curve.name]))
        gaps = tuple(a - b for a, b in zip(finals[best.name], finals[second.name], strict=True))
        words += f" {capital(second.name)} is {mean_of(figure, gaps)} behind in the same folds."
    return join(tag("p", words, class_="conclusion"), *halt(figure))


def mean_of(figure: Figure, values: tuple[float, ...]) -> str:
    """The mean of a number for each fold, and its standard error."""
    error = figure.standard_error(values)
    return short(fmean(values)) + ("" if error is None else f" ± {short(error)}")


def compare_curves(figure: Figure, words: Mapping[str, str]) -> Html:
    """The table of ensembles at their most trees, and what is meant by names that explain nothing."""
    return join(
        explained(
            f"R²: higher is better. Dots are means over {figure.folds}, bars one standard error to each side "
            "(corrected for folds that share training rows), ticks the folds.",
        ),
        show_curves(figure),
        listed([f"{name}: {text}." for name, text in words.items()]),
    )


def halt(study: Study | Figure) -> list[Html]:
    """Why the study is not whole, if it is not."""
    return [tag("p", STOPS[study.stopped], class_="halt")] if study.stopped in STOPS else []


# --- The evidence ---------------------------------------------------------------------------------------------


def show_evidence(evidence: Evidence | None, metric: str) -> list[Section]:
    """The sections on how well a method predicts, what it uses, and the tree."""
    shows = (
        (
            "learning-curves",
            "Learning curves",
            "Learning curves",
            lambda e: show_learning_curves(e, metric),
            "learning_curves",
        ),
        (
            "predictions",
            "Predictions for held-out rows",
            "Predictions",
            show_predictions,
            "separations calibrations confusion residuals",
        ),
        ("coverage", "How sure predictions are", "Intervals", show_coverage, "coverages"),
        (
            "importances",
            "Which columns matter",
            "Importances",
            lambda e: show_importances(e, metric),
            "worths importances",
        ),
        ("dependence", "How predictions depend on columns", "Dependence", show_dependences, "dependences"),
        ("reasons", "Why these answers", "Reasons", show_reasons, "reasons"),
        ("tree", "A tree to read", "The tree", show_tree, "tree"),
        ("first-split", "Its first split", "First split", show_root_split, "tree"),
    )
    return [
        Section(key, title, brief, join(*show(evidence)) if evidence is not None and has(evidence, parts) else
                missing(explain_missing(evidence, parts)))
        for key, title, brief, show, parts in shows
    ]  # fmt: skip


def has(evidence: Evidence, parts: str) -> bool:
    """Whether any of these parts was found."""
    return any(getattr(evidence, part) for part in parts.split())


def note(evidence: Evidence, *parts: str) -> list[Html]:
    """What to know beside these parts."""
    known = dict(evidence.remarks)
    return [explained(known[part]) for part in parts if part in known]


def explain_missing(evidence: Evidence | None, parts: str) -> str:
    """Why there is none of these parts."""
    known = {} if evidence is None else dict(evidence.left_out)
    reasons = dict.fromkeys(known[part] for part in parts.split() if part in known)
    return f"Not shown: {'; '.join(reasons)}." if reasons else UNSEEN


def show_learning_curves(evidence: Evidence, metric: str) -> list[Html]:
    """Ensembles by their number of trees."""
    return [
        explained("The score on held-out rows and the time to fit, as trees are added."),
        *note(evidence, "learning_curves"),
        pictures(
            charts.scores_by_trees(evidence.learning_curves, metric), charts.seconds_by_trees(evidence.learning_curves)
        ),
    ]


def show_predictions(evidence: Evidence) -> list[Html]:
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
        explained(f"{capital(evidence.name)}: predictions for held-out rows, which it was not fitted on."),
        *note(evidence, "confusion", "residuals"),
        pictures(*made),
    ]


def show_coverage(evidence: Evidence) -> list[Html]:
    """How often intervals and sets hold the truth."""
    return [
        explained(
            "A random forest gives intervals for numbers and sets of classes, made to hold the true value of a given "
            "share of rows. On the diagonal they do so as often as promised; below it, less often.",
        ),
        pictures(charts.coverage(evidence.coverages)),
    ]


def show_importances(evidence: Evidence, metric: str) -> list[Html]:
    """What each column is worth."""
    if evidence.worths and evidence.key != "forest":
        return [
            explained(
                f"How much worse {evidence.name} predicts held-out rows when a column is shuffled: near zero it does "
                "without it. Columns of the same content share their worth.",
            ),
            pictures(charts.worths(evidence.worths, evidence.name, metric)),
        ]
    return [
        explained(
            "By permutation: how much worse a random forest predicts out-of-bag rows when a column is shuffled; near "
            "zero the forest does without it. By impurity: how much the column's splits lowered the impurity "
            "while growing, which favours columns of many values.",
        ),
        *note(evidence, "importances"),
        pictures(
            charts.permutation_importances(evidence.importances), charts.impurity_importances(evidence.importances)
        ),
    ]


def show_dependences(evidence: Evidence) -> list[Html]:
    """Predictions against the columns that matter most."""
    target = evidence.tree.target if evidence.tree is not None else "the prediction"
    return [
        explained(
            f"The mean prediction of {evidence.name} as one column varies and the others stay as they are; thin lines "
            "are single rows. Where rows are few, a curve is a guess.",
        ),
        pictures(*(charts.dependence(one, target) for one in evidence.dependences)),
    ]


def show_reasons(evidence: Evidence) -> list[Html]:
    """What columns added to the answers to some rows, and to three of them one by one."""
    reasons = evidence.reasons
    assert reasons is not None
    what = "score, before it is a probability," if evidence.key in SCORED else "probability"
    of_what = "prediction" if reasons.label is None else f"{what} of {shown(reasons.label)}"
    return [
        explained(
            f"SHAP values: what each column of a row adds to the {of_what}, from {short(reasons.base)}, which "
            f"{evidence.name} says where nothing is known. They add up to its answer; they tell what it does, not what "
            "causes the target.",
        ),
        pictures(reason_charts.swarm(reasons), *(reason_charts.one_row(reasons, at) for at in reasons.chosen)),
    ]


def show_columns(summary: TableSummary, evidence: Evidence | None) -> list[Html]:
    """The columns as they are: their values, the target by them, what is missing together, what goes together."""
    made: list[Html] = []
    if summary.redundant:
        made += [tag("h3", "Columns that say the same"), listed([f"{capital(text)}." for text in summary.redundant])]
    if evidence is None:
        return made
    if evidence.correlations:
        rows = [(shown(a), shown(b), f"{r:.3f}") for a, b, r in evidence.correlations]
        made += [
            tag("h3", "Columns that go together"),
            table(
                "Pairs of numbers with a correlation beyond 0.9", ("column", "and", "correlation"), rows, numbers_from=2
            ),
        ]
    if evidence.gaps:
        gaps = [(", ".join(map(shown, one.features)) or "none", f"{one.n_rows:,}") for one in evidence.gaps]
        made += [
            tag("h3", "What is missing together"),
            table("Rows by the columns that are missing in them", ("missing", "rows"), gaps, numbers_from=1),
        ]
    if evidence.profiles:
        words = "The table as it is, without any method: rows by value, and the target by value."
        if len(evidence.profiles) < len(summary.used):
            words += (
                f" {len(evidence.profiles)} of {len(summary.used):,} columns, those that predict most by themselves."
            )
        charts_made = [
            chart for one in evidence.profiles for chart in (charts.spread(one), charts.target_by(one, summary.target))
        ]
        made += [tag("h3", "Column by column"), explained(words), pictures(*charts_made)]
    return made


def show_tree(evidence: Evidence) -> list[Html]:
    """The tree with its slider."""
    assert evidence.tree is not None
    return [*note(evidence, "tree"), explore(evidence.tree)]


def show_root_split(evidence: Evidence) -> list[Html]:
    """Why the root splits as it does."""
    assert evidence.tree is not None
    tree = evidence.tree
    rows = [tuple(map(clip, row)) for row in tree.trace_rows[:MAX_TRACE]]
    more = len(tree.trace_rows) - len(rows)
    title = "Candidate splits of the root, best first"
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


def describe_run(
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
    parameters = format_settings(result.parameters)
    chosen = dict.fromkeys(map(format_settings, result.chosen))
    if chosen:
        parameters = "; ".join([*([parameters] if result.parameters else []), f"tuned to {' or '.join(chosen)}"])
    return result.name, result.estimator, parameters, str(len(result.folds))


def format_settings(parameters: Mapping[str, Any]) -> str:
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
