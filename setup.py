"""Where the packages lie: storage and pipelines beside streaming_moments, whose parts they are."""

from setuptools import find_namespace_packages, setup

PARTS = ("storage", "pipelines")


def found(folder):
    """A folder and those within it, templates among them."""
    here = find_namespace_packages(".", include=[folder, f"{folder}.*"])
    return [name for name in here if "__pycache__" not in name]


setup(
    package_dir={f"streaming_moments.{part}": part for part in PARTS},
    packages=[
        *found("streaming_moments"),
        *(f"streaming_moments.{name}" for part in PARTS for name in found(part)),
    ],
)
