"""The headline of a page: the main result of a run in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from streaming_moments.pipelines.reports.page import ReportPage, ShareOverTime, TopicChange
from streaming_moments.pipelines.reports.topic_reports import topic_names
from streaming_moments.printing.plural import plural
from streaming_moments.quality.differences import largest_change

_POINT = 0.001  # ignore changes of a share that are smaller than this
_NONE = "no model is published yet"
_NAMED = 5  # name at most this many topics or states in a headline


def headline_of(page: ReportPage) -> str:
    """Return the first sentence of a page.

    Examples
    --------
    >>> from streaming_moments.pipelines.reports.page import TopicReport
    >>> sea, law = (TopicReport(j, 0.5, None, (word,), ()) for j, word in enumerate(["sea", "law"]))
    >>> changes = [TopicChange(0, "sea", 0.469, 0.5, bar=0.01),
    ...            TopicChange(1, "law", 0.531, 0.5, bar=0.01)]
    >>> of = "store", "2026-05-02T03:15:00Z", "published"
    >>> page = ReportPage("T", *of, {"documents": 3204}, topics=(sea, law), changes=tuple(changes))
    >>> headline_of(page)
    '2 topics of 3,204 documents, no new topics; biggest change: sea +3.1 points'
    """
    what = next((name for name in ("documents", "rows", "edges") if name in page.facts), "")
    number = page.facts.get(what)
    of = f" of {number:,} {what}" if isinstance(number, int) else ""
    if page.outcome == "failed" and not page.topics:
        return "This run failed"
    if page.outcome == "nothing new" and page.version is None:
        return "Nothing new, and no store yet: the first nightly run that finds shards creates it"
    if page.outcome == "nothing new" and not page.topics:
        return f"Nothing new{', ' * bool(of)}{of.removeprefix(' of ')}"
    parts = len(page.topics) or len(next(iter(page.states.values()), ()))
    model = str(page.facts.get("fitted as", "model")).replace("_", " ")
    counted = f"{parts} {plural(parts, page.what)}{of}" if parts else f"A {model}{of}"
    return _lead(page) + counted + _news(page)


def _lead(page: ReportPage) -> str:
    if page.outcome == "rejected":
        stays = "the earlier published one stays" if "published" in page.facts else _NONE
        return f"The new model was rejected, and {stays}. Rejected: "
    return "Nothing new: " if page.outcome == "nothing new" else ""


def _news(page: ReportPage) -> str:
    if page.changes:
        return _since(page)
    names = topic_names(page.topics, page.what)
    said = change_over(page.periods, names)
    if said:
        return f"; {said}"
    if not page.topics:
        return ""
    largest = max(range(len(names)), key=lambda topic: page.topics[topic].weight)
    return f"; the largest: {names[largest]}, {page.topics[largest].weight:.1%}"


def change_over(over: ShareOverTime, names: Sequence[str]) -> str:
    """Describe the largest clear change of a share over time, or say that no change is clear.

    A change is clear if chance alone makes one as large on at most one page in 20. Returns an empty
    text if the error bars are unknown, or if the clear change is tiny.
    """
    if len(over.shares) < 2 or not over.bars:
        return ""
    days, steps = f"from {over.dates[0]} to {over.dates[-1]}", over.steps
    most = largest_change([step for step, _ in steps], [bar for _, bar in steps])
    if most is None:
        return f"no clear change {days}"
    if abs(steps[most][0]) < _POINT:
        return ""
    moved = f"{over.shares[0][most]:.1%} to {over.shares[-1][most]:.1%}"
    return f"biggest change {days}: {names[most]}, {moved}"


def _since(page: ReportPage) -> str:
    born = [one.name for one in page.changes if one.before is None]
    gone = [one.name for one in page.changes if one.now is None]
    # repeat the noun, because "none new" could refer to documents
    none = f", no new {plural(0, page.what)}"
    said = f", {len(born)} new ({_some(born)})" if born else none
    said += f", {len(gone)} gone ({_some(gone)})" if gone else ""
    kept = [one for one in page.changes if one.before is not None and one.now is not None]
    since = f" since {page.since[:10]}" if page.since else ""
    if not kept:
        return said
    known = [one for one in kept if one.bar is not None]
    if not known:
        return f"{said}; the noise of the shares is unknown{_moved(kept)}{since}"
    place = largest_change([one.step for one in known], [one.bar for one in known])
    if place is None:
        return f"{said}; no share has changed beyond noise{_moved(kept)}{since}"
    most = known[place]
    if abs(most.step) < _POINT:
        return f"{said}; no share has changed by a tenth of a point{_moved(kept)}{since}"
    points = f"{100 * most.step:+.1f}".replace("-", "\N{MINUS SIGN}")
    return f"{said}; biggest change: {most.name} {points} points{_moved(kept)}{since}"


def _some(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _moved(kept: Sequence[TopicChange]) -> str:
    """Describe the cluster whose mean has moved furthest beyond its error bar, if any has."""
    known = [one for one in kept if one.spreads is not None and one.note]
    moved = [(one.spreads or 0.0, one.name) for one in known if one.note == "moved"]
    if not moved:
        return ", and no mean has moved beyond its error bar" if known else ""
    spreads, name = max(moved)
    return f", furthest moved: {name} by {spreads:.1f} spreads"
