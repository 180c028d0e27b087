#!/bin/sh
# The nightly job for schedulers that accept only 0 as success: turns 10 (no new shards) into 0.
set -eu

code=0
streaming-moments nightly "${1:-/etc/streaming-moments/nightly.toml}" --json || code=$?
if [ "$code" -eq 10 ]; then
    echo "nothing new" >&2
    exit 0
fi
exit "$code"
