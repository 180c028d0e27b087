"""Which model fits which data and question: a table for the command `choose` and for the docs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from streaming_moments.errors import InvalidInput

DATA: Mapping[str, str] = MappingProxyType(
    {
        "text": "texts, or lists of token ids",
        "sequences": "sequences of symbols, such as steps, letters or events",
        "vectors": "embeddings or other rows of numbers",
        "graph": "edges of a graph",
        "table": "a table of categories, with missing values or without",
        "sets": "sets of features, such as tags, baskets or symptoms",
        "records": "records of three columns, such as title, author and year",
    }
)


@dataclass(frozen=True)
class Choice:
    """A model for some data and a question about it.

    data, want : values of `--data` and `--want`; for each `data`, every `want` occurs once
    answer : what the model finds, as part of a sentence
    model : name of the model in the registry
    shards, create : arguments of `create` after the store: the pattern of shards, and options
    refit : options of `refit`
    estimator : call in Python with data in memory; empty where there is none
    guide : name of the documentation page about the model, without its suffix
    before : command that makes the shards from other files; empty if none is needed
    """

    data: str
    want: str
    answer: str
    model: str
    shards: str
    guide: str
    create: str = ""
    refit: str = ""
    estimator: str = ""
    before: str = ""

    @property
    def commands(self) -> tuple[str, ...]:
        """Commands that lead from the data to the model, as one types them."""
        every = (
            self.before,
            f"create store '{self.shards}' {self.create}".rstrip(),
            f"update store '{self.shards}'",
            f"refit store {self.refit}".rstrip(),
        )
        return tuple(f"streaming-moments {one}" for one in every if one)


_START, _KINDS = "start/first_store", "guides/kinds"
CHOICES: tuple[Choice, ...] = (
    Choice(
        data="text",
        want="topics",
        answer="topics that documents mix",
        model="topics",
        shards="documents/*.parquet",
        create="--passage-words 200",
        estimator='MomentTopics("auto")',
        guide=_START,
    ),
    Choice(
        data="text",
        want="groups",
        answer="groups of documents that differ in their words and lengths",
        model="poisson",
        shards="documents/*.parquet",
        create="--length-weights pooled",
        refit="--model poisson --topics 10",
        guide=f"{_KINDS}/index",
    ),
    Choice(
        data="text",
        want="intensities",
        answer="topics whose amounts in a document are independent",
        model="independent",
        shards="documents/*.parquet",
        create="--length-weights pooled",
        refit="--model independent --topics 10",
        guide=f"{_KINDS}/index",
    ),
    Choice(
        data="sequences",
        want="states",
        answer="hidden states and the transitions between them",
        model="hmm",
        shards="sequences/*.parquet",
        create="--kind sequences --columns steps",
        refit="--model hmm --topics 5",
        estimator="MomentHMM(5)",
        guide=f"{_KINDS}/sequences",
    ),
    Choice(
        data="vectors",
        want="clusters",
        answer="clusters of rows",
        model="gaussian_mixture",
        shards="rows/*.parquet",
        create="--kind vectors --columns embedding",
        refit="--model gaussian_mixture --components 10",
        estimator="MomentGaussianMixture(10)",
        guide=f"{_KINDS}/embeddings",
    ),
    Choice(
        data="vectors",
        want="factors",
        answer="independent factors that each row mixes",
        model="factors",
        shards="rows/*.parquet",
        create="--kind vectors --columns embedding",
        refit="--model factors --components 5",
        estimator="MomentFactors(5)",
        guide=f"{_KINDS}/embeddings",
    ),
    Choice(
        data="graph",
        want="communities",
        answer="communities of each node, and how communities connect",
        model="blockmodel",
        shards="edges/*.parquet",
        create="--kind edges --columns source,target",
        refit="--model blockmodel --topics 5",
        guide=f"{_KINDS}/graphs",
    ),
    Choice(
        data="graph",
        want="neighbours",
        answer="communities as typical neighbours of their nodes",
        model="communities",
        shards="neighbours/*.parquet",
        create="--ids-column neighbours --min-documents 1 --max-document-fraction 1",
        refit="--model communities --topics 5",
        estimator="MomentCommunities(5)",
        guide=f"{_KINDS}/graphs",
        before="neighbours 'edges/*.parquet' --output neighbours",
    ),
    Choice(
        data="table",
        want="tree",
        answer="a tree of hidden causes, which completes missing values",
        model="latent_tree",
        shards="tables/*.parquet",
        create="--categories colour,size,price",
        refit="--model latent_tree --topics 2",
        estimator="MomentLatentTree(2)",
        guide=f"{_KINDS}/tables",
    ),
    Choice(
        data="sets",
        want="classes",
        answer="classes of sets with similar features",
        model="bernoulli_mixture",
        shards="sets/*.parquet",
        create="--kind sets --columns items",
        refit="--model bernoulli_mixture --components 5",
        estimator="MomentBernoulliMixture(5)",
        guide=f"{_KINDS}/tables",
    ),
    Choice(
        data="records",
        want="classes",
        answer="hidden classes of records, from all three columns",
        model="views",
        shards="records/*.parquet",
        create="--kind views --columns title:text,author,year",
        refit="--model views --topics 5",
        estimator="MomentViews(5)",
        guide=f"{_KINDS}/tables",
    ),
)


def wants_of(data: str) -> dict[str, Choice]:
    """Return the choices for some data by the value of `--want`, the usual one first."""
    return {one.want: one for one in CHOICES if one.data == data}


def choice_of(data: str, want: str) -> Choice:
    """Return the choice for some data and a question.

    Raises InvalidInput if no model answers this question for the data; the message lists the
    questions that models answer.

    Examples
    --------
    >>> choice_of("graph", "communities").model
    'blockmodel'
    """
    found = wants_of(data)
    if want not in found:
        known = ", ".join(f"{name} ({one.answer})" for name, one in found.items())
        raise InvalidInput(f"no model finds {want!r} in {data}; give --want {known}")
    return found[want]


def page_table() -> str:
    """Return all choices as a Markdown table, for the documentation page about choosing a model."""
    head = "| your data | you want | model | `--data`, `--want` |\n| --- | --- | --- | --- |\n"
    return head + "".join(
        f"| {DATA[one.data]} | {one.answer} | `{one.model}` | `{one.data}`, `{one.want}` |\n"
        for one in CHOICES
    )
