"""How the report in `reports` was made, once, by version 0.1.0; it is never made again.

It is the second of two nights with a shard each, by
`python tests/formats/make_report.py tests/formats/reports`; what it holds is repeated in
`test_reports.py` as numbers, not computed. The folder in which it was made is called /nights.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.nightly.config import config_of
from streaming_moments.pipelines.nightly.night import nightly

SUBJECTS = ("law court judge trial", "sea ship sail wind", "tax duty gold silver")


def make(output):
    rng = np.random.default_rng(5)
    with tempfile.TemporaryDirectory() as place, connect() as cluster:
        config = config_of(
            {
                "store": f"{place}/store",
                "shards": f"{place}/2026*.txt",
                "output": f"{place}/reports",
                "create": {"min_documents": 2, "vocabulary_size": 12, "max_topics": 3},
                "refit": {"topics": [2, 3], "alpha0": 0},
                "gates": {"min_documents": 50, "max_pair_distance": 0.9, "min_captured": 0.1},
            },
            "",
        )
        for day in ("20", "21"):
            texts = [" ".join(rng.choice(SUBJECTS[rng.integers(3)].split(), 12)) for _ in range(80)]
            (Path(place) / f"2026-11-{day}.txt").write_text("\n".join(texts))
            nightly(config, cluster, lambda step: None)
        last = max((Path(place) / "reports").glob("night-*.json"))
        (Path(output) / last.name).write_text(last.read_text().replace(place, "/nights"))


if __name__ == "__main__":
    make(sys.argv[1])
