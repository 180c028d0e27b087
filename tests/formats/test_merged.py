"""Stores of every kind and format that 0.2.0 wrote merge into a hub on their foundation."""

import pytest
from frozen import place_of, sums_of, unpack
from test_v0_2 import STORES

from streaming_moments.storage.merging.pulling import pull
from streaming_moments.storage.merging.shared_foundation import SharedFoundation, create_like
from streaming_moments.storage.store.store import MomentStore


@pytest.mark.parametrize("name", STORES)
def test_a_hub_holds_the_same_sums(name):
    unpack(name)
    store = MomentStore.open(f"{place_of(name)}/store")
    shared = SharedFoundation.from_bytes(SharedFoundation.of(store).to_bytes(), "words.json")
    hub = create_like(f"memory://merged-{name}", shared)
    found = pull(hub, store, "site").store
    assert sums_of(found) == sums_of(store)
    assert found.verify() == []
    assert len(found.ledger()) == len(store.ledger())
