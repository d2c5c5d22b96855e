"""The style of charts: sizes of text, and the colours of a theme as rules of CSS."""

from __future__ import annotations

from spinney.show.theme import DARK, LIGHT, N_LOOKS, Theme

TEXT, TITLE, SMALL = 12.0, 14.0, 9.0  # sizes of text, in pixels
THEMES = {"light": LIGHT, "dark": DARK}
FONTS = 'system-ui,Helvetica,Arial,"Liberation Sans",sans-serif'


def make_style(*, has_themes: bool = False) -> str:
    """The style of all charts: light, or dark where the reader's system is; light on paper.

    With `has_themes` an attribute `data-theme` of the page's root, "light" or "dark", is stronger than the system.
    """
    chart = ".spinney-chart"
    paper = [make_rules(chart, LIGHT)]
    parts = [
        f"{chart}{{max-width:100%;height:auto}}",
        f"{chart} text{{font-family:{FONTS};font-size:{TEXT:g}px}}",
        f"{chart} .title{{font-size:{TITLE:g}px;font-weight:bold}}",
        f"{chart} .small{{font-size:{SMALL:g}px}}",
        make_rules(chart, LIGHT),
        f"@media (prefers-color-scheme:dark){{\n{make_rules(chart, DARK)}\n}}",
    ]
    if has_themes:
        parts += [make_rules(f':root[data-theme="{name}"] {chart}', theme) for name, theme in THEMES.items()]
        paper.append(make_rules(f":root[data-theme] {chart}", LIGHT))
    return "\n".join([*parts, "@media print{", *paper, "}"])


def make_rules(root: str, theme: Theme) -> str:
    """The colours of a theme, for what stands in `root`."""
    rules = [
        f"{root} text{{fill:{theme.ink}}}",
        f"{root} .soft{{fill:{theme.soft}}}",
        f"{root} .ground{{fill:{theme.ground}}}",
        f"{root} .axis{{stroke:{theme.line}}}",
        f"{root} .grid{{stroke:{theme.grid}}}",
        f"{root} .s-n{{stroke:{theme.soft}}}",
        f"{root} .f-n{{fill:{theme.soft}}}",
    ]
    for series in range(N_LOOKS):
        colour = theme.colour(series)
        rules += [f"{root} .s{series}{{stroke:{colour}}}", f"{root} .f{series}{{fill:{colour}}}"]
    return "\n".join(rules)
