"""Documents at every numeric extreme, sent to a running service of each kind: nobody else waits.

Each hostile request is followed by an honest one. Whatever becomes of the first, no answer is a
fault of the server, the second is counted, and the first comes to an end as well.
"""

import json
import random
import time
from dataclasses import dataclass, field

import fsspec
import pytest
import requests
from command_runs import run_command
from s3_server import s3_process, with_bucket
from test_service_kills import Served

from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.inbox.set_aside import all_set_aside
from streaming_moments.storage.store.store import MomentStore

ENDED = {"counted", "refused", "set_aside", "forgotten"}
HUGE = 10**400
WORDS = ["gold", "silver", "sea", "ship", "war", "law"]


@dataclass(frozen=True)
class Hostile:
    """A kind of store: options of its `create`, pilot and honest document, and hostile requests.

    The costly requests are of the long form alone.
    """

    options: tuple
    pilot: object
    honest: dict
    requests: list = field(repr=False)
    costly: tuple = field(default=(), repr=False)


def of_ids(rng):
    most = 2**31 - 1
    documents = [
        [{"ids": [1, 2], "counts": [75_000, 75_000]}] * 30,
        [{"ids": [1], "counts": [most]}],
        [{"ids": [1], "counts": [most + 1]}],
        [{"ids": [1, 2, 3], "counts": [most, most, most]}],
        [{"ids": [1] * 32_000}] * 20,
        [{"ids": [2**63 - 1], "counts": [1]}],
        [{"ids": [2**63]}],
        [{"ids": [], "counts": []}],
        [{"ids": [1], "counts": [0]}],
        [{"ids": [-1]}],
        [{"ids": [1], "counts": [rng.randrange(5_000, 9_000)]} for _ in range(2_000)],
        [{"ids": list(range(30)), "counts": [2_000] * 30}] * 200,
    ]
    return Hostile(
        ("--ids-column", "w", "--counts-column", "n", "--max-topics", 3),
        [{"w": [rng.randrange(30) for _ in range(9)], "n": [1] * 9} for _ in range(400)],
        {"ids": [3, 4, 5]},
        documents,
    )


def of_texts(rng):
    return Hostile(
        ("--max-topics", 3, "--max-document-fraction", 1),
        [{"text": " ".join(rng.choices(WORDS, k=9))} for _ in range(400)],
        {"text": "gold silver sea"},
        [
            [{"text": "gold " * 180_000}] * 8,
            [{"text": "gold " * 165_000}] * 8,
            [{"text": "gold " * 6_500}] * 400,
            [{"text": "g" * 900_000}],
            [{"text": ""}, {"text": "\x00\x01"}, {"text": "\u200d" * 1000}],
            [{"text": " ".join(f"w{one}" for one in range(90_000))}],
            [{"text": " ".join(WORDS) * 20_000}] * 10,
        ],
    )


def of_passages(rng):
    found = of_texts(rng)
    return Hostile(
        (*found.options, "--passage-words", 200),
        *[getattr(found, name) for name in ("pilot", "honest", "requests")],
    )


def of_views(rng):
    def record(length):
        return {"a": ["x"] * length, "b": ["p"] * length, "c": ["m"] * length}

    return Hostile(
        ("--kind", "views", "--columns", "a,b,c"),
        [{"a": rng.choice("xy"), "b": rng.choice("pq"), "c": rng.choice("mn")} for _ in range(400)],
        {"a": "x", "b": "p", "c": "m"},
        [
            [record(60_000)] * 20,
            [record(10_000)] * 100,
            [record(2_500)] * 400,
            [{"a": [], "b": [], "c": []}] * 5,
            [{"a": ["x"] * 200_000, "b": [], "c": "m"}],
            [{"a": 1e308, "b": HUGE, "c": True}],
            [{"a": ["x"] * 60_000, "b": "p", "c": "m"}] * 10,
        ],
    )


def of_sequences(rng):
    return Hostile(
        ("--kind", "sequences", "--columns", "steps"),
        [{"steps": rng.choices("abc", k=30)} for _ in range(300)],
        {"steps": ["a", "b", "c", "a"]},
        [
            [{"steps": ["a"] * 200_000}] * 8,
            [{"steps": []}, {"steps": ["a"]}, {"steps": ["a", "b"]}],
            [{"steps": [HUGE]}],
            [{"steps": [1e308, -0.0, True]}],
            [{"steps": ["z" * 100_000] * 5}],
            [{"steps": [f"s{one}" for one in range(60_000)]}] * 5,
        ],
        ([{"steps": ["a"] * 200_000}] * 40,),
    )


def of_vectors(rng, *options):
    return Hostile(
        ("--kind", "vectors", "--columns", "v", *options),
        [{"v": [rng.gauss(0, 1) for _ in range(3)]} for _ in range(500)],
        {"v": [0.1, 0.2, 0.3]},
        [
            [{"v": [1e308, -1e308, 1e308]}] * 100,
            [{"v": [5e-324, 0, -0.0]}],
            [{"v": [10**300, 1, 1]}, {"v": [2**63, -(2**63), 2**64]}],
            [{"v": [HUGE, 1, 1]}],
            [{"v": [1e3, -1e3, 1e3]}] * 10_000,
            [{"v": [1, 2]}],
        ],
    )


def of_fourth(rng):
    return of_vectors(rng, "--fourth", "--sketch-columns", 3)


def of_edges(rng):
    nodes = [f"n{one}" for one in range(60)]
    return Hostile(
        ("--kind", "edges"),
        [{"source": rng.choice(nodes), "target": rng.choice(nodes)} for _ in range(900)],
        {"source": "n1", "target": "n2"},
        [
            [{"source": "n1", "target": "n1"}] * 10_000,
            [{"source": "n1", "target": "n2"}] * 10_000,
            [{"source": HUGE, "target": "n1"}],
            [{"source": "x" * 500_000, "target": "n1"}],
            [{"source": -1, "target": 2**70}],
            [{"source": f"m{one}", "target": f"k{one}"} for one in range(10_000)],
        ],
    )


def of_sets(rng):
    codes = [f"c{one}" for one in range(12)]
    return Hostile(
        ("--kind", "sets", "--columns", "codes", "--min-documents", "1"),
        [{"codes": rng.sample(codes, rng.randint(0, 6))} for _ in range(600)],
        {"codes": ["c1", "c2"]},
        [
            [{"codes": ["c1"] * 100_000}],
            [{"codes": []}] * 10_000,
            [{"codes": [HUGE, "c1"]}],
            [{"codes": codes}] * 10_000,
            [{"codes": [f"k{one}" for one in range(100_000)]}],
            [{"codes": None}, {"codes": "c1"}],
        ],
    )


KINDS = [
    of_sets,
    of_ids,
    of_texts,
    of_passages,
    of_views,
    of_sequences,
    of_vectors,
    of_fourth,
    of_edges,
]


class Caller:
    """Calls of a service in a process of its own."""

    def __init__(self, url):
        self.url, self.session = url, requests.Session()

    def send(self, documents):
        return self.session.post(
            f"{self.url}/v1/documents",
            data=json.dumps(documents),
            headers={"Content-Type": "application/json"},
            timeout=120,
        )

    def ended(self, receipt):
        """What became of a receipt, once anything has."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            told = self.session.get(f"{self.url}/v1/receipts/{receipt}", timeout=60).json()
            if told["state"] in ENDED:
                return told["state"]
            time.sleep(0.05)
        raise AssertionError(f"{told} for ever")


@pytest.mark.usefixtures("few_blocks")
@pytest.mark.parametrize("kind", KINDS)
def test_no_request_keeps_the_documents_of_others_from_being_counted(kind, tmp_path, campaigns):
    require_counted(kind, str(tmp_path / "store"), {}, tmp_path, campaigns)


@pytest.mark.usefixtures("few_blocks")
@pytest.mark.parametrize("kind", [of_ids, of_texts, of_views])
def test_nor_does_one_on_s3(kind, tmp_path, campaigns):
    if not campaigns.long:
        pytest.skip("of the long form")
    with s3_process() as (host, port):
        options = with_bucket(host, port, "hostile")
        require_counted(kind, "s3://hostile/store", options, tmp_path, campaigns)


def require_counted(kind, url, options, folder, campaigns):
    """Send hostile and honest documents to a service; fail unless all come to an end."""
    rng = random.Random(campaigns.seed)
    hostile = kind(rng)
    several = rng.sample(hostile.requests, campaigns.size(3, len(hostile.requests)))
    several += campaigns.size((), hostile.costly)
    lines = (json.dumps(one) + "\n" for one in hostile.pilot)
    pilot = f"{url}-pilot.jsonl"
    fsspec.filesystem(pilot.partition("://")[0] if "://" in pilot else "file", **options).pipe_file(
        pilot, "".join(lines).encode()
    )
    told = ["create", url, pilot, *hostile.options]
    told += ["--storage-options", json.dumps(options)] * bool(options)
    run_command(*told)
    own = "".join(f"{name} = {json.dumps(value)}\n" for name, value in options.items())
    (folder / "service.toml").write_text(
        f'store = "{url}"\n[listen]\nport = 0\n[limits]\nbody = "64MiB"\n'
        f'[accumulate]\nseal_after = "100ms"\n[storage_options]\n{own}'
    )
    honestly, taken = 0, 0
    with open(folder / "log", "w") as log:
        served = Served(folder / "service.toml", log)
        try:
            caller = Caller(served.url)
            for documents in several:
                answer = caller.send(documents)
                assert answer.status_code in (202, 400, 413, 422), answer.text
                honest = caller.send([hostile.honest])
                assert honest.status_code == 202, honest.text
                assert caller.ended(honest.json()["receipt"]) == "counted"
                honestly += 1
                if answer.status_code == 202:
                    taken += 1
                    caller.ended(answer.json()["receipt"])
            ready = requests.get(f"{served.url}/readyz", timeout=60)
            assert (ready.status_code, ready.json()["counting"]) == (200, True)
        finally:
            assert served.end() == 0
    assert "Traceback" not in (folder / "log").read_text()
    assert "tried again" not in (folder / "log").read_text()
    store = MomentStore.open(url, storage_options=options)
    assert store.commit.documents >= honestly
    assert store.verify() == []
    assert all_set_aside(Folder.at(f"{url}-inbox", options)) == ()
    note = f"{taken} requests accepted, {len(several) - taken} refused at the door"
    campaigns.record(
        f"hostile documents {kind.__name__[3:]}{' on S3' if options else ''}",
        len(several),
        honestly,
        note,
    )
