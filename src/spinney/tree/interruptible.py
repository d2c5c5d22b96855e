"""Run a driver so that Ctrl-C stops it: a long run is off the main thread and is stopped through `control`."""

from __future__ import annotations

import threading
from concurrent.futures import Future

import numpy as np
from numpy.typing import NDArray

from spinney._jit import kernels
from spinney._threads import FAREWELL_SECONDS, POLL_SECONDS
from spinney._types import CONTROL_STOP, DONE

INLINE_ROWS = 20_000  # rows x features below which a fit takes milliseconds and needs no thread of its own


class Driven:
    """A tree under way whose `drive` returns DONE, or STOPPED once `control` says so."""

    control: NDArray[np.int64]
    ids: NDArray[np.int32]
    features: NDArray[np.int64]

    def drive(self) -> int:
        """Run the driver to its end."""
        raise NotImplementedError

    def run(self) -> None:
        """Run the driver, off the main thread if it may take long, so that Ctrl-C stops it at its next node."""
        n_rows = len(self.ids)
        is_main = threading.current_thread() is threading.main_thread()
        is_short = n_rows * self.features.shape[1] <= INLINE_ROWS
        status = self.drive() if is_short or not is_main else self.drive_aside()
        if status != DONE:
            raise KeyboardInterrupt

    def drive_aside(self) -> int:
        """Drive in a thread of its own and wait, ready for an interrupt.

        The thread is a daemon and is not waited for long after one: a kernel stops at its next feature, but a compile
        in its first call would hold it up for seconds.
        """
        result: Future[int] = Future()

        def work() -> None:
            try:
                result.set_result(self.drive())
            except BaseException as error:  # noqa: BLE001  (raised again by the thread that waits)
                result.set_exception(error)

        thread = threading.Thread(target=work, name="spinney-grow", daemon=True)
        kernels(0.0)  # imports what the driver may choose for small work, so that no thread does
        thread.start()
        try:
            while True:
                try:
                    return result.result(POLL_SECONDS)
                except TimeoutError:
                    if result.done():  # a TimeoutError of the work itself
                        raise
                    if not thread.is_alive() and not result.done():
                        raise RuntimeError("the thread has ended before its work was done") from None
        except BaseException:
            self.control[CONTROL_STOP] = 1
            thread.join(FAREWELL_SECONDS)
            raise
