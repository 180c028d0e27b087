#!/bin/sh
# The installation steps of the container image, one a call; the Containerfile runs them.
#
#   install.sh dependencies SOURCE VENV   what requirements.lock names, and nothing else
#   install.sh project SOURCE VENV        streaming-moments itself, built without a download
set -eu

step=$1 source=$2 venv=$3

case $step in
dependencies)
    # a file whose hash is not in the lock is refused; nothing is compiled
    "$venv/bin/python" -m pip install --quiet --no-deps --require-hashes --only-binary :all: \
        --requirement "$source/deploy/requirements.lock"
    "$venv/bin/python" -m pip check
    ;;
project)
    "$venv/bin/python" -m pip install --quiet --no-deps --no-build-isolation "$source"
    # the entry point starts, so every import of it is there
    "$venv/bin/streaming-moments" --version
    ;;
*)
    echo "install.sh: no step $step; the steps are dependencies and project" >&2
    exit 2
    ;;
esac
