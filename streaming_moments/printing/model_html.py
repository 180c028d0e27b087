"""HTML of a topic model for notebooks: shares and coherences, without words."""

from __future__ import annotations

from typing import Any

from streaming_moments.printing.html_table import html_table


def topics_html(model: Any) -> str:
    """HTML table with a row for each topic; a `TopicModel` does not have its words."""
    scores = {"NPMI": model.npmi, **model.coherences}
    rows = [
        (place, f"{share:.1%}", *(f"{values[place]:.2f}" for values in scores.values()))
        for place, share in enumerate(model.weights)
    ]
    said = f"{model.n_topics} topics of {model.n_words:,} words and {model.documents:,} documents"
    return html_table(said, ["topic", "share", *scores], rows)
