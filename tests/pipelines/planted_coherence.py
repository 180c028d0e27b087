"""A process in which one more coherence is in the registry: shows as JSON where it appears.

Run with a folder of texts, in which it works.
"""

import contextlib
import io
import json
import sys
from types import MappingProxyType

from streaming_moments.quality.coherences import registry
from streaming_moments.quality.coherences.base import Coherence


def both(words):
    """Share of the documents with both of two top words."""
    return words.together.mean(axis=(1, 2)) / words.documents


PLANTED = Coherence("both", "Both", both, compared=(10, 15))
if __name__ == "__main__":
    # before anything else reads it, as a line of the registry would be; not where tests import this
    registry.COHERENCES = MappingProxyType({**registry.COHERENCES, PLANTED.key: PLANTED})


def printed(*arguments):
    from streaming_moments.pipelines.command_line.entry import main

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            main([str(one) for one in arguments])
        except SystemExit as ended:
            if ended.code:
                raise
    return out.getvalue()


def shown(folder):
    store, texts = f"{folder}/store", f"{folder}/*.txt"
    night = f"{folder}/night.toml"
    with open(night, "w") as file:
        file.write(
            f'store = "{store}"\nshards = "{texts}"\noutput = "{folder}/reports"\n'
            "[create]\nmin_documents = 2\nmax_topics = 4\n"
            "[refit]\ntopics = [2, 3]\nalpha0 = 1\npolish = 1\n[gates]\nmax_both_drop = 0.9\n"
        )
    told = {"night": printed("nightly", night)}
    with open(f"{folder}/reports/latest.json") as file:
        told["report"] = json.load(file)
    with open(f"{folder}/reports/latest.html") as file:
        told["page"] = file.read()
    fit = ("refit", store, "--topics", 3, "--alpha0", 1, "--name", "mine")
    told["refit"] = json.loads(printed(*fit, "--json"))
    told["topics"] = printed("topics", store, "--model", "mine")
    told["model"] = json.loads(printed("topics", store, "--model", "mine", "--json"))
    few = ("select", store, "--topics", "2,3", "--alpha0", 1)
    told["select"] = printed(*few, "--verbose", "--plot", f"{folder}/plot.svg")
    told["selection"] = json.loads(printed(*few, "--json"))
    with open(f"{folder}/plot.svg") as file:
        told["plot"] = file.read()
    return told | of_python(store, f"{folder}/reports")


def of_python(store, reports):
    from streaming_moments import open_store
    from streaming_moments.pipelines.nightly.comparisons import latest_comparison
    from streaming_moments.pipelines.reports.page import ReportPage
    from streaming_moments.pipelines.reports.topic_reports import topics_of
    from streaming_moments.pipelines.service.http.parts import _facts
    from streaming_moments.storage.files.folders import Folder

    opened = open_store(store)
    topics = opened.topics("mine")
    parts = topics_of(topics.model, topics.vocabulary)
    page = ReportPage("", "", "2026-01-01T00:00:00+00:00", "kept", topics=parts)
    found = latest_comparison(Folder.at(reports), opened.url)
    return {
        "frame": list(topics.to_frame().columns),
        "html": topics._repr_html_(),
        "bare": topics.model._repr_html_(),
        "facts": _facts(page, parts[0], 0),
        "compared": [dict(one.coherences) for one in found[1].candidates],
    }


if __name__ == "__main__":
    # what is asked for comes last, as commands may tell of their progress
    print(json.dumps(shown(sys.argv[1])))
