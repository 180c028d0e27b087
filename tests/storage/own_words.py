"""Tokenisers as a user would write them, which stores import by name."""

__version__ = "1"


def by_blanks(text):
    return text.split()


def unlucky(text):
    return text.split() if "13" not in text else 1 / 0


def numbered(text):
    return [len(word) for word in text.split()]


def counted(text):
    return len(text)


def with_nul(text):
    return [f"{text}\0"]


def by_commas(text):
    return tuple(part.strip() for part in text.split(","))


by_commas.version = "commas 2"

CONSTANT = 3
