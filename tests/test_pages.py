"""The code in README and docs runs, and prints what the pages say."""

import re

import pytest

from pages import FENCE, REPOSITORY, Output, copy_files, is_as_told, run_page

PAGES = [
    path.relative_to(REPOSITORY).as_posix()
    for path in [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
    if "_build" not in path.parts
]
SLOW = {  # studies, searches, forests and boosting of hundreds of trees
    "README.md",
    "docs/boosting.md",
    "docs/tutorials/from-other-libraries.md",
    "docs/tutorials/ten-minutes.md",
    "docs/tutorials/weather-to-forest.md",
}
WITH_CODE = [
    pytest.param(page, marks=pytest.mark.slow) if page in SLOW else page
    for page in PAGES
    if re.search(r"^```(python|console)$", (REPOSITORY / page).read_text(encoding="utf-8"), re.MULTILINE)
]


@pytest.mark.compiled(reason="takes minutes interpreted")
@pytest.mark.parametrize("page", WITH_CODE)
def test_the_code_of_a_page_prints_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    copy_files(REPOSITORY / page, tmp_path)
    for output in run_page((REPOSITORY / page).read_text(encoding="utf-8")):
        assert is_as_told(output), f"{output.code}\nprints\n{output.printed}"


@pytest.mark.parametrize("page", [*PAGES, "CONTRIBUTING.md", "SECURITY.md"])
def test_links_of_a_page_lead_to_files(page):
    path = REPOSITORY / page
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target]
    assert [target for target in targets if target and not (path.parent / target).exists()] == []


@pytest.mark.parametrize("page", WITH_CODE)
def test_f12_a_page_that_needs_pandas_says_how_to_get_it(page):
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    use = re.search(r"\.to_pandas\(|\.iloc\b|import pandas|as_frame=True", text)
    assert use is None or "`pip install pandas`" in text[: use.start()]


# --- The checks above can fail ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "printed", "expected"),
    [
        ("1 row\n", "1 row\n", True),
        ("1 row\n", "2 rows\n", False),
        ("first\n...\n", "first\nsecond\nthird\n", True),
        ("first\n...\n", "second\nfirst\nthird\n", False),
        (" forest 0.803 0.067     0.003 224 kB\n", " forest 0.803 10.125     0.004 224 kB\n", True),
        (" forest 0.803 0.067     0.003 224 kB\n", " forest 0.804 0.067     0.003 224 kB\n", False),
        ("seconds            0.745\ntrees 3\n", "seconds            1.2\ntrees 3\n", True),
    ],
)
def test_outputs_are_compared_but_for_times(told, printed, expected):
    assert is_as_told(Output("code", told, printed, (0, 0))) is expected


def test_blocks_of_a_page_share_names_and_outputs_are_found():
    page = "```python\nx = 2\n```\n\n```{note}\nno code\n```\n\n```python\nprint(x)\n```\n```\n3\n```\n"
    (output,) = run_page(page)
    assert (output.told, output.printed) == ("3\n", "2\n")
    assert page[slice(*output.span)] == "3\n"
    assert not is_as_told(output)
