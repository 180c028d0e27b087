"""An S3 server of a made-up bucket, which answers listings alone."""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

_PAGE = 1000  # objects an answer, as S3 gives
_FOLDER = 1000  # objects
_DATE = "2026-01-01T00:00:00.000Z"


def main(objects: int) -> None:
    """Serve a bucket of so many objects; the first line printed is the port."""
    handler = type("Handler", (_Listing,), {"objects": objects})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        print(server.server_port, flush=True)
        server.serve_forever()


def key_of(place: int) -> str:
    """Name of an object in the bucket."""
    return f"corpus/2026/{place // _FOLDER:06d}/part-{place:09d}.jsonl.gz"


class _Listing(BaseHTTPRequestHandler):
    objects: int
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        begin = int(query.get("continuation-token", ["0"])[0])
        end = min(begin + _PAGE, self.objects)
        if "prefix" in query and not key_of(0).startswith(query["prefix"][0]):
            begin = end = self.objects
        contents = "".join(
            f"<Contents><Key>{key_of(i)}</Key><LastModified>{_DATE}</LastModified>"
            f"<ETag>&quot;{i:032x}&quot;</ETag><Size>{1000 + i}</Size>"
            "<StorageClass>STANDARD</StorageClass></Contents>"
            for i in range(begin, end)
        )
        more = end < self.objects
        self._answer(
            '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult '
            'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>bucket</Name><Prefix></Prefix>'
            f"<KeyCount>{end - begin}</KeyCount><MaxKeys>{_PAGE}</MaxKeys>"
            f"<IsTruncated>{str(more).lower()}</IsTruncated>"
            + (f"<NextContinuationToken>{end}</NextContinuationToken>" if more else "")
            + f"{contents}</ListBucketResult>"
        )

    def do_HEAD(self) -> None:
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def _answer(self, text: str) -> None:
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    main(int(sys.argv[1]))
