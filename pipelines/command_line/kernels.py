"""The command that compiles the kernels before they are needed."""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streaming_moments.pipelines.command_help import GroupedCommand
from streaming_moments.pipelines.command_line.shared_options import (
    Session,
    json_option,
    print_json,
    running,
)
from streaming_moments.pipelines.terminal import confirm

if TYPE_CHECKING:
    from streaming_moments.pipelines.cluster.run import Run
    from streaming_moments.storage.store.store import MomentStore

_DOCUMENTS = 300
_NODES = 60
# probability of an edge between nodes of different communities, and of the same community
_JOINED = (0.1, 0.7)


@click.command(cls=GroupedCommand, examples=("streaming-moments kernels",))
@json_option
def kernels(json_output: bool) -> None:
    """Compile the kernels now, so that later commands start faster.

    The compiled kernels are stored beside the code, or in NUMBA_CACHE_DIR. Other machines with the
    same kind of processor can use them.
    """
    begun = time.monotonic()
    with running(Session()) as run, tempfile.TemporaryDirectory() as folder:
        compile_kernels(Path(folder), run)
    seconds = time.monotonic() - begun
    if json_output:
        print_json({"seconds": seconds})
    else:
        confirm(f"Compiled the kernels in {seconds:.1f} s.")


def compile_kernels(folder: Path, run: Run) -> None:
    """Compile the kernels: run small data of each kind through all code that uses them.

    Shards and stores are left in `folder`, which must be empty. The kernels are compiled in the
    workers of `run`.
    """
    from streaming_moments.pipelines.counting_options import PilotOptions
    from streaming_moments.pipelines.jobs.create import create
    from streaming_moments.pipelines.jobs.outputs.transform import transform
    from streaming_moments.pipelines.jobs.polish import polish
    from streaming_moments.pipelines.jobs.refit import refit, with_coherence
    from streaming_moments.pipelines.jobs.update import update
    from streaming_moments.storage.counting.tokens import TokenPolicy
    from streaming_moments.storage.listing import list_shards
    from streaming_moments.storage.shards import ShardFormat

    options = PilotOptions(max_topics=2, min_documents=1)
    texts, ids = _written(folder)
    kinds = (
        (texts, ShardFormat(), TokenPolicy(passage_words=50)),
        (ids, ShardFormat(), None),
    )
    for place, (paths, form, policy) in enumerate(kinds):
        shards = list_shards([str(path) for path in paths])
        store = create(str(folder / f"store-{place}"), shards, form, policy, options, run)
        store = update(store, shards, run).store
        model = with_coherence(store, refit(store, 2, 0.5, run), run)
        transform(store, model, shards, str(folder / f"fixed-{place}"), run)
        transform(store, model, shards, str(folder / f"gibbs-{place}"), run, "gibbs", seed=0)
        store = store.save_model("first", model)
        polish(store, model, run, shards, passes=1, parent="first")
        _add_to_opened(store)
    _compile_kinds(folder, run)


def _compile_kinds(folder: Path, run: Run) -> None:
    """Count, fit and polish small data of every kind but documents; write outputs for shards."""
    from streaming_moments.models.bernoullis.bernoulli_mixture import BernoulliMixture
    from streaming_moments.models.chains import HiddenMarkovModel
    from streaming_moments.models.communities.blockmodel import Blockmodel
    from streaming_moments.models.factors import IndependentFactors
    from streaming_moments.models.mixtures.gaussian_mixture import GaussianMixture
    from streaming_moments.models.three_view import MultiViewMixture
    from streaming_moments.pipelines.counting_options import (
        CountingOptions,
        PilotOptions,
    )
    from streaming_moments.pipelines.jobs.kinds.create_kinds import create_kind
    from streaming_moments.pipelines.jobs.kinds.options import KindOptions
    from streaming_moments.pipelines.jobs.outputs.registry import OUTPUTS
    from streaming_moments.pipelines.jobs.outputs.shard_outputs import OutputOptions
    from streaming_moments.pipelines.jobs.polish import polish
    from streaming_moments.pipelines.jobs.refit import refit_by
    from streaming_moments.pipelines.jobs.update import update
    from streaming_moments.storage.listing import list_shards

    draw = random.Random(0)
    (folder / "sequences.txt").write_text(
        "".join("".join(draw.choices("abc", (5, 3, 1), k=30)) + "\n" for _ in range(_DOCUMENTS))
    )
    classes = [draw.choice("xy") for _ in range(_DOCUMENTS)]
    rows = [f"{one} {draw.choice('xy')},{one},{draw.choice([one, 'x'])}\n" for one in classes]
    (folder / "views.csv").write_text("a,b,c\n" + "".join(rows))
    numbers = [f"{draw.gauss(8 * (one == 'x'), 1)},{draw.gauss(0, 1)}\n" for one in classes]
    (folder / "vectors.csv").write_text("a,b\n" + "".join(numbers))
    numbers = [f"{draw.expovariate(1)},{draw.expovariate(1)}\n" for _ in range(_DOCUMENTS)]
    (folder / "factors.csv").write_text("a,b\n" + "".join(numbers))
    pairs = [(one, other) for one in range(_NODES) for other in range(one)]
    ends = [
        f"n{one},n{other}\n"
        for one, other in pairs
        if draw.random() < _JOINED[one % 2 == other % 2]
    ]
    (folder / "edges.csv").write_text("source,target\n" + "".join(ends))
    held = [f"{one == 'x':d},{draw.random() < 0.5:d},{one == 'x':d}\n" for one in classes]
    (folder / "sets.csv").write_text("a,b,c\n" + "".join(held))
    kinds: tuple[tuple[str, KindOptions, Any], ...] = (
        ("sequences.txt", KindOptions("sequences"), HiddenMarkovModel),
        ("views.csv", KindOptions("views", "a:text,b,c"), MultiViewMixture),
        ("vectors.csv", KindOptions("vectors", "a,b"), GaussianMixture),
        ("factors.csv", KindOptions("vectors", "a,b"), IndependentFactors),
        ("edges.csv", KindOptions("edges"), Blockmodel),
        ("edges.csv", KindOptions("edges", sketch_columns=4), Blockmodel),
        ("sets.csv", KindOptions("sets", "a,b,c"), BernoulliMixture),
    )
    for place, (name, shape, model) in enumerate(kinds):
        shards = list_shards([str(folder / name)])
        counting, pilot = (
            CountingOptions(min_length=1),
            PilotOptions(min_documents=1, max_document_fraction=1.0),
        )
        store = create_kind(str(folder / f"kind-{place}"), shards, shape, counting, pilot, run)
        store = update(store, shards, run).store
        fitted = refit_by(store, model, model.Options(topics=2), run)
        store = store.save_model("first", fitted)
        polish(store, fitted, run, shards, passes=1, parent="first")
        if output := OUTPUTS.get(model.name):
            told = OutputOptions(method=next(iter(output.methods), ""))
            output.write(store, fitted, shards, str(folder / f"read-{place}"), run, told)


def _add_to_opened(store: MomentStore) -> None:
    """Add a document to sums and subtract it, which compiles the kernels that large sums use."""
    from streaming_moments.statistics.counts.batch import CountBatch

    prepared = store.foundation.prepared(
        CountBatch.from_rows(
            [0, 1], [0], None, store.vocabulary.n_words, store.vocabulary.fingerprint
        )
    )
    sums = store.foundation.sums(store.layout.block(0))
    sums.add([prepared])
    sums.subtract([prepared])


def _written(folder: Path) -> tuple[list[Path], list[Path]]:
    """Write shards of texts in two formats, and a shard of token ids; return their paths."""
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefgh", k=5)) for _ in range(60)]
    parts = [words[:40], words[20:]]
    rows = [draw.choices(parts[number % 2], k=30) for number in range(_DOCUMENTS)]
    lines, table, ids = folder / "a.jsonl", folder / "b.csv", folder / "ids.dat"
    lines.write_text("".join(json.dumps({"text": " ".join(row)}) + "\n" for row in rows))
    table.write_text("text\n" + "".join(f"{' '.join(row[::-1])}\n" for row in rows))
    numbers = {word: number for number, word in enumerate(words)}
    ids.write_text("".join(_counted(Counter(numbers[word] for word in row)) for row in rows))
    return [lines, table], [ids]


def _counted(counts: Counter[int]) -> str:
    """Return a line in the format LDA-C."""
    return f"{len(counts)} {' '.join(f'{word}:{count}' for word, count in counts.items())}\n"
