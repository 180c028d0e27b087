#!/bin/sh
# The installation steps of the container image; each call runs one. The Containerfile calls both.
#
#   install.sh dependencies SOURCE VENV   installs exactly the packages of requirements.lock
#   install.sh project SOURCE VENV        builds and installs streaming-moments, without a download
set -eu

step=$1 source=$2 venv=$3

case $step in
dependencies)
    # pip refuses files whose hash is not in the lock, and compiles nothing
    "$venv/bin/python" -m pip install --quiet --no-deps --require-hashes --only-binary :all: \
        --requirement "$source/deploy/requirements.lock"
    "$venv/bin/python" -m pip check
    ;;
project)
    "$venv/bin/python" -m pip install --quiet --no-deps --no-build-isolation "$source"
    # the command starts only if all its imports are installed
    "$venv/bin/streaming-moments" --version
    ;;
*)
    echo "install.sh: no step $step; the steps are dependencies and project" >&2
    exit 2
    ;;
esac
