"""Retries: how often a storage is asked again, after which waits, and after which errors never.

These are of files that must be created once, where a reply may be lost. Each request of an object
store is besides tried again by its client: 5 times by s3fs (`config_kwargs` of the storage options
tell botocore), 6 times by gcsfs, and by adlfs as Azure's client does.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from streaming_moments.lazy_imports import LazyModule

if TYPE_CHECKING:
    import tenacity
else:
    tenacity = LazyModule("tenacity")

CREATE_ATTEMPTS = 4  # of a file
COMMIT_ATTEMPTS = 6  # of the file of a version
CONFLICT_ATTEMPTS = 200  # each is another writer's success, so this bounds the queue, not the work
DELAY = 0.05  # seconds: scale of the waits
_LONGEST = 2.0
_HOPELESS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM})


def retrying(
    again: Callable[[Any], bool], attempts: int = CREATE_ATTEMPTS, delay: float = DELAY
) -> tenacity.Retrying:
    """Calls a function until `again` denies it of what was returned or raised, `attempts` times.

    The last outcome is returned or raised. Waits between are random and grow, up to 2 seconds.
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
    """Whether an outcome is an error that may pass; a full disk or a missing permission does not.

    Examples
    --------
    >>> worth_another(TimeoutError()), worth_another(OSError(errno.ENOSPC, "full"))
    (True, False)
    """
    return isinstance(found, Exception) and getattr(found, "errno", None) not in _HOPELESS
