"""Checkpoints: what a fit has grown so far, in a folder, so that a fit that was interrupted goes on from there.

A checkpoint is one file, a container as of model files (`model.container`), whole at any moment. Its texts are `format`
("spinney checkpoint"), `version`, `library` and `state`, which is JSON:

    about    whose trees these are: method, version of Spinney, parameters, hashes of the data
    seed     that everything was drawn by, and has_made_folder, whether the folder was made for it
    forest   the whole trees so far, in the words of `model.state`, their sums in full precision
    more     what else a method needs to go on

Everything else that a fit holds follows from these and is made again: bags, votes, scores, weights of rows. So the
model is that of a fit without interruption, to the byte.
"""

from __future__ import annotations

import contextlib
import contextvars
import hashlib
import math
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from spinney._warnings import warn
from spinney.model.container import BrokenFileError, Container, dump, load_json, read, write
from spinney.model.state import KINDS, Reader, Writer
from spinney.scale.faults import writing
from spinney.tree.forest import Forest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from spinney.table.schema import Schema

NAME = "checkpoint.spn"
FORMAT, VERSION = "spinney checkpoint", "1"
SECONDS = 30.0  # between two writings, at least
SHARE = 20  # of the time of a fit that goes into writing, at most: one in so many seconds
PARTS = {"about", "seed", "has_made_folder", "forest", "more"}
LONGEST = 200  # letters of a parameter; of a longer one the hash is kept
NO_MATTER = {"checkpoint", "n_jobs", "verbose", "warm_start"}  # parameters that make no difference to a model
CHECKPOINT_CONSTRAINTS: dict[str, list[Any]] = {"checkpoint": [str, os.PathLike, None]}


class PausedError(Exception):
    """A fit has ended with its checkpoint, since its time was over; see `pausing`."""


class _Pause:
    """When a fit is to end with its checkpoint: some time after its first tree, so that none ends without one."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.begun, self.end = seconds, time.monotonic(), math.inf

    def is_due(self) -> bool:
        """Whether the time is over; reading and coding the rows takes a tenth of it at most."""
        now = time.monotonic()
        if self.end == math.inf:
            self.end = self.begun + max(self.seconds, 10.0 * (now - self.begun))
        return now >= self.end


_pause: contextvars.ContextVar[_Pause | None] = contextvars.ContextVar("pause", default=None)


@contextlib.contextmanager
def pausing(seconds: float) -> Iterator[None]:
    """Let fits with a checkpoint end by `PausedError` after so many seconds, or a little more."""
    token = _pause.set(_Pause(seconds))
    try:
        yield
    finally:
        _pause.reset(token)


class Saved(NamedTuple):
    """What a fit has grown so far."""

    forest: Forest
    more: dict[str, Any]


class Checkpoint:
    """Where a fit keeps what it has grown so far, and what an earlier one has left there.

    Parameters
    ----------
    folder : path
        Made when there is something to be kept.
    about : dict
        Whose trees these are: texts, and dicts of texts.
    seed : int
        That the fit draws by, if it begins anew.

    Attributes
    ----------
    seed : int
        That the fit is to draw by.
    found : Saved or None
        What an earlier fit has left; None: nothing.
    """

    def __init__(self, folder: Path, about: dict[str, Any], seed: int) -> None:
        self.folder, self.path = folder, folder / NAME
        self.about, self.seed = about, seed
        self.found: Saved | None = None
        self.take: Callable[[], Saved | None] | None = None
        self.due = time.monotonic() + SECONDS
        self.has_made_folder = False
        self.turn = threading.Lock()

    # --- reading ---

    def look(self) -> None:
        """Find what an earlier fit has left; refused if it is of another one, or damaged."""
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"checkpoint={str(self.folder)!r} is a file: give a folder")
        above = next(place for place in (self.folder, *self.folder.absolute().parents) if place.exists())
        if not os.access(above, os.W_OK):
            raise OSError(f"checkpoint={str(self.folder)!r}: {above} cannot be written to: give another folder")
        for part in self.folder.glob(".spinney-*.part"):  # of a process that was killed while it wrote
            part.unlink(missing_ok=True)
        if not self.path.exists():
            return
        with self.trusting():
            content = open_state(read(self.path, is_mapped=False))
            difference = tell_difference(self.about, content["about"])
        if difference is not None:
            self.refuse(difference)
        with self.trusting():
            self.seed, self.has_made_folder = content["seed"], content["has_made_folder"]
            self.found = read_saved(content)

    def refuse(self, difference: str) -> NoReturn:
        """Say that the checkpoint is of another fit, and what to do."""
        raise ValueError(
            f"checkpoint={str(self.folder)!r} is of another fit: {difference}. Fit as before to go on with it, or "
            f"remove {self.path} to begin anew."
        )

    @contextlib.contextmanager
    def trusting(self) -> Iterator[None]:
        """Whatever goes wrong here is the fault of the file."""
        try:
            with np.errstate(all="ignore"):
                yield
        except MemoryError:
            raise
        except Exception as error:
            place = "" if str(self.path) in str(error) else f"{self.path}: "
            raise BrokenFileError(f"{place}{error}. Remove the file to begin anew.") from error

    def check_trees(self, schema: Schema, n_classes: int, most: int) -> int:
        """How many trees there are to go on with; refused unless they are of this table, and not too many."""
        if self.found is None:
            return 0
        forest = self.found.forest
        n_levels = [0 if levels is None else len(levels) for levels in schema.levels]
        with self.trusting():
            if forest.n_levels.tolist() != n_levels or forest.n_classes != n_classes or forest.linear is not None:
                raise BrokenFileError("the trees are of another table")
            if forest.is_compact or len(forest) > most:
                raise BrokenFileError(f"there are {len(forest)} trees, of {most}")
        return len(forest)

    # --- writing ---

    @contextlib.contextmanager
    def saving(self, take: Callable[[], Saved | None]) -> Iterator[None]:
        """Save what `take` gives while the fit runs, whenever `note` finds it is time, and when it is interrupted.

        take: None where there is no whole tree yet. It may be called in another thread than the one that grows.
        """
        self.take = take
        try:
            yield
        except BaseException:
            self.save()
            raise
        finally:
            self.take = None  # a thread that was left to itself writes no more

    def note(self) -> None:
        """Look whether it is time to save, or to end: to be called after each whole tree or round."""
        pause = _pause.get()
        if pause is not None and pause.is_due():
            raise PausedError(str(self.folder))  # `saving` saves
        if time.monotonic() >= self.due:
            self.save()

    def save(self) -> None:
        """Write what has been grown so far; the fit goes on without where that cannot be."""
        with self.turn:
            begun = time.monotonic()
            saved = None if self.take is None else self.take()
            if saved is None:
                return
            try:
                with writing(self.folder, "give checkpoint= another folder"):
                    self.has_made_folder = self.has_made_folder or not self.folder.exists()
                    self.folder.mkdir(parents=True, exist_ok=True)
                    write(self.path, *self.pack(saved))
            except OSError as error:
                warn(f"no checkpoint is written, and the fit goes on: {error}")
            ended = time.monotonic()
            self.due = ended + max(SECONDS, SHARE * (ended - begun))

    def remove(self) -> None:
        """Remove the file, and a folder that was made for it if nothing else is in it: the fit is done."""
        self.path.unlink(missing_ok=True)
        if self.has_made_folder:
            with contextlib.suppress(OSError):
                self.folder.rmdir()

    def pack(self, saved: Saved) -> Container:
        """What the file holds."""
        from spinney import __version__

        writer = Writer(KINDS)
        state = {
            "about": self.about,
            "seed": self.seed,
            "has_made_folder": self.has_made_folder,
            "forest": writer.write(saved.forest, "forest", is_named=True),
            "more": writer.write(saved.more, "more"),
        }
        text = {"format": FORMAT, "version": VERSION, "library": __version__, "state": dump(state).decode()}
        return Container(writer.all_arrays(), text)


def open_checkpoint(model: Any, seed: int, old: Any, mark: Callable[[], dict[str, str]]) -> Checkpoint | None:
    """The checkpoint that a fit is to keep; None: `checkpoint` asks for none.

    seed: that the fit would draw by; old: the model that a warm start adds to; mark: hashes of the data.
    """
    from spinney import __version__

    if model.checkpoint is None:
        return None
    if old is not None:
        raise ValueError(
            "warm_start goes on with the model of the last fit, checkpoint with a folder: set one of them to None or "
            "False"
        )
    about = {
        "method": type(model).__name__,
        "version": __version__,
        "parameters": {
            name: describe(value) for name, value in model.get_params(deep=False).items() if name not in NO_MATTER
        },
        "data": mark(),
    }
    checkpoint = Checkpoint(Path(model.checkpoint), about, seed)
    checkpoint.look()
    return checkpoint


def refuse_members(model: Any, member: Any) -> None:
    """Refuse to keep what is no tree of ours."""
    if model.checkpoint is not None:
        raise ValueError(
            f"checkpoint keeps trees, and members of this {type(model).__name__} are {type(member).__name__}: set "
            "checkpoint=None, or use CART trees as members"
        )


# --- whose trees they are ---------------------------------------------------------------------------------------


def describe(value: Any) -> str:
    """A parameter as text: equal for equal values, in any process."""
    text = _describe(value)
    return text if len(text) <= LONGEST else f"{text[:40]}... ({hashlib.sha256(text.encode()).hexdigest()})"


def _describe(value: Any) -> str:
    name = type(value).__name__
    if value is None or isinstance(value, bool | int | float | str | np.generic):
        text = ascii(value.item() if isinstance(value, np.generic) else value)
    elif isinstance(value, dict):
        text = "{" + ", ".join(f"{_describe(k)}: {_describe(v)}" for k, v in value.items()) + "}"
    elif isinstance(value, list | tuple):
        text = f"[{', '.join(map(_describe, value))}]"
    elif isinstance(value, np.ndarray):
        text = f"{value.dtype}{list(value.shape)} {mark_array(value) if value.dtype != object else value.tolist()!a}"
    elif hasattr(value, "get_params"):
        parameters = value.get_params(deep=False)
        text = f"{name}({', '.join(f'{key}={_describe(parameters[key])}' for key in sorted(parameters))})"
    else:  # functions by their names, generators by their class
        text = ascii(getattr(value, "__qualname__", name))
    return text


def mark_array(array: NDArray[Any] | None) -> str:
    """Hash of an array of numbers; empty for None."""
    return "" if array is None else hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()


def tell_difference(about: dict[str, Any], found: Any) -> str | None:
    """How the fit of a checkpoint differs from the one at hand; None: in nothing."""
    if not isinstance(found, dict) or set(found) != set(about):
        raise BrokenFileError("it does not say whose trees it holds")
    if found["method"] != about["method"]:
        return f"it is one of {found['method']}, not {about['method']}"
    if found["version"] != about["version"]:
        return f"it is of Spinney {found['version']}, and this is {about['version']}"
    for part in ("parameters", "data"):
        now, then = about[part], found[part]
        if not isinstance(then, dict) or not all(isinstance(text, str) for text in then.values()):
            raise BrokenFileError("it does not say whose trees it holds")
        for name in sorted(now.keys() | then.keys()):
            if now.get(name) != then.get(name):
                is_parameter = part == "parameters"
                return f"{name}={now.get(name)}, and was {then.get(name)}" if is_parameter else f"{name} differs"
    return None


# --- the file ---------------------------------------------------------------------------------------------------


def open_state(container: Container) -> dict[str, Any]:
    """The JSON of a checkpoint, and its arrays."""
    text = container.text
    if text.get("format") != FORMAT or set(text) != {"format", "version", "library", "state"}:
        raise BrokenFileError("it is no checkpoint")
    if text["version"] != VERSION:
        raise BrokenFileError(f"it was written by Spinney {text['library']}, in another format")
    n_paid = sum(array.nbytes for array in container.arrays.values()) + len(text["state"])
    state = load_json(text["state"], n_paid)
    is_whole = isinstance(state, dict) and set(state) == PARTS
    if (
        not is_whole
        or type(state["seed"]) is not int
        or state["seed"] < 0
        or type(state["has_made_folder"]) is not bool
    ):
        raise BrokenFileError(f"it must have {sorted(PARTS)}")
    return {**state, "arrays": container.arrays}


def read_saved(content: dict[str, Any]) -> Saved:
    """The trees, checked as those of a model file are."""
    reader = Reader(KINDS, content["arrays"])
    saved: Any = Saved(reader.read(content["forest"]), reader.read(content["more"]))
    if not isinstance(saved.forest, Forest) or not isinstance(saved.more, dict):
        raise BrokenFileError("it holds no trees")
    reader.check_all_used()
    return saved


def check_floats(values: Any, name: str, length: int) -> None:
    """Refuse what is no row of numbers."""
    if not isinstance(values, np.ndarray) or values.dtype != np.float64 or values.shape != (length,):
        raise BrokenFileError(f"{name} must be {length} numbers")
