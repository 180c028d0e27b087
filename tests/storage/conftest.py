import uuid
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
from buckets import azure, google


@pytest.fixture(params=["local", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "local":
        yield str(tmp_path)
        return
    folder = f"/{uuid.uuid4().hex}"
    yield f"memory://{folder}"
    fsspec.filesystem("memory").rm(folder, recursive=True)


@pytest.fixture(scope="session")
def gs():
    """Options of `gs://bucket`, with the proxy before it."""
    with google() as found:
        yield found


@pytest.fixture(scope="session")
def az():
    """Options of `az://bucket`, with the proxy before it."""
    with azure() as found:
        yield found
