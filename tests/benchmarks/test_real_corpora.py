import gzip
from collections import Counter

import numpy as np
import pytest
from real_corpora import Documents, Labelled, Speeches

ROWS = [
    ("red apple tree", "train", "fruit"),
    ("apple pie pie", "test", "fruit"),
    ("green apple", "train", "fruit"),
    ("fast red car", "val", "cars"),
    ("slow car lane", "train", "cars"),
    ("car road lane", "train", "cars"),
]


@pytest.fixture(params=["a_b.tsv", "a_b.tsv.gz"])
def path(request, tmp_path):
    place = tmp_path / request.param
    text = "".join("\t".join(row) + "\n" for row in ROWS).encode()
    place.write_bytes(gzip.compress(text) if place.suffix == ".gz" else text)
    return str(place)


def test_a_third_of_the_groups_is_held_out_and_of_words_only_those_seen_are_counted():
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 30, 200).tolist()
    # of each group a word of its own, and two that all have
    tokens = [[f"own{group}", "one", "two"] for group in groups]
    corpus = Documents(tokens, [str(group) for group in groups], groups).split(seed=3)
    different = len(set(groups))
    kept = different - different // 3
    assert corpus.training.n_words == kept + 2
    assert len(set(corpus.labels.tolist())) == kept
    assert corpus.training.documents + corpus.held_out.documents == 200
    assert (corpus.training.lengths == 3).all()
    # of those held out no word of their own is known
    assert (corpus.held_out.lengths == 2).all()
    totals = corpus.training.to_csr().sum(axis=0)
    assert (np.diff(totals) <= 0).all()


def test_words_are_chosen_by_training_documents_alone():
    tokens = [["all", "some"] if place % 2 else ["all", "rare"] for place in range(40)]
    corpus = Documents(tokens, None, [0] * 40).split(seed=0, most=0.9)
    assert corpus.held_out.documents == 0
    # "all" is of every document, so one word is left of each: too few
    assert (corpus.training.documents, corpus.training.n_words) == (0, 2)


def test_labelled_texts_are_read(path):
    corpus = Labelled(path)
    assert (corpus.name, corpus.n_labels, corpus.short) == ("a-b", 2, True)
    loaded = corpus.load()
    assert loaded.training.documents == 4
    assert loaded.labels is not None
    assert loaded.labels.size == 4


def test_joined_documents_hold_each_text_of_their_label_once(path):
    corpus = Labelled(path, mixed=1.5)
    assert (corpus.name, corpus.short) == ("a-b-mixed", False)
    joined = corpus._joined(corpus._read())
    for label in ("fruit", "cars"):
        wanted = Counter(word for text, _, own in ROWS if own == label for word in text.split())
        assert Counter(word for text, own in joined if own == label for word in text) == wanted


def test_a_line_of_other_columns_is_named(tmp_path):
    place = tmp_path / "bad.tsv"
    place.write_text("a b\ttrain\tx\na b\n")
    with pytest.raises(ValueError, match=r"bad\.tsv, line 2: 1 columns"):
        Labelled(str(place)).load()


def test_addresses_of_mixed_lengths_are_held_out_whole():
    corpus = Speeches("mixed").load()
    assert np.unique(corpus.labels).size == Speeches("mixed").n_labels == 5
    lengths = corpus.training.lengths
    assert np.median(lengths) < 60
    assert lengths.max() > 2000
