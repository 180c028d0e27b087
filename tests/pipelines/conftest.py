import gzip
import json

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streaming_moments.pipelines.cluster import rows_on_cluster
from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.command_line.entry import main
from streaming_moments.synthetic.corpora import lda_corpus

LETTERS = "abcdefghij"


def spelled(word):
    """A word of letters for each number: the tokeniser knows no digits."""
    return "w" + "".join(LETTERS[int(digit)] for digit in str(word))


@pytest.fixture(scope="session", autouse=True)
def workers_of_this_process(forked_workers):
    """Worker processes of this one are forked: those of a command's process begin as they do."""


@pytest.fixture(scope="session")
def planted():
    """900 documents of a planted LDA model, as lists of spelled words."""
    corpus = lda_corpus(900, n_words=150, n_topics=4, mean_length=40, concentration=60, seed=11)
    rng = np.random.default_rng(0)
    texts = []
    for document in range(corpus.batch.documents):
        entries = slice(corpus.batch.indptr[document], corpus.batch.indptr[document + 1])
        words = np.repeat(corpus.batch.words[entries], corpus.batch.counts[entries])
        texts.append(" ".join(spelled(word) for word in rng.permutation(words)))
    return texts


@pytest.fixture(scope="session")
def shards(planted, tmp_path_factory):
    """Six shards: Parquet, JSON Lines, and JSON Lines compressed."""
    folder = tmp_path_factory.mktemp("shards")
    parts = [planted[start : start + 150] for start in range(0, 900, 150)]
    for number, part in enumerate(parts):
        if number % 3 == 0:
            table = pa.table({"text": part, "year": list(range(len(part)))})
            pq.write_table(table, folder / f"{number}.parquet", row_group_size=64)
            continue
        lines = [json.dumps({"text": text}) for text in part]
        if number % 3 == 1:
            (folder / f"{number}.jsonl").write_text("\n".join(lines) + "\n")
        else:
            (folder / f"{number}.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    return folder


@pytest.fixture(scope="session")
def embedded():
    with connect() as cluster:
        yield cluster


@pytest.fixture
def run(capsys):
    """Run a command; gives exit code, output and errors."""

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return ended.value.code or 0, printed.out, printed.err

    return call


@pytest.fixture
def reading():
    """Whether a process or a child of it has a file open."""

    def call(pid, path):
        try:
            job = psutil.Process(pid)
            family = [job, *job.children(recursive=True)]
            return any(str(path) == file.path for one in family for file in one.open_files())
        except psutil.NoSuchProcess:
            return False

    return call


@pytest.fixture
def each_step_a_task(monkeypatch):
    """No version of a store is small: its fits are tasks, as those of large ones."""
    monkeypatch.setattr(rows_on_cluster, "SMALL", -1)
