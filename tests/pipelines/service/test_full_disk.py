"""An inbox on a full disk: nothing is taken, nothing is half there, and it goes on after."""

import pytest
from mounted_disks import mounted_disk


@pytest.fixture
def small_disk(tmp_path):
    with mounted_disk(tmp_path / "disk", "2m") as place:
        yield place


def test_a_full_disk_is_said_and_holds_no_half_batch(serve, small_disk):
    with serve(inbox=str(small_disk / "inbox")) as client:
        kept = [client.send([{"text": "a" * 1000}], "first").json()["receipt"]]
        sent, answer = 0, None
        while answer is None or answer.status_code == 202:
            answer = client.send([{"text": "b" * 200_000}], f"key-{sent}")
            sent += 1
            if answer.status_code == 202:
                kept.append(answer.json()["receipt"])
        assert answer.status_code == 507
        assert int(answer.headers["Retry-After"]) > 0
        assert len(kept) > 2
        inbox = client.service.current.inbox
        assert not any(file.is_partial for file in inbox.folder.files("batches"))
        assert client("GET", "/v1/status").status_code == 200
        sizes = inbox.folder.sizes("batches")
        inbox.remove([name for name, size in sizes.items() if size > 100_000][:2])
        again = client.send([{"text": "b" * 200_000}], f"key-{sent - 1}")
        assert again.status_code == 202
        for receipt in (again.json()["receipt"], kept[0]):
            assert client("GET", f"/v1/receipts/{receipt}").json()["state"] == "accepted"
