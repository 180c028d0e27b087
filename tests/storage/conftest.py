import uuid
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest


@pytest.fixture(params=["local", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "local":
        yield str(tmp_path)
        return
    folder = f"/{uuid.uuid4().hex}"
    yield f"memory://{folder}"
    fsspec.filesystem("memory").rm(folder, recursive=True)
