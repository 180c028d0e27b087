"""The accumulator: cycles under the lock of the store, and the process that runs them."""
