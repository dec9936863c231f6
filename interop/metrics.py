"""Whether node-exporter hands on every sample of a file of its textfile collector: URL FILE."""

import sys
import time
import urllib.error
import urllib.request

url, path = sys.argv[1:]
for _ in range(50):
    try:
        served = urllib.request.urlopen(url, timeout=5).read().decode().splitlines()
        break
    except (urllib.error.URLError, ConnectionError):
        time.sleep(0.1)
else:
    sys.exit(f"nothing answers at {url}")


def samples(lines):
    """Name and set of labels to the value: the exporter orders labels in its own way."""
    found = {}
    for line in lines:
        if line and not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            name, _, labels = name.partition("{")
            found[name, frozenset(labels.rstrip("}").split(","))] = float(value)
    return found


there, wanted = samples(served), samples(open(path).read().splitlines())
errors = [value for (name, _), value in there.items() if name == "node_textfile_scrape_error"]
if errors != [0.0]:
    sys.exit(f"node_textfile_scrape_error is {errors}")
missing = {key: value for key, value in wanted.items() if there.get(key) != value}
if missing or not any(name == "lastmile_rounds_total" for name, _ in wanted):
    sys.exit(f"not handed on: {missing or wanted}")
helps = [line for line in served if line.startswith("# HELP lastmile_")]
print(f"{len(wanted)} samples of {len(helps)} metrics, all handed on")
