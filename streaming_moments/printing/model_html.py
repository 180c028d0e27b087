"""HTML of a topic model for notebooks: shares and coherences, without words."""

from __future__ import annotations

from typing import Any

from streaming_moments.printing.html_table import html_table
from streaming_moments.printing.plural import of_number


def topics_html(model: Any) -> str:
    """HTML table with a row for each topic; a `TopicModel` does not have its words."""
    scores = {"NPMI": model.npmi, **model.coherences}
    rows = [
        (place, f"{share:.1%}", *(f"{values[place]:.2f}" for values in scores.values()))
        for place, share in enumerate(model.weights)
    ]
    sizes = (model.n_topics, "topic"), (model.n_words, "word"), (model.documents, "document")
    said = "{} of {} and {}".format(*(of_number(*one) for one in sizes))
    return html_table(said, ["topic", "share", *scores], rows)
