"""Plurals of nouns after a number."""


def plural(number: int, noun: str) -> str:
    """Return a noun as it stands after a number.

    Examples
    --------
    >>> plural(1, "shard"), plural(0, "shard")
    ('shard', 'shards')
    """
    return noun if number == 1 else f"{noun}s"
