"""Views: words of three columns, and sketches of them, from a pilot of shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from streaming_moments.errors import BoundExceeded, InvalidInput
from streaming_moments.numerics.lazy_scipy import sp
from streaming_moments.pipelines.counting_options import PilotOptions
from streaming_moments.pipelines.jobs.create import cut_to_room
from streaming_moments.pipelines.jobs.kinds.base import (
    KindJobs,
    Made,
    Sampling,
    Sight,
    create_by,
)
from streaming_moments.pipelines.jobs.kinds.options import OF_TEXTS, OF_WORDS, KindOptions
from streaming_moments.printing.plural import of_number
from streaming_moments.statistics.counts.vocabulary import Vocabulary, select_terms
from streaming_moments.statistics.views.foundation import ViewsFoundation
from streaming_moments.statistics.views.sketches import core_of, sketch_of
from streaming_moments.storage.counting.samples import sample_of_passages, settled
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.counting.views import (
    ViewReader,
    ViewsForm,
    column_frequencies,
    sample_rows,
)
from streaming_moments.storage.lazy_libraries import pa

# A pair of words of two views counts as this many bytes of a pilot. A pair needs 64 bytes of
# memory, and the plan reserves `PILOT_FACTOR` (16) bytes of memory for each byte of a pilot.
_PILOT_BYTES_A_PAIR = 4
_WORDS_AT_ONCE = 64
_VIEWS = 3


def _form(shape: KindOptions) -> ViewsForm:
    return ViewsForm.parse(shape.names)


def _made(sampling: Sampling) -> Made:
    shape, counting, options = sampling.shape, sampling.counting, sampling.options
    form, policy = _form(shape), counting.policy
    table, origin = sample_table(sampling, form.columns, "records")
    if policy.seeks_languages or policy.phrase_words:
        policy = _policy_found(table, form, policy, options)
    views = replace(form, policy=policy)
    vocabularies: Any = tuple(
        _words(table[name], name, views.policy if text else None, options)
        for name, text in zip(views.columns, views.texts, strict=True)
    )
    reader = ViewReader.over(counting.form, views, vocabularies)
    batch, _ = reader.counted(table, "the pilot")
    matrices = [view.to_csr() for view in batch.views]
    bases: Any = tuple(
        sketch_of(
            pairs_of(matrices, place, sampling.limits.pilot_bytes),
            words,
            shape.sketch_columns,
            options.seed + place,
        )
        for place, words in enumerate(vocabularies)
    )
    foundation = ViewsFoundation(bases, vocabularies, views.columns, counting.halves)
    removed = " and ".join(name.title() for name in policy.languages)
    without = f"; stop words of {removed} removed" if removed else ""
    told = f"{origin}{without}"
    return Made(foundation, views.to_json(), told)


def _policy_found(
    table: Any, form: ViewsForm, policy: TokenPolicy, options: PilotOptions
) -> TokenPolicy:
    """Return the policy with the languages and phrases that the columns of texts contain."""
    named = [name for name, text in zip(form.columns, form.texts, strict=True) if text]
    texts = [text for name in named for text in table[name].to_pylist() if isinstance(text, str)]
    if not texts:
        return replace(policy.in_languages(()), phrase_words=None)
    split = policy.splitter()
    sample = sample_of_passages(([*split(text)] for text in texts), policy, len(texts))
    return settled(sample, policy, options.min_documents)[1]


def sample_table(sampling: Sampling, columns: Sequence[str], what: str) -> tuple[Any, str]:
    """Return the rows of a pilot as one table, and a phrase about them that calls them `what`."""
    samples = sampling.samples(sample_rows, columns)
    table = pa.concat_tables(samples, promote_options="permissive")
    few = table.num_rows < sampling.options.pilot_documents
    most = cut_to_room(table.nbytes, sampling.limits) if few else ""
    return (
        table,
        f"a sample of {table.num_rows:,} {what}{most} in {of_number(len(samples), 'shard')}",
    )


def pairs_of(views: Sequence[Any], place: int, room: int) -> Any:
    """Count how often words of a view occur with words of other views, in an (n, m) sparse matrix.

    Uses fewer records if the counts of all records need too much memory. Raises BoundExceeded if
    the counts of a single record need too much memory.
    """
    most = room // _PILOT_BYTES_A_PAIR
    while True:
        own, others = views[place], sp.hstack([*views[:place], *views[place + 1 :]], format="csr")
        parts, pairs, words = [], 0, sp.csr_array(own.T)
        for start in range(0, max(1, words.shape[0]), _WORDS_AT_ONCE):
            parts.append(words[start : start + _WORDS_AT_ONCE] @ others)
            pairs += parts[-1].nnz
            if pairs > most:
                break
        else:
            return sp.vstack(parts, format="csr")
        if own.shape[0] == 1:
            raise BoundExceeded(
                f"the words of one record form more than {most:,} pairs, which need more memory "
                "than a pilot may use",
                "raise {option.memory}, or lower {create.vocabulary_size}",
            )
        views = [one[::2] for one in views]


def _words(column: Any, name: str, policy: Any, options: PilotOptions) -> Vocabulary:
    terms = frequent_terms(column, name, policy, options)
    mark = "" if policy is None else policy.fingerprint
    return Vocabulary(terms, core_of(len(terms)), mark)


def frequent_terms(column: Any, name: str, policy: Any, options: PilotOptions) -> tuple[str, ...]:
    """Return the terms of a column by decreasing frequency.

    The most frequent words of texts are left out.
    """
    found = column_frequencies(column, name, policy)
    share = options.max_document_fraction if policy is not None else 1.0
    try:
        chosen = select_terms(found, options.vocabulary_size, options.min_documents, share)
    except InvalidInput as error:
        raise InvalidInput(f"column {name!r}: {error}") from error
    return tuple(found.terms[place] for place in chosen)


def _sights(columns: Mapping[str, str], text_column: str) -> list[Sight]:
    """Find three columns of words."""
    words = [name for name, what in columns.items() if what == "word"]
    return [Sight.of_columns("three views", words)] if len(words) == _VIEWS else []


VIEWS = KindJobs(
    ViewsFoundation,
    OF_WORDS | OF_TEXTS | {"columns", "sketch_columns"},
    partial(create_by, _made),
    _form,
    sights=_sights,
)
