"""Work that must not be cut in two: imports of Numba, of which a half is never mended in the same process."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def do_whole(work: Callable[[], None]) -> None:
    """Do work beside the main thread, which alone is interrupted: Ctrl-C ends the waiting, and the work goes on.

    Whoever needs the work next waits for it, as the locks of imports have it.
    """
    if threading.current_thread() is not threading.main_thread():
        work()
        return
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  (raised again by the caller)
            errors.append(error)

    thread = threading.Thread(target=run, name="spinney-load", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # a limit on threads, or the interpreter is about to end
        work()
        return
    thread.join()
    if errors:
        raise errors[0]
