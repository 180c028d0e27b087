"""The tests of `make quick`, two minutes on two cores; `--wide`: those that all systems run."""

import argparse
import subprocess
import sys

# Units, laws and examples of the mathematics; formats, counting and stores; then one test of a
# cluster, and one of each door.
QUICK = [
    "tests/streaming_moments",
    "streaming_moments",
    "tests/test_contracts.py",
    "tests/storage/counting",
    "tests/storage/files",
    "tests/storage/formats",
    "tests/storage/log",
    "tests/storage/segments",
    "tests/storage/store",
    "tests/pipelines/cluster/test_cluster.py",
    "tests/pipelines/command_line/test_cli.py::test_transform_and_update_as_json",
    "tests/pipelines/interface/test_store.py::test_all_kinds_of_documents_count_the_same_and_once",
    "tests/pipelines/nightly/test_night.py::test_the_log_has_one_object_a_step_and_the_window_is_said",
    "tests/pipelines/reports/test_store_page.py::test_shards_that_are_gone_or_changed_show_nothing",
    "tests/pipelines/service/test_kinds_of_documents.py::"
    "test_documents_of_a_kind_come_by_http_and_are_counted_fitted_read_and_deleted",
]
# no campaign, no browser, no long one
WIDE = [
    "tests/streaming_moments",
    "streaming_moments",
    "tests/storage",
    "tests/formats",
    "tests/test_arguments.py",
    "tests/test_contracts.py",
    "tests/test_examples.py",
    "tests/pipelines/jobs/test_update.py",
    "tests/pipelines/command_line",
]

if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--wide", action="store_true")
    given, more = asked.parse_known_args()
    command = [sys.executable, "-m", "pytest", "-m", "not long", "--numprocesses=auto"]
    command += WIDE if given.wide else QUICK
    sys.exit(subprocess.run([*command, *more], check=False).returncode)
