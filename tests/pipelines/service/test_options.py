"""Every store, inbox and folder is opened with the storage options of the configuration."""

import re
from types import SimpleNamespace
from urllib.parse import urlencode

import pytest

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.service.config import night_of, service_of
from streaming_moments.pipelines.service.http import pages
from streaming_moments.pipelines.service.ingest_worker import accumulator as module
from streaming_moments.pipelines.service.ingest_worker.accumulator import Accumulator
from streaming_moments.pipelines.service.ingest_worker.deleting import Deleting
from streaming_moments.pipelines.service.ingest_worker.selecting import Compared, ask_selection
from streaming_moments.pipelines.service.ingest_worker.turns import Turn
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.inbox.deletions import Deletion
from streaming_moments.storage.inbox.expiry import Expired

OPTIONS = {"auto_mkdir": True}


@pytest.fixture(params=[OPTIONS, {}], ids=["some", "none"])
def options(request):
    """Options of a configuration."""
    return request.param


@pytest.fixture
def opened(monkeypatch):
    """Options with which folders are opened, each once."""
    found, at = [], Folder.at.__func__

    def noted(cls, url, storage_options=None):
        if storage_options not in found:
            found.append(storage_options)
        return at(cls, url, storage_options)

    monkeypatch.setattr(Folder, "at", classmethod(noted))
    return found


def test_what_accumulates_opens_all_with_the_options(archived, options, opened, monkeypatch):
    content = {"store": str(archived("night")), "storage_options": options}
    ours = Accumulator.of(service_of(content, "t"), Run("a cluster"), lambda line: None)
    assert ours._counted(SimpleNamespace()) == Turn()
    monkeypatch.setattr(Accumulator, "_sealed_and_counted", lambda self, journal: (Turn(), True))
    stores = []
    monkeypatch.setattr(
        Deleting,
        "delete",
        lambda self, *told: stores.append(self.store().folder.storage_options) or 0,
    )
    monkeypatch.setattr(module, "expire", lambda *told: Expired())
    monkeypatch.setattr(
        module,
        "compare",
        lambda store, *told: stores.append(store.folder.storage_options) or Compared(1),
    )
    ours.deletions.ask(Deletion("id", ("a",)))
    ours.look()
    ours.expire_if_due()
    ask_selection(ours.seals.inbox, 4)
    ours.compare_if_asked()
    assert opened == [options or None]
    assert ours.seals.inbox.folder.storage_options == (options or None)
    assert len(stores) == 2


def test_what_answers_opens_all_with_the_options(call_at, options, opened, tmp_path):
    with call_at("night", storage_options=options) as caller:
        assert caller.post("/v1/documents", [{"text": "a"}]).status == 202
        path = "/versions/2/rollback"
        form = dict(
            re.findall(r'type="hidden" name="(\w+)" value="(\w+)"', caller("GET", path).text)
        )
        told = {
            "content_type": "application/x-www-form-urlencoded",
            "sec_fetch_site": "same-origin",
        }
        assert caller("POST", path, [urlencode(form).encode()], **told).status == 303
        assert caller.service.current.look().store.folder.storage_options == (options or None)
        assert opened == [options or None]


def test_a_night_is_of_the_same_store_by_its_url(archived, options, opened, tmp_path):
    store, path = archived("night"), tmp_path / "night.toml"

    def written(of):
        path.write_text(
            f'store = "{of}"\nshards = "x"\noutput = "{tmp_path}/out"\nwait = "5m"\n'
            "[refit]\ntopics = 2\n[storage_options]\nauto_mkdir = false\n"
        )

    written(f"{store}/")
    rules = {"night": str(path), "refit_every": "24h"}
    config = service_of({"store": str(store), "storage_options": options, "accumulate": rules}, "t")
    night = night_of(config)
    assert (night.wait.total_seconds(), opened) == (0, [options or None])
    folder, name = pages.night_reports(SimpleNamespace(config=config))
    assert (folder.storage_options, name) == ({"auto_mkdir": False}, f"{store}/")
    written("elsewhere")
    with pytest.raises(
        InvalidInput, match=r"names the store .*elsewhere, but the service .*/store"
    ):
        night_of(config)
