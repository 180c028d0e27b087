"""Processes forked from one that has imported everything: they begin in no time, and truly race."""

import multiprocessing
import os
from multiprocessing import forkserver
from pathlib import Path

import pytest

# whoever asks first starts the one server of a process, so that all ask for the same
_IMPORTED = [
    "__main__",
    "distributed",
    "s3fs",
    "scipy.sparse",
    "scipy.special",
    "zarr",
    *(
        f"streaming_moments.{name}"
        for name in (
            "pipelines.command_line.entry",
            "pipelines.command_line.expiry",
            "pipelines.command_line.growth",
            "pipelines.command_line.night",
            "pipelines.command_line.polishing",
            "pipelines.gathering.groups",
            "pipelines.nightly.judging",
            "pipelines.command_line.service.serving",
            "pipelines.service.accumulating.accumulator",
            "pipelines.service.http.app",
            "pipelines.service.http.serving",
            "testing.small_store",
        )
    ),
    "warm_kernels",
]


def forking():
    """A multiprocessing context."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED)
    paths = (str(Path(__file__).parent), os.environ.get("PYTHONPATH", ""))
    with pytest.MonkeyPatch.context() as patch:
        # before Python 3.13 it knows no paths but these and those of the installation
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        forkserver.ensure_running()
    return context
