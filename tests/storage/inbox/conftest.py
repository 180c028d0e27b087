import uuid

import boto3
import pytest
from moto.server import ThreadedMotoServer

from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.inbox.inbox import Inbox


@pytest.fixture(scope="package")
def s3():
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    options = {"endpoint_url": f"http://{host}:{port}", "key": "testing", "secret": "testing-key"}
    boto3.client(
        "s3",
        endpoint_url=options["endpoint_url"],
        aws_access_key_id="testing",
        aws_secret_access_key="testing-key",
        region_name="us-east-1",
    ).create_bucket(Bucket="bucket")
    yield options
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
