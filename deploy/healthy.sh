#!/bin/sh
# Health check of a container. With HEALTH_PORT it asks the scheduler or worker of Dask at that port.
# Without it, it checks that the command line starts.
set -eu

if [ -z "${HEALTH_PORT:-}" ]; then
    exec streaming-moments --version
fi
exec python -c '
import sys, urllib.request
with urllib.request.urlopen(sys.argv[1], timeout=4) as reply:
    print(reply.read().decode())
' "http://127.0.0.1:$HEALTH_PORT/health"
