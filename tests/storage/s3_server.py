"""An S3 server of moto on loopback, in a thread or in a separate process."""

import logging
from contextlib import contextmanager
from threading import Thread

from forking import forking

# seconds that a machine which is busy may take to import it
PATIENCE = 240


class S3Server:
    """What `moto.server.ThreadedMotoServer` is, for S3 alone.

    That one looks through the folders of all services at each request to find whose it is.
    """

    def __init__(self):
        from moto.moto_server.werkzeug_app import MotoRequestHandler, create_backend_app
        from werkzeug.serving import make_server

        app = create_backend_app("s3")
        handler = MotoRequestHandler
        self._server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=handler)
        # else stopping waits for half a second
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def start(self):
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._thread.start()

    def get_host_and_port(self):
        return self._server.server_address[:2]

    def stop(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def with_bucket(host, port, bucket, secret="testing-key"):
    """Create a bucket of a server, and return the options with which stores connect to it."""
    import boto3

    options = {"endpoint_url": f"http://{host}:{port}", "key": "testing", "secret": secret}
    boto3.client(
        "s3",
        endpoint_url=options["endpoint_url"],
        aws_access_key_id=options["key"],
        aws_secret_access_key=secret,
        region_name="us-east-1",
    ).create_bucket(Bucket=bucket)
    return options


def _serve(pipe):
    server = S3Server()
    server.start()
    pipe.send(server.get_host_and_port())
    pipe.recv()
    server.stop()


@contextmanager
def s3_process():
    """Run a server in a separate process; yields host and port."""
    context = forking()
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,))
    process.start()
    try:
        assert ours.poll(PATIENCE)
        yield ours.recv()
        ours.send("stop")
        process.join(20)
    finally:
        process.kill()
