"""Figures of a daemon as Prometheus asks for them, read by the parser of OpenMetrics' reference, prometheus_client."""
import urllib.request

try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families
except ImportError:  # a test asks is_missing() first
    text_string_to_metric_families = None

# As Prometheus 2.42 asks.
ACCEPT = ("application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
          "text/plain;version=0.0.4;q=0.5,*/*;q=0.1")


def is_missing():
    """True, and said so: what needs the parser is skipped."""
    if text_string_to_metric_families is None:
        print("# skipped: python3-prometheus-client is not there")
    return text_string_to_metric_families is None


def scrape(address):
    """The text, and its families; of the text all is checked."""
    asked = urllib.request.Request(f"http://{address}/metrics", headers={"Accept": ACCEPT})
    with urllib.request.urlopen(asked, timeout=10) as page:
        kind, text = page.headers["Content-Type"], page.read().decode()
    assert kind.startswith("application/openmetrics-text; version=1.0.0"), kind
    return text, list(text_string_to_metric_families(text))


def exemplars(families):
    """Of each bucket that has one: its labels, its exemplar, and the bound below it."""
    found = []
    for family in families:
        below = 0.0
        for sample in family.samples:
            if not sample.name.endswith("_bucket"):
                below = 0.0
                continue
            if sample.exemplar is not None:
                found.append((family.name, sample.labels, sample.exemplar, below))
            below = float(sample.labels["le"])
    return found
