import uuid

import pytest
from s3_server import S3Server, with_bucket

from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.inbox.inbox import Inbox


@pytest.fixture(scope="package")
def s3():
    server = S3Server()
    server.start()
    host, port = server.get_host_and_port()
    yield with_bucket(host, port, "bucket")
    server.stop()


@pytest.fixture(params=["local", "memory", "s3", "gs", "az"])
def folder(request, tmp_path):
    if request.param == "local":
        return Folder.at(str(tmp_path / "inbox"))
    if request.param == "memory":
        return Folder.at(f"memory://{uuid.uuid4().hex}")
    options = request.getfixturevalue(request.param)
    options = options if request.param == "s3" else options[0]
    return Folder.at(f"{request.param}://bucket/{uuid.uuid4().hex}", options)


@pytest.fixture
def inbox(folder):
    return Inbox.open(folder.url, folder.storage_options)
