"""The notebooks run from their first cell to their last, and show tables."""

import sys
from pathlib import Path

import nbformat
import pytest
from jupyter_client import KernelManager
from nbclient import NotebookClient

HERE = Path(__file__).parent


class _OurPython(KernelManager):
    """A kernel of the interpreter that runs the tests, whichever are installed for users."""

    def format_kernel_cmd(self, extra_arguments=None):
        command = super().format_kernel_cmd(extra_arguments)
        return [sys.executable, *command[1:]]


@pytest.mark.parametrize("name", [path.name for path in sorted(HERE.glob("*.ipynb"))])
def test_a_notebook_runs_and_shows_tables(name, tmp_path):
    notebook = nbformat.read(HERE / name, as_version=4)
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}})
    client.kernel_manager_class = _OurPython
    client.execute()
    shown = [
        output.data
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.output_type == "execute_result"
    ]
    tables = [data["text/html"] for data in shown if "text/html" in data]
    assert len(tables) == 3
    assert all("<table" in table for table in tables)
    assert "array(" not in "".join(tables)
