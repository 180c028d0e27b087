"""What counts: turns under the lock of the store, and the process they are taken in."""
