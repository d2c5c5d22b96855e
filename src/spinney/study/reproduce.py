"""Lines of Python that repeat a study and fit its best method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spinney.study.housing_setup import SEED, TABLE, TARGET

if TYPE_CHECKING:
    from spinney.study.folds import Folds
    from spinney.study.result import Study
    from spinney.study.tables import StudyData


def write_recipe(study: Study, data: StudyData, folds: Folds) -> str:
    """The lines for a study of these data."""
    from spinney import datasets
    from spinney.study.methods import all_methods

    summary = study.summary
    opened = "datasets.load" if summary.name in datasets.names() else "read_table"
    options: dict[str, Any] = {"name": summary.name, "task": summary.task}
    options |= {"groups": data.group_column} if data.group_column is not None else {}
    options |= {"time": data.time_column} if data.time_column is not None else {}
    dropped = list(summary.asked)
    options |= {"drop": dropped} if dropped else {}
    options |= {"keep": list(data.kept)} if data.kept else {}
    options |= {"fewest": folds.n_splits} if summary.rare else {}
    choices: dict[str, Any] = {}
    keys = [one.key for one in study.methods]
    if keys != [one.key for one in all_methods(summary.task)]:
        choices["methods"] = [key for key in keys if key != "baseline"]
    choices |= {"metric": study.metric, "n_splits": folds.n_splits}
    if data.groups is None and data.times is None:
        choices["n_repeats"] = study.n_folds // folds.n_splits
    choices |= {"is_tuned": True} if study.is_tuned else {}
    choices["seed"] = study.seed
    lines = [
        "import spinney",
        "from spinney.study import compare, prepare, refit",
        "",
        f"table = spinney.{opened}({summary.name!r})",
        f"data = prepare(table, {summary.target!r}, {format_arguments(options)})",
        f"study = compare(data, {format_arguments(choices)})",
    ]
    if study.best not in {None, "baseline"}:
        lines.append("model = refit(study, data)")
    return "\n".join(lines)


def write_figure_recipe(best: str, n_trees: int) -> str:
    """The lines for the housing figure and its best ensemble."""
    return "\n".join(
        [
            "import spinney",
            "from spinney.study import draw_figure, prepare",
            "from spinney.study.housing_setup import ensembles",
            "",
            "figure = draw_figure()",
            f"data = prepare(spinney.datasets.load({TABLE!r}), {TARGET!r})",
            f"model = ensembles()[{best!r}].set_params(n_estimators={n_trees}, random_state={SEED})",
            "model.fit(data.X, data.y)",
        ]
    )


def format_arguments(options: dict[str, Any]) -> str:
    """Arguments by name."""
    return ", ".join(f"{name}={value!r}" for name, value in options.items())
