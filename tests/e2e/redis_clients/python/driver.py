"""Drives a Redis client of Python as ../README.md says."""
import sys
import threading

NAME, SETTINGS, HOST, PORT = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
RECOMMENDED = SETTINGS == "recommended"


def redis_like(module):
    """redis-py, and valkey-py, which began as a copy of it."""
    package = __import__(module)
    new = getattr(package, "Redis" if module == "redis" else "Valkey")
    if not RECOMMENDED:
        return new(host=HOST, port=PORT)
    retry = __import__(module + ".retry", fromlist=["Retry"]).Retry
    backoff = __import__(module + ".backoff", fromlist=["NoBackoff"]).NoBackoff
    return new(host=HOST, port=PORT, socket_timeout=15, retry=retry(backoff(), 0))


class Redis:
    def __init__(self, module):
        self.module, self.client = module, redis_like(module)
        self.refusals = __import__(module).exceptions.ResponseError

    def pipeline(self, key, count):
        with self.client.pipeline(transaction=False) as p:
            for _ in range(count):
                p.incr(key)
            return p.execute()[-1]

    def multi(self, key):
        with self.client.pipeline(transaction=True) as p:
            p.incr(key)
            p.incr(key)
            return p.execute()

    def once(self, key):
        other = redis_like(self.module)
        answer = other.incr(key)
        other.close()
        return answer

    def __getattr__(self, name):  # set, get, incr
        return getattr(self.client, name)


class Glide:
    def __init__(self):
        import glide_sync

        self.glide = glide_sync
        self.client = self.new()
        self.refusals = glide_sync.RequestError

    def new(self):
        g = self.glide
        extra = {"request_timeout": 15000} if RECOMMENDED else {}
        return g.GlideClient.create(g.GlideClientConfiguration([g.NodeAddress(HOST, PORT)], **extra))

    def batch(self, atomic, key, count):
        batch = self.glide.Batch(is_atomic=atomic)
        for _ in range(count):
            batch.incr(key)
        return self.client.exec(batch, raise_on_error=True)

    def pipeline(self, key, count):
        return self.batch(False, key, count)[-1]

    def multi(self, key):
        return self.batch(True, key, 2)

    def once(self, key):
        other = self.new()
        answer = other.incr(key)
        other.close()
        return answer

    def __getattr__(self, name):
        return getattr(self.client, name)


class Count:
    def __init__(self, client, key, workers):
        self.client, self.key, self.over = client, key, threading.Event()
        self.lock, self.sums, self.texts = threading.Lock(), {"answered": 0, "refused": 0, "unknown": 0}, set()
        self.threads = [threading.Thread(target=self.work) for _ in range(workers)]
        for t in self.threads:
            t.start()

    def work(self):
        while not self.over.wait(0.002):
            try:
                self.client.incr(self.key)
                end, text = "answered", None
            except Exception as e:  # whatever a client raises is what this test is about
                text = f"{type(e).__name__}: {e}"
                end = "refused" if did_not_run(text) else "unknown"
            with self.lock:
                self.sums[end] += 1
                if text and len(self.texts) < 4:
                    self.texts.add(text[:80])

    def stop(self):
        self.over.set()
        for t in self.threads:
            t.join()
        return " ".join(f"{k}={v}" for k, v in self.sums.items()) + " " + " | ".join(sorted(self.texts))


def did_not_run(text):
    return any(word in text for word in ("MOVING", "OVERLOADED", "NOKIND", "QUARANTINED"))


def do(state, words):
    if words[0] == "start":
        state["client"] = Glide() if NAME == "glide" else Redis(NAME)
        c = state["client"]
        c.set("start", "1")
        value = c.get("start")
        assert value in (b"1", "1"), value
        return c.incr("start")
    c = state["client"]
    if words[0] == "pipeline":
        return c.pipeline(words[1], int(words[2]))
    if words[0] == "churn":
        return [c.once(words[1]) for _ in range(int(words[2]))][-1]
    if words[0] == "multi":
        return c.multi(words[1])
    if words[0] == "count":
        state["count"] = Count(c, words[1], int(words[2]))
        return "counting"
    return state["count"].stop()


def main():
    state = {}
    for line in sys.stdin:
        try:
            answer = f"ok {do(state, line.split())}"
        except Exception as e:
            answer = f"error {type(e).__name__}: {e}"
        print(" ".join(answer.split()), flush=True)


main()
