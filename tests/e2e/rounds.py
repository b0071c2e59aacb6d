"""A client that asks some ids in turn, round by round, beside what a script does to its fleet.

    class Counter(Rounds):
        def ask(self): ...              # one round of self.ids by self.redis; counts itself in self.rounds

    load = Counter(gateway.resp, [f"id-{i}" for i in range(60)])
    load.start()
    asked = load.done()                 # fails if a round did
"""
import threading

from fleet import Resp


class Rounds(threading.Thread):
    def __init__(self, address, ids):
        super().__init__(daemon=True)
        self.redis = Resp(address, timeout=120)
        self.ids = ids
        self.rounds = 0
        self.stopping = False
        self.failed = None

    def ask(self):
        raise NotImplementedError

    def run(self):
        try:
            while not self.stopping:
                self.ask()
        except Exception as error:  # told by the thread that waits for it
            self.failed = error

    def done(self):
        """Ends it. How many requests that were."""
        self.stopping = True
        self.join(120)
        assert not self.is_alive() and self.failed is None, self.failed
        return self.rounds * len(self.ids)
