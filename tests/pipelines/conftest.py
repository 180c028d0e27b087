import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streaming_moments.pipelines.cluster import connect
from streaming_moments.pipelines.entry import main
from streaming_moments.synthetic import lda_corpus

LETTERS = "abcdefghij"


def spelled(word):
    """A word of letters for each number: the tokeniser knows no digits."""
    return "w" + "".join(LETTERS[int(digit)] for digit in str(word))


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
