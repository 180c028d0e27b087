"""An S3 server of moto on loopback, in a thread or in a separate process."""

import io
import socket
import sys
import traceback
from contextlib import contextmanager, suppress
from threading import Lock, Thread

from forking import forking

# seconds that a machine which is busy may take to import it
PATIENCE = 240


class S3Server:
    """What `moto.server.ThreadedMotoServer` is, for S3 alone, at a third of the processor time.

    That one looks through the folders of all services at each request to find whose it is, and
    ends each connection, so that every request begins a connection and a thread.
    """

    def __init__(self):
        from moto.moto_server.werkzeug_app import create_backend_app
        from werkzeug.serving import ThreadedWSGIServer

        app = create_backend_app("s3")
        self._server = ThreadedWSGIServer("127.0.0.1", 0, app, handler=_handler())
        self._server.connections, self._server.turn = set(), Lock()
        self._thread = Thread(target=self._serve, daemon=True)
        self._stopped = False

    def _serve(self):
        # `serve_forever` looks many times a second whether it is to stop
        while not self._stopped:
            self._server.handle_request()

    def start(self):
        self._thread.start()

    def get_host_and_port(self):
        return self._server.server_address[:2]

    def stop(self):
        self._stopped = True
        socket.create_connection(self._server.server_address).close()
        self._thread.join()
        self._server.server_close()
        for connection in list(self._server.connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def _handler():
    # moto takes seconds to import, and not all who import this serve
    from moto.moto_server.werkzeug_app import MotoRequestHandler
    from werkzeug.test import run_wsgi_app

    class Handler(MotoRequestHandler):
        """Answers one request after the other on a connection."""

        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1  # an answer is one packet

        def setup(self):
            super().setup()
            self.server.connections.add(self.connection)

        def finish(self):
            self.server.connections.discard(self.connection)
            super().finish()

        def handle_expect_100(self):
            going_on = super().handle_expect_100()
            self.wfile.flush()
            return going_on

        def run_wsgi(self):
            self.environ = environ = self.make_environ()
            # all of it: the next request comes behind
            if "chunked" in environ.get("HTTP_TRANSFER_ENCODING", ""):
                body = environ["wsgi.input"].read()
            else:
                body = self.rfile.read(int(environ.get("CONTENT_LENGTH") or 0))
            environ["wsgi.input"] = io.BytesIO(body)
            try:
                # moto looks whether an object exists, and then puts it: of two at once both would
                with self.server.turn:
                    content, status, headers = run_wsgi_app(self.server.app, environ, buffered=True)
                answer = b"".join(content)
            except Exception:
                # such as of two that change a bucket at once; clients try again
                traceback.print_exc(file=sys.stderr)
                status, headers, answer = "500 INTERNAL SERVER ERROR", [], b""
            code, _, reason = status.partition(" ")
            self.send_response(int(code), reason)
            for name, text in headers:
                self.send_header(name, text)
            if self.command != "HEAD" and "content-length" not in {
                name.lower() for name, _ in headers
            }:
                self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer)

        def log_request(self, *_):
            pass

    return Handler


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
