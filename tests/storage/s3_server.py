"""An S3 server of moto on loopback, in a thread or in a separate process."""

import socket
from contextlib import closing, contextmanager, suppress
from io import BytesIO
from threading import Lock, Thread

import lighter_s3  # noqa: F401
from forking import forking

# seconds that a machine which is busy may take to import it
PATIENCE = 240


class S3Server:
    """What `moto.server.ThreadedMotoServer` is, for S3 alone, and with connections that are kept.

    That one looks through the folders of all services at each request to find whose it is, closes
    the connection after it and waits for 10 ms for more of it: half of the time of a request.
    Its buckets are named by paths alone.
    """

    def __init__(self):
        from moto import settings
        from moto.core import responses
        from moto.moto_server.werkzeug_app import create_backend_app
        from werkzeug.serving import make_server

        # an id of 52 letters, each drawn; and whether a bucket is named by the host, five times
        responses.gen_amzn_requestid_long = lambda headers: "tests"
        settings.S3_IGNORE_SUBDOMAIN_BUCKETNAME = True
        app, handler = create_backend_app("s3"), _kept_connection()
        # what pages of other origins, and forms that are debugged, are told with each answer
        app.after_request_funcs.clear()
        app.debug = False
        self._server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=handler)
        self._server.connections, self._server.turn = set(), Lock()
        # else stopping waits for half a second
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def start(self):
        self._thread.start()

    def get_host_and_port(self):
        return self._server.server_address[:2]

    def stop(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        for connection in list(self._server.connections):
            with suppress(OSError):  # its client was faster
                connection.shutdown(socket.SHUT_RDWR)


def _kept_connection():
    """Handler of a connection that answers requests until the client closes it."""
    from moto.moto_server.werkzeug_app import MotoRequestHandler
    from werkzeug.exceptions import InternalServerError

    class KeptConnection(MotoRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1  # an answer is sent at once

        def setup(self):
            super().setup()
            self.server.connections.add(self.connection)

        def finish(self):
            self.server.connections.discard(self.connection)
            super().finish()

        def handle_expect_100(self):
            super().handle_expect_100()
            self.wfile.flush()
            return True

        def run_wsgi(self):
            self.environ = self.make_environ()
            # all of it, else the rest were taken for the next request
            whole = self.environ.get("wsgi.input_terminated")
            size = -1 if whole else int(self.headers.get("Content-Length") or 0)
            self.environ["wsgi.input"] = BytesIO(self.environ["wsgi.input"].read(size))
            try:
                self.answer(self.server.app)
            except Exception:
                self.answer(InternalServerError())

        def answer(self, app):
            told = []
            # moto looks whether an object exists, and then puts it: of two at once both would
            with (
                self.server.turn,
                closing(app(self.environ, lambda *head: told.append(head))) as parts,
            ):
                content = b"".join(parts)
            [(status, headers, *_)] = told
            code, _, reason = status.partition(" ")
            self.send_response(int(code), reason)
            for name, text in headers:
                self.send_header(name, text)
            bodiless = self.command == "HEAD" or code in ("204", "304")
            if not bodiless and "content-length" not in {name.lower() for name, _ in headers}:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_request(self, *_):
            pass

    return KeptConnection


def with_bucket(host, port, bucket, secret="testing-key"):
    """Create a bucket of a server, and return the options with which stores connect to it."""
    options = {"endpoint_url": f"http://{host}:{port}", "key": "testing", "secret": secret}
    client_with_bucket(options["endpoint_url"], bucket, "testing", secret)
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


def client_with_bucket(server, bucket, key, secret):
    """Client of a server, on which the bucket is made."""
    import boto3

    keys = {"aws_access_key_id": key, "aws_secret_access_key": secret}
    client = boto3.client("s3", endpoint_url=server, region_name="us-east-1", **keys)
    client.create_bucket(Bucket=bucket)
    return client
