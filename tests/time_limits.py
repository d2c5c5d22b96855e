"""A limit of time for tests that wait for other threads and processes."""

import contextlib
import signal


@contextlib.contextmanager
def limited(seconds):
    """Raise `TimeoutError` in the main thread after so many seconds."""

    def stop(*_):
        raise TimeoutError(f"the test took more than {seconds} seconds")

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
