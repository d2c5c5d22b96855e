"""`spinney import`: a model of another library as a model file."""

from __future__ import annotations

from typing import Any

import click

from spinney.cli.output import check_new, force_option, json_option, print_json

LIBRARIES = ("xgboost", "lightgbm", "catboost")


@click.command("import")
@click.argument("file", type=click.Path())
@click.option("--from", "library", type=click.Choice(LIBRARIES), required=True, help="The library that wrote it.")
@click.option("--out", metavar="FILE", required=True, type=click.Path(), help="The model file to write.")
@force_option
@json_option
def import_model(file: str, library: str, out: str, force: bool, as_json: bool) -> None:
    """Read FILE, a model of XGBoost (JSON or UBJSON), LightGBM (text) or CatBoost (JSON), and save it as a model file.

    It then predicts, is shown and exported as any other: `spinney predict`, `tree`, `inspect`,
    `explain`, `export`. Nothing in FILE is run, and what is not read is refused by name.
    """
    import spinney
    from spinney.reading.wording import count

    check_new(out, force=force)
    readers: dict[str, Any] = {
        "xgboost": spinney.from_xgboost,
        "lightgbm": spinney.from_lightgbm,
        "catboost": spinney.from_catboost,
    }
    predictor = readers[library](file)
    spinney.save_predictor(predictor, out)
    n_trees = len(predictor.used)
    n_leaves = int(predictor.used.is_leaf.sum())
    if as_json:
        facts = {"from": library, "file": out, "features": predictor.n_features, "classes": predictor.n_classes}
        print_json({**facts, "trees": n_trees, "leaves": n_leaves})
        return
    what = "numbers" if predictor.classes is None else f"{predictor.n_classes} classes"
    parts = (count(predictor.n_features, "feature"), what, count(n_trees, "tree"), count(n_leaves, "leaf"))
    click.echo(f"{out}: {', '.join(parts)}")
