"""An engine that loses tasks, and what workers hold, by a script: the whole of a fit runs on it in milliseconds."""

import pickle

from spinney.scale.cluster.engine import NOTHING, Done, Engine, Failed, Held, Lost


class WorkerGoneError(Exception):
    """What the fake says of a worker that is no more."""


class LossyEngine(Engine):
    """Tasks in this thread, ended in any order.

    Parameters
    ----------
    script : iterator of (int, bool, bool)
        For each task that ends: which of those under way, whether it is lost, and whether what workers hold is lost
        with it. After its end nothing is lost.
    """

    def __init__(self, script=(), n_slots=3, patience=1_000_000):
        super().__init__(patience)
        self.script = iter(script)
        self.n_slots = n_slots
        self.under_way = {}
        self.n_begun = 0
        self.n_made = 0
        self.held = []

    def count_slots(self):
        return self.n_slots

    def start(self, name, task, part, held):  # noqa: ARG002
        self.n_begun += 1
        # through a pickle, as to another process: a task that would change what it is given changes its own
        self.under_way[self.n_begun] = pickle.dumps(task), part, held
        return self.n_begun

    def wait(self):
        which, is_lost, takes_held = next(self.script, (0, False, False))
        ticket = list(self.under_way)[which % len(self.under_way)]
        pickled, part, held = self.under_way.pop(ticket)
        if takes_held:
            for one in self.held:
                one.value = NOTHING
        if is_lost:
            return [(ticket, Lost(WorkerGoneError(f"worker of task {ticket}")))]
        task = pickle.loads(pickled)
        try:
            values = (self.give(part),) if held is None else (self.find(held), self.give(part))
            return [(ticket, Done(pickle.loads(pickle.dumps(task(*values)))))]
        except Exception as error:  # noqa: BLE001
            return [(ticket, Failed(error))]

    def give(self, value):
        """What a task gets of a value: what a worker holds as it is, all else through a pickle."""
        if isinstance(value, Held):
            return self.find(value)
        if type(value) is list:
            return [self.give(item) for item in value]
        return pickle.loads(pickle.dumps(value))

    def find(self, held):
        if held.value is NOTHING:
            self.n_made += 1
            held.value = held.make(*(self.give(one) for one in held.sources))
            self.held.append(held)
        return held.value

    def release(self, values):
        for one in values:
            one.value = NOTHING
