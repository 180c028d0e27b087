"""Back ends of storage: one row for each, with all names of its client."""

import fsspec
import pytest

from streaming_moments.storage.files.backends import BACKENDS, backend_of

PROTOCOLS = [name for one in BACKENDS for name in sorted(one.protocols)]


def test_a_protocol_is_of_one_back_end():
    assert len(PROTOCOLS) == len(set(PROTOCOLS))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_client_of_a_protocol_has_its_row_by_any_of_its_names(protocol):
    try:
        client = fsspec.get_filesystem_class(protocol)
    except ImportError:
        pytest.skip(f"no client of {protocol} is installed")
    found = backend_of(client)
    assert protocol in found.protocols
    names = {client.protocol} if isinstance(client.protocol, str) else {*client.protocol}
    assert names <= found.protocols


def test_what_is_not_in_the_table_is_looked_at_before_it_is_created():
    assert backend_of(fsspec.get_filesystem_class("zip")).creates == "look"
