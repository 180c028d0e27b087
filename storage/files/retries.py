"""Retries: number of attempts, waits between them, and errors that are not retried.

These retries are for files that must be created exactly once even if the storage's reply is lost.
Clients of object stores also retry each request: s3fs 5 times (set by `config_kwargs` of the
storage options), gcsfs 6 times, and adlfs as Azure's client does.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

from streaming_moments.storage.lazy_libraries import tenacity

CREATE_ATTEMPTS = 4  # attempts to create a file
COMMIT_ATTEMPTS = 6  # attempts to create the file of a version
# a writer gives up after this many conflicts; in each conflict another writer succeeded
CONFLICT_ATTEMPTS = 200
DELAY = 0.05  # upper bound, in seconds, on the first random wait; the bound doubles at each attempt
_LONGEST = 2.0
_HOPELESS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM})


def retrying(
    again: Callable[[Any], bool], attempts: int = CREATE_ATTEMPTS, delay: float = DELAY
) -> tenacity.Retrying:
    """Return an object that calls a function until `again` returns False for the outcome.

    The outcome is the value that the function returns, or the error that it raises. The outcome of
    the last attempt is passed on. Waits are random and grow, up to 2 seconds.
    """

    def is_asked(state: tenacity.RetryCallState) -> bool:
        assert state.outcome is not None
        found = state.outcome
        return again(found.exception() if found.failed else found.result())

    return tenacity.Retrying(
        retry=is_asked,
        retry_error_callback=lambda state: state.outcome and state.outcome.result(),
        stop=tenacity.stop_after_attempt(attempts),
        wait=tenacity.wait_random_exponential(multiplier=delay, max=_LONGEST),
    )


def worth_another(found: object) -> bool:
    """Whether an outcome is an error worth a retry, unlike a full disk or a missing permission.

    Examples
    --------
    >>> worth_another(TimeoutError()), worth_another(OSError(errno.ENOSPC, "full"))
    (True, False)
    """
    return isinstance(found, Exception) and getattr(found, "errno", None) not in _HOPELESS
