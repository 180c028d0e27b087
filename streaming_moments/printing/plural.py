"""Plurals of nouns after a number."""


def plural(number: int, noun: str) -> str:
    """Return the form of a noun after a number.

    Examples
    --------
    >>> plural(1, "shard"), plural(0, "shard")
    ('shard', 'shards')
    """
    return noun if number == 1 else f"{noun}s"


def of_number(number: int, noun: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> of_number(1, "shard"), of_number(1200, "bad shard")
    ('1 shard', '1,200 bad shards')
    """
    return f"{number:,} {plural(number, noun)}"


def agreeing(number: int, one: str, more: str) -> str:
    """Return a number with the words that agree with it: `one` after 1, else `more`.

    Examples
    --------
    >>> agreeing(1, "row was clipped", "rows were clipped")
    '1 row was clipped'
    """
    return f"{number:,} {one if number == 1 else more}"
