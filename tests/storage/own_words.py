"""Tokenisers as a user would write them, which stores import by name."""

import itertools


def by_blanks(text):
    return text.split()


def reversed_words(text):
    return [word[::-1] for word in text.split()]


def unordered(text):
    return {*text.split()}


def unlucky(text):
    return text.split() if "13" not in text else 1 / 0


def numbered(text):
    return [len(word) for word in text.split()]


def counted(text):
    return len(text)


def with_nul(text):
    return [f"{text}\0"]


def endless(text):
    yield from itertools.repeat(text)


def endless_blanks(text):
    yield from itertools.repeat("")


def huge(text):
    return [text * 10_000_000]


def pieces(text):
    return (text[at : at + size] for size in range(1, 7) for at in range(len(text) - size + 1))


def with_surrogate(text):
    return ["\ud800"]


def short_of_memory(text):
    raise MemoryError


def by_commas(text):
    return tuple(part.strip() for part in text.split(","))


for _one in (by_blanks, unlucky, numbered, counted, with_nul, with_surrogate, short_of_memory):
    _one.version = "1"
for _one in (endless, endless_blanks, huge, unordered):
    _one.version = "1"
by_commas.version = "commas 2"


def unmarked(text):
    return text.split()


class Cutter:
    version = "1"

    def __call__(self, text):
        return text.split()


instance = Cutter()

CONSTANT = 3
