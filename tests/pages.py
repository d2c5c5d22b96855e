"""Pages whose code is run: README.md and docs/*.md. `python tests/pages.py PAGE ...` writes the outputs anew.

A block fenced as `python` is executed, all blocks of a page in one namespace. A fence without a language right below
holds what it prints. A block fenced as `console` has commands after `$ `, each followed by what it prints, or by
nothing where that does not matter. A line `...` stands for any lines; times, cores and versions may differ.
A block fenced as `py` is shown and not run. Files in the folder `files` beside a page are at hand where it is run.
"""

import contextlib
import io
import itertools
import os
import re
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from click.testing import CliRunner

REPOSITORY = Path(__file__).resolve().parents[1]
FENCE = re.compile(r"^```([^`\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MASKS = (  # what no two machines or runs have in common
    re.compile(r"\d+\.\d+\s+\d+\.\d+\s+[\d.]+ (B|kB|MB)\b"),  # seconds to fit and to predict, size
    re.compile(r"(?<=\.html )\([\d.]+ (kB|MB)\)"),  # of a report, which has times
    re.compile(r"(?<=^seconds)\s+[\d.]+", re.MULTILINE),
    re.compile(r"(?<=^bytes)\s+[\d,]+", re.MULTILINE),
    re.compile(r"(?<=^file of)\s+[\d-]+", re.MULTILINE),  # the day
    re.compile(r"on \d+ cores?"),
    re.compile(r"(?<=spinney )\d+\.\S+"),  # the version
)


class Output(NamedTuple):
    """What a page says that a piece of code prints, what it printed, and where in the page that stands."""

    code: str
    told: str
    printed: str
    span: tuple[int, int]


def copy_files(page, folder):
    """Put the files that pages of a folder read, those of its `files`, where a page is run."""
    for path in sorted((page.parent / "files").glob("*")):
        shutil.copy(path, folder)


def run_page(text):
    """Run the blocks of a page in the current folder; its outputs, in order."""
    os.environ.pop("COLUMNS", None)  # as wide as into a pipe
    namespace = {"__name__": "__main__"}
    fences = list(FENCE.finditer(text))
    outputs = []
    for i, fence in enumerate(fences):
        if fence[1] == "python":
            printed = _run_python(fence[2], namespace)
            follower = fences[i + 1] if i + 1 < len(fences) else None
            if follower and not follower[1] and not text[fence.end() : follower.start()].strip():
                outputs.append(Output(fence[2], follower[2], printed, follower.span(2)))
        elif fence[1] == "console":
            for code, told, span in _commands(fence):
                printed = _run_command(code)
                if told:
                    outputs.append(Output(code, told, printed, span))
    return outputs


def _run_python(code, namespace):
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        exec(compile(code, "<page>", "exec"), namespace)
    return stream.getvalue()


def _commands(fence):
    """Command, told output and its span, for each line of a console block that begins with `$ `."""
    starts = [match.start() for match in re.finditer(r"^\$ ", fence[2], re.MULTILINE)] + [len(fence[2])]
    for begin, end in itertools.pairwise(starts):
        command, _, told = fence[2][begin:end].partition("\n")
        told_at = fence.start(2) + end - len(told)
        yield command.removeprefix("$ "), told, (told_at, told_at + len(told))


def _run_command(code):
    from spinney.cli import main

    program, *arguments = shlex.split(code, comments=True)
    assert program == "spinney", f"only spinney is run, not {program!r}"
    result = CliRunner().invoke(main, arguments, prog_name="spinney")
    assert result.exit_code == 0, result.stderr
    return result.stdout


def is_as_told(output):
    """Whether the code printed what the page says."""
    told, printed = (_bare(text) for text in (output.told, output.printed))
    pattern = "\n".join(r"(?:.*\n)*?.*" if line == "..." else re.escape(line) for line in told.split("\n"))
    return re.fullmatch(pattern, printed) is not None


def _bare(text):
    """A text without times, cores and blanks that depend on their width."""
    for mask in MASKS:
        text = mask.sub(" # ", text)
    lines = (re.sub(r" *# +", " # ", line).rstrip() for line in text.strip("\n").splitlines())
    return "\n".join(lines)


def write_outputs(path):
    """Put what the code of a page prints into the page, where it says something else."""
    text = path.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        copy_files(path, folder)
        outputs = run_page(text)
    for output in reversed([output for output in outputs if not is_as_told(output)]):
        begin, end = output.span
        lines = [line.rstrip() for line in output.printed.strip("\n").splitlines()]
        text = text[:begin] + "\n".join(lines) + "\n" + text[end:]
        sys.stdout.write(f"{path}: new output of\n{output.code}\n")
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        write_outputs(Path(name).resolve())
