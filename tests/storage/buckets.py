"""Buckets of Google Cloud Storage and Azure on this machine, for unmodified gcsfs and adlfs.

The stand-in implements the parts of both protocols that the clients need for a folder. It puts
(with or without a condition), reads, lists and deletes whole objects, one request at a time. It
checks neither signatures nor tokens, and has no resumable uploads, block lists or pages of
listings. If the environment names an emulator, that is used instead.
"""

import asyncio
import base64
import hashlib
import json
import os
import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest.mock import patch
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from unreliable_proxy import UnreliableProxy

BUCKET = "bucket"
ACCOUNT = "devstoreaccount1"
# such as fake-gcs-server and azurite, with that bucket
GOOGLE, AZURE = "STREAMING_MOMENTS_GCS", "STREAMING_MOMENTS_AZURE"
KEY = base64.b64encode(b"of nobody").decode()


class _BriefWaits:
    """Waits of gcsfs before it tries again, a hundredth of the seconds that it would take."""

    @staticmethod
    async def sleep(seconds):
        await asyncio.sleep(seconds / 100)


@contextmanager
def google():
    """Options of gcsfs for `gs://bucket`, with the proxy before it."""
    with _served(_Google, GOOGLE) as proxy, patch("gcsfs.retry.asyncio", _BriefWaits):
        yield {"endpoint_url": proxy.url, "token": "anon", "project": "project"}, proxy


@contextmanager
def azure():
    """Options of adlfs for `az://bucket`, with the proxy before it."""
    with _served(_Azure, AZURE) as proxy:
        told = {"AccountName": ACCOUNT, "AccountKey": os.environ.get(f"{AZURE}_KEY", KEY)}
        told |= {"BlobEndpoint": f"{proxy.url}/{ACCOUNT}"}
        yield {"connection_string": ";".join("=".join(one) for one in told.items())}, proxy


@contextmanager
def _served(protocol, named):
    elsewhere = os.environ.get(named)
    server = None if elsewhere else ThreadingHTTPServer(("127.0.0.1", 0), protocol)
    if server is not None:
        server.daemon_threads, server.block_on_close = True, False
        server.objects, server.lock, server.generation = {}, threading.Lock(), 0
        threading.Thread(target=server.serve_forever, args=(0.2,), daemon=True).start()
    address = urlsplit(elsewhere).netloc.split(":") if elsewhere else server.server_address
    proxy = UnreliableProxy(address[0], int(address[1]))
    try:
        yield proxy
    finally:
        proxy.stop()
        if server is not None:
            server.shutdown()
            server.server_close()


class _Object:
    """Content stored under a name."""

    def __init__(self, content, kind, generation):
        self.content, self.kind, self.generation = content, kind, str(generation)
        self.written = datetime.now(UTC)
        self.md5 = base64.b64encode(hashlib.md5(content).digest()).decode()


class _Protocol(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 60

    def handled(self):
        url = urlsplit(self.path)
        query = {name: one[0] for name, one in parse_qs(url.query, True).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with self.server.lock:
            self.answer(url.path, query, body)

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = handled  # noqa: N815

    def put(self, name, content, kind, only_new):
        """Return the present object; None if a condition of the request fails."""
        if only_new and name in self.server.objects:
            return None
        self.server.generation += 1
        found = self.server.objects[name] = _Object(content, kind, self.server.generation)
        return found

    def listed(self, query):
        """List names of objects, and their prefixes up to the next delimiter."""
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        names, folders = [], set()
        for name in sorted(self.server.objects):
            if name.startswith(prefix):
                head, parted, _ = name[len(prefix) :].partition(delimiter or "\n")
                if parted:
                    folders.add(f"{prefix}{head}{parted}")
                else:
                    names.append(name)
        return names, sorted(folders)

    def part_of(self, found, asked, told):
        """Answer with the bytes of an object, or of a range."""
        if asked is None or not found.content:
            return self.told(200, found.content, told)
        first, _, last = asked.removeprefix("bytes=").partition("-")
        part = found.content[int(first) : int(last) + 1 if last else None]
        end = int(first) + len(part) - 1
        where = f"bytes {first}-{end}/{len(found.content)}"
        return self.told(206, part, {**told, "Content-Range": where})

    def told(self, status, content=b"", headers=None):
        self.send_response(status)
        headers = {"Content-Length": str(len(content)), **(headers or {})}
        for name, text in headers.items():
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_):
        pass


class _Google(_Protocol):
    """The JSON API of Cloud Storage, for one bucket."""

    def answer(self, path, query, body):
        objects, place = self.server.objects, f"/storage/v1/b/{BUCKET}"
        if (self.command, path) == ("POST", f"/upload{place}/o"):
            self.uploaded(query, body)
        elif (self.command, path) == ("GET", f"{place}/o"):
            names, folders = self.listed(query)
            items = [self.resource(name, objects[name]) for name in names]
            self.json(200, {"kind": "storage#objects", "items": items, "prefixes": folders})
        elif (self.command, path) == ("GET", place):
            self.json(200, {"kind": "storage#bucket", "name": BUCKET})
        else:
            name = unquote(path.partition(f"{place}/o/")[2])
            found = objects.get(name)
            if found is None:
                self.failed(404, "notFound", f"No such object: {BUCKET}/{name}")
            elif self.command == "DELETE":
                del objects[name]
                self.told(204)
            elif query.get("alt") == "media":
                told = {"Content-Type": found.kind, "X-Goog-Hash": f"md5={found.md5}"}
                self.part_of(found, self.headers.get("Range"), told)
            else:
                self.json(200, self.resource(name, found))

    def uploaded(self, query, body):
        mark = b"--" + self.headers["Content-Type"].partition("boundary=")[2].strip('"').encode()
        _, head, rest = body.split(mark, 2)
        name = json.loads(head.partition(b"\n\n")[2])["name"]
        kind, _, content = rest.rpartition(b"\n" + mark + b"--")[0].partition(b"\n\n")
        kind = kind.decode().partition(":")[2].strip()
        only_new = query.get("ifGenerationMatch") == "0"
        found = self.put(name, content, kind, only_new)
        if found is None:
            text = "At least one of the pre-conditions you specified did not hold."
            self.failed(412, "conditionNotMet", text)
        else:
            self.json(200, self.resource(name, found))

    def resource(self, name, found):
        written = found.written.isoformat().replace("+00:00", "Z")
        told = {"kind": "storage#object", "name": name, "bucket": BUCKET, "md5Hash": found.md5}
        told |= {"size": str(len(found.content)), "generation": found.generation}
        return told | {"contentType": found.kind, "timeCreated": written, "updated": written}

    def failed(self, status, reason, text):
        error = {"message": text, "domain": "global", "reason": reason}
        self.json(status, {"error": {"code": status, "message": text, "errors": [error]}})

    def json(self, status, content):
        self.told(status, json.dumps(content).encode(), {"Content-Type": "application/json"})


class _Azure(_Protocol):
    """The REST API of Azure's blobs, for one container."""

    def answer(self, path, query, body):
        objects, place = self.server.objects, f"/{ACCOUNT}/{BUCKET}"
        name = unquote(path.removeprefix(place).strip("/"))
        found = objects.get(name)
        if query.get("comp") == "list":
            self.told(200, self.page(query).encode(), {"Content-Type": "application/xml"})
        elif query.get("restype") == "container":
            written = format_datetime(datetime.now(UTC), True)
            self.told(200, b"", {"ETag": '"1"', "Last-Modified": written})
        elif self.command == "PUT":
            only_new = self.headers.get("If-None-Match") == "*"
            kind = self.headers.get("x-ms-blob-content-type", "application/octet-stream")
            found = self.put(name, body, kind, only_new)
            if found is None:
                self.failed(409, "BlobAlreadyExists")
            else:
                self.told(201, b"", self.properties(found))
        elif found is None:
            self.failed(404, "BlobNotFound")
        elif self.command == "DELETE":
            del objects[name]
            self.told(202)
        elif self.command == "HEAD":
            told = {"Content-Length": str(len(found.content)), "Content-Type": found.kind}
            self.told(200, b"", self.properties(found) | told)
        else:
            asked = self.headers.get("x-ms-range") or self.headers.get("Range")
            self.part_of(found, asked, self.properties(found))

    def properties(self, found):
        written = format_datetime(found.written, True)
        told = {"ETag": f'"0x{found.generation}"', "Last-Modified": written}
        return told | {"x-ms-blob-type": "BlockBlob", "x-ms-creation-time": written}

    def page(self, query):
        names, folders = self.listed(query)
        blobs = []
        for name in names:
            found = self.server.objects[name]
            told = {"Last-Modified": format_datetime(found.written, True)}
            told |= {"Etag": f"0x{found.generation}", "Content-Length": len(found.content)}
            told |= {"Content-Type": found.kind, "BlobType": "BlockBlob", "Content-MD5": found.md5}
            inner = "".join(f"<{key}>{text}</{key}>" for key, text in told.items())
            blobs.append(
                f"<Blob><Name>{escape(name)}</Name><Properties>{inner}</Properties></Blob>"
            )
        prefixes = [f"<BlobPrefix><Name>{escape(one)}</Name></BlobPrefix>" for one in folders]
        inner = "".join([*blobs, *prefixes])
        return (
            f'<?xml version="1.0" encoding="utf-8"?><EnumerationResults ContainerName="{BUCKET}">'
            f"<Blobs>{inner}</Blobs><NextMarker/></EnumerationResults>"
        )

    def failed(self, status, code):
        text = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>"
        told = {"Content-Type": "application/xml", "x-ms-error-code": code}
        self.told(status, text.encode(), told)
