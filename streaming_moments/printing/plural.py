"""Nouns after a number, in the singular or plural."""


def plural(number: int, noun: str) -> str:
    """Return the singular or plural of a noun, as it follows a number."""
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
    """Return a number, then the words that agree with it: `one` after 1, otherwise `more`."""
    return f"{number:,} {one if number == 1 else more}"
