"""Numba kernels that count the words of UTF-8 texts, serially and without the interpreter lock.

Texts must be valid UTF-8. A table has a 64-bit entry for each code point, its *symbol*:

====== ============================================================================
0-31   UTF-8 of its folded form, the first byte lowest; 0 if no word contains it
32-34  number of these bytes, at most 4
40     may begin a word: a letter
41     hard: folded and normalised only together with its neighbours
42     NFC may join it to a starter before it
43     a starter to which NFC may join the next code point
48-55  canonical combining class
====== ============================================================================

A *spelled* text is a buffer with the folded words of a text, and a zero byte after each word. A
word is compared as one or more *lanes* of 8 bytes in little-endian order, the last one padded with
zeros. Two words are equal if their lanes are. Most words have one lane, which is found, hashed and
compared as one number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.numerics.kernel import kernel
from streaming_moments.numerics.read_only import read_only

SIZE_AT, CLASS_AT = 32, 48
BEGINS, HARD, JOINS, JOINED = (1 << bit for bit in range(40, 44))

_BYTES, _SIZE, _CLASS = (np.uint64(mask) for mask in ((1 << 32) - 1, 7, 255))
_SIZE_AT, _CLASS_AT = np.uint64(SIZE_AT), np.uint64(CLASS_AT)
_BEGINS, _HARD, _JOINS, _JOINED = (np.uint64(flag) for flag in (BEGINS, HARD, JOINS, JOINED))
_NONE, _ONE, _TWO, _THREE, _SIX, _SEVEN, _HALF, _TOP, _TOP_SIX, _LAST = (
    np.uint64(number) for number in (0, 1, 2, 3, 6, 7, 32, 56, 58, 63)
)
# Flags of a key, which stands for one or more words. LEADS: a phrase begins with these words.
# PHRASE: the words are a phrase. STOPS: the word is a stop word.
LEADS, PHRASE, STOPS = 1, 2, 4
_ODD = np.uint64(0x9E3779B97F4A7C15)
# Constants for the eight bytes of an integer: a 1 in each byte; the top bit of each byte; and the
# index of each byte, from 0 in the highest byte to 7 in the lowest.
_ONES, _TOPS, _NUMBERS = (
    np.uint64(lane) for lane in (0x0101010101010101, 0x8080808080808080, 0x0001020304050607)
)
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_PLACES = np.argsort([(0x03F79D71B4CB0A89 << place) % (1 << 64) >> 58 for place in range(64)])


@kernel(inline="always")
def _point(data: NDArray[np.uint8], at: int) -> tuple[np.uint64, int]:
    # Returns the code point of at least two bytes at `at`, and the place of the next one. Indices
    # here and below are unsigned, because for a signed index Numba first checks whether it is
    # negative.
    place = np.uint64(at)
    lead = np.uint64(data[place])
    one = np.uint64(data[place + _ONE]) & _LAST
    if lead < 0xE0:
        return (lead & np.uint64(31)) << _SIX | one, at + 2
    two = np.uint64(data[place + _TWO]) & _LAST
    point = (lead & np.uint64(15)) << _SIX | one
    if lead < 0xF0:
        return point << _SIX | two, at + 3
    three = np.uint64(data[place + _THREE]) & _LAST
    return ((point & np.uint64(0x1FF)) << _SIX | two) << _SIX | three, at + 4


def spell(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], symbols: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.bool_]]:
    """Spell each text: write `"".join(word + NUL for word in words(text))` into lanes.

    Returns the spelled texts, the (documents + 1,) positions of their first bytes, and a
    (documents,) mask of hard texts. A hard text is not spelled here, because it must be folded as a
    whole. All other texts are folded code point by code point. That is correct under three
    conditions: each code point is in form NFC before and after it is folded; marks are in canonical
    order; and NFC could join no code point to the starter before it.
    """
    # a code point beyond ASCII may fold to twice as many bytes; the last lanes are padding, because
    # kernels read 8 bytes at a time
    most = 2 * int(offsets[-1] - offsets[0]) + offsets.size
    lanes = np.empty(most // 8 + 4, dtype=np.uint64)
    begins = np.zeros(offsets.size, dtype=np.int64)
    hard = np.zeros(offsets.size - 1, dtype=np.bool_)
    _spell(read_only(data), read_only(offsets), symbols, lanes.view(np.uint8), begins, hard)
    return lanes, begins, hard


@kernel()
def _spell(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    symbols: NDArray[np.uint64],
    spelled: NDArray[np.uint8],
    begins: NDArray[np.int64],
    hard: NDArray[np.bool_],
) -> None:
    # A document in ASCII never has to be folded as a whole. To be fast, its bytes are read one by
    # one without a branch that depends on them.
    place = np.int64(0)
    for document in range(hard.size):
        at = offsets[document]
        last = np.uint8(0)
        starter = _NONE
        before = _NONE
        while at < offsets[document + 1]:
            octet = data[np.uint64(at)]
            if octet < 128:
                octet = np.uint8(symbols[octet] & _CLASS)
                spelled[np.uint64(place)] = octet
                place += np.int64((octet | last) != 0)
                last = octet
                at += 1
                continue
            point, after = _point(data, at)
            symbol = symbols[point]
            rank = symbol >> _CLASS_AT
            if symbol >= _HARD:
                if at > offsets[document] and data[np.uint64(at - 1)] < 128:
                    starter = symbols[data[np.uint64(at - 1)]]
                    before = _NONE
                unsorted = rank != _NONE and rank < before
                if symbol & _HARD or unsorted or (symbol & _JOINS and starter & _JOINED):
                    hard[document] = True
                    break
            if rank == _NONE:
                starter = symbol
            before = rank
            at = after
            if symbol & _BEGINS or (symbol & _BYTES and last):
                last = np.uint8(1)
                for more in range(4):
                    part = np.uint8(symbol >> np.uint64(8 * more) & _CLASS)
                    spelled[np.uint64(place + more)] = part
                place += np.int64(symbol >> _SIZE_AT & _SIZE)
            else:
                spelled[np.uint64(place)] = 0
                place += np.int64(last != 0)
                last = np.uint8(0)
        if last and not hard[document]:
            spelled[np.uint64(place)] = 0
            place += 1
        if hard[document]:
            place = begins[document]
        begins[document + 1] = place


@kernel(inline="always")
def _find(
    lanes: NDArray[np.uint64],
    used: Any,
    slots: NDArray[np.uint64],
    pool: NDArray[np.uint64],
    starts: NDArray[np.int64],
) -> tuple[np.int64, np.int64]:
    # Returns the key of a word, or -1 if the table lacks it, and the slot that has the word, or the
    # free slot for it. The search begins at the slot that the hash of the word gives.
    mixed = _NONE
    for number in range(used):
        mixed = (mixed ^ lanes[number]) * _ODD
        mixed ^= mixed >> _HALF
    slot = np.int64(mixed & np.uint64(slots.shape[0] - 1))
    while slots[slot, 0] != _NONE:
        if slots[slot, 0] == lanes[0] and np.int64(slots[slot, 1] >> _HALF) == used:
            key = np.int64(slots[slot, 1] & _BYTES)
            lane = 1
            while lane < used and pool[starts[key] + lane] == lanes[lane]:
                lane += 1
            if lane == used:
                return key, slot
        slot = (slot + 1) & (slots.shape[0] - 1)
    return np.int64(-1), slot


def index_keys(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], slots: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Make a hash table of words: `{key: last for last, key in enumerate(keys)}`.

    Uses open addressing with linear probing. Fills `slots`, (2^b, 2) zeros with more rows than
    keys. The row of a word gets the first lane of the word, and `number of lanes << 32 | number of
    the key`. Returns all lanes and the (keys + 1,) place of the first lane of each key. An empty
    key, or one with a NUL, is not a word and is skipped.
    """
    starts = np.zeros(offsets.size, dtype=np.int64)
    np.cumsum((np.diff(offsets) + 7) // 8, out=starts[1:])
    pool = np.zeros(starts[-1], dtype=np.uint64)
    _index_keys(read_only(data), read_only(offsets), slots, pool, starts)
    return pool, starts


@kernel()
def _index_keys(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    slots: NDArray[np.uint64],
    pool: NDArray[np.uint64],
    starts: NDArray[np.int64],
) -> None:
    for key in range(offsets.size - 2, -1, -1):
        size = offsets[key + 1] - offsets[key]
        lanes = pool[starts[key] : starts[key + 1]]
        word = size > 0
        for place in range(size):
            byte = data[offsets[key] + place]
            word = word and byte != 0
            lanes[place // 8] |= np.uint64(byte) << np.uint64(place % 8 * 8)
        if word:
            found, slot = _find(lanes, lanes.size, slots, pool, starts)
            if found < 0:
                slots[slot, 0] = lanes[0]
                slots[slot, 1] = np.uint64(lanes.size) << _HALF | np.uint64(key)


@kernel(inline="always")
def _step(steps: NDArray[np.uint64], before: np.int64, key: np.int64) -> np.int64:
    # Returns the key of several words: those of the key `before`, and then that of `key`; or -1.
    pair = (np.uint64(before) << _HALF | np.uint64(key)) + _ONE
    slot = np.int64(pair * _ODD >> _HALF & np.uint64(steps.shape[0] - 1))
    while steps[slot, 0] != _NONE:
        if steps[slot, 0] == pair:
            return np.int64(steps[slot, 1])
        slot = (slot + 1) & (steps.shape[0] - 1)
    return np.int64(-1)


@kernel(inline="always")
def _take_back(key: np.int64, tally: NDArray[np.int32], marks: NDArray[np.uint8]) -> np.int64:
    # Takes back the count of a word that is part of a phrase. Returns 1 if the word was counted as
    # one outside of the vocabulary.
    if key < tally.size:
        tally[key] -= 1
        return np.int64(0)
    return np.int64(0) if marks[key] & STOPS else np.int64(1)


def index_steps(ends: NDArray[np.uint64], steps: NDArray[np.uint64]) -> None:
    """Fill the hash table `steps`, (2^b, 2) zeros with more rows than `ends`, from `ends`.

    A row of `ends` has three keys: that of one or more words, that of the next word, and that of
    all these words together.
    """
    for before, key, after in ends.tolist():
        pair = (before << 32 | key) + 1
        slot = (pair * int(_ODD) >> 32) & (len(steps) - 1)
        while steps[slot, 0]:
            slot = (slot + 1) & (len(steps) - 1)
        steps[slot] = pair, after


def count_words(
    spelled: NDArray[np.uint64],
    begins: NDArray[np.int64],
    folded: NDArray[np.uint64],
    folded_begins: NDArray[np.int64],
    places: NDArray[np.int64],
    slots: NDArray[np.uint64],
    pool: NDArray[np.uint64],
    starts: NDArray[np.int64],
    longest: int,
    n_words: int,
    min_length: int,
    passage_words: int,
    steps: NDArray[np.uint64],
    marks: NDArray[np.uint8] | None,
) -> tuple[
    NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]
]:
    """Count the words of each passage of some texts, as a canonical CSR matrix.

    The result is that of `[Counter(p) for text in texts for p in policy.passages(text)]`. `places`
    has the index of a document in `folded`, or -1 if it is in `spelled`. Keys below `n_words` are
    rows of the vocabulary, and others are stop words. `longest` is the largest number of lanes of a
    key. Passages have `passage_words` words; -1 makes each document one passage. Returns indptr,
    words, counts, the number of tokens outside of the vocabulary from the first passage to the end
    of each (shaped like indptr), and the number of passages of each text.

    If there are phrases, `marks` has a row for each key that is not a stop word, keys from
    `n_words` on are outside of the vocabulary, and `index_steps` has filled `steps`. Without
    phrases, give `marks=None`; Numba then compiles a kernel without the code for phrases.

    The arrays of the result are doubled when they are full, because the largest size that they
    could need is far too large. This is done outside of the kernel: a loop that may replace an
    array counts references to it in each iteration, and takes four times as long.
    """
    spans = np.stack([begins[:-1], begins[1:]], axis=1)
    hard = places >= 0
    if hard.any():
        spans[hard] = np.stack([folded_begins[:-1], folded_begins[1:]], axis=1)[places[hard]]
        spans[hard] += spelled.nbytes
        spelled = np.concatenate([spelled, folded])
    tally = np.zeros(n_words, dtype=np.int32)
    groups = np.zeros((n_words >> 6) + 1, dtype=np.uint64)
    blocks = np.zeros((n_words >> 12) + 1, dtype=np.uint64)
    lanes = np.zeros(longest, dtype=np.uint64)
    ends = np.zeros(begins.size, dtype=np.int64)
    missed = np.zeros(begins.size, dtype=np.int64)
    words = np.empty(1024, dtype=np.int32)
    counts = np.empty(1024, dtype=np.int32)
    state = np.zeros(4, dtype=np.int64)
    cut = np.empty(len(spans), dtype=np.int64)
    while most := _count_documents(
        spelled,
        spans,
        slots,
        pool,
        starts,
        min_length,
        passage_words,
        lanes,
        tally,
        groups,
        blocks,
        ends,
        missed,
        words,
        counts,
        state,
        cut,
        steps,
        marks,
    ):
        passages, filled = int(state[0]), int(state[1])
        ends, missed = _grown(ends, passages + most + 1), _grown(missed, passages + most + 1)
        words, counts = _grown(words, filled + most), _grown(counts, filled + most)
    passages, filled = int(state[0]), int(state[1])
    ended, outside = ends[: passages + 1].copy(), missed[: passages + 1].copy()
    return ended, words[:filled].copy(), counts[:filled].copy(), outside, cut


def _grown(array: NDArray[Any], needed: int) -> NDArray[Any]:
    if needed <= array.size:
        return array
    larger = np.empty(max(needed, 2 * array.size), dtype=array.dtype)
    larger[: array.size] = array
    return larger


@kernel(inline="always")
def _lane(spelled: NDArray[np.uint64], at: np.int64) -> Any:
    # Returns the 8 bytes that begin at any place; they are parts of two aligned lanes. The second
    # lane is shifted in two steps, because a shift by 64 is undefined.
    shift = np.uint64(at & 7) << np.uint64(3)
    index = np.uint64(at >> 3)
    return spelled[index] >> shift | spelled[index + _ONE] << _ONE << (_LAST - shift)


@kernel(inline="always")
def _lowest(bits: np.uint64) -> Any:
    # Returns the place of the lowest 1 in `bits`. The product of this bit and a de Bruijn number
    # has top bits that are different for each place.
    return _PLACES[(bits & (~bits + _ONE)) * _DE_BRUIJN >> _TOP_SIX]


@kernel()
def _count_documents(
    spelled: NDArray[np.uint64],
    spans: NDArray[np.int64],
    slots: NDArray[np.uint64],
    pool: NDArray[np.uint64],
    starts: NDArray[np.int64],
    min_length: int,
    passage_words: int,
    lanes: NDArray[np.uint64],
    tally: NDArray[np.int32],
    groups: NDArray[np.uint64],
    blocks: NDArray[np.uint64],
    ends: NDArray[np.int64],
    missed: NDArray[np.int64],
    words: NDArray[np.int32],
    counts: NDArray[np.int32],
    state: NDArray[np.int64],
    cut: NDArray[np.int64],
    steps: NDArray[np.uint64],
    marks: NDArray[np.uint8] | None,
) -> int:
    # Counts documents, beginning with the one whose number is in `state`, as long as the next
    # document fits into the arrays. Returns how many entries the next document needs, or 0 after
    # the last document.
    passages, filled, outside, document = state[0], state[1], state[2], state[3]
    longest = lanes.size
    needed = 0
    # If a phrase may continue with the next word, `single` is the key of the previous word, and
    # `double` the key of the previous two words; otherwise they are -1. `first` and `second` are
    # the keys of the two words of `double` if these were counted separately.
    single, double, first, second = np.int64(-1), np.int64(-1), np.int64(-1), np.int64(-1)
    while document < cut.size:
        at, stop = spans[document, 0], spans[document, 1]
        most = (stop - at) // 2 + 1
        if passages + most >= ends.size or filled + most > words.size:
            needed = most
            break
        before = passages
        found = 0
        while True:
            if at >= stop or found == passage_words:
                # Write the counts of the passage, sorted by row, and set its tally to 0. Each row
                # has a bit in a group of rows, and each group that is not empty has a bit in a
                # block. To read these bits in order is faster than sorting, and a short passage
                # touches few of them.
                for block in range(blocks.size):
                    left = blocks[block]
                    blocks[block] = _NONE
                    while left:
                        group = block << 6 | np.int64(_lowest(left))
                        left &= left - _ONE
                        bits = groups[group]
                        groups[group] = _NONE
                        while bits:
                            row = group << 6 | np.int64(_lowest(bits))
                            bits &= bits - _ONE
                            words[filled] = row
                            counts[filled] = tally[row]
                            if marks is None:
                                filled += 1
                            else:  # leave out a word that occurred only in phrases
                                filled += np.int64(tally[row] != 0)
                            tally[row] = 0
                passages += 1
                ends[passages] = filled
                missed[passages] = outside
                found = 0
                single = double = np.int64(-1)
                if at >= stop:
                    break
            # A word ends before the first zero byte. Test all 8 bytes of a lane at once: the
            # processor cannot predict where a loop over bytes ends, which costs more time than the
            # test.
            begin = at
            tails = np.int64(0)
            used = np.int64(0)
            while True:
                lane = _lane(spelled, at)
                zero = (lane - _ONES) & ~lane & _TOPS
                if zero:
                    after = (zero & (~zero + _ONE)) >> _SEVEN
                    lane &= after - _ONE
                    at += np.int64(after * _NUMBERS >> _TOP)
                else:
                    at += 8
                tails += np.int64((lane >> _SEVEN & ~(lane >> _SIX) & _ONES) * _ONES >> _TOP)
                if used < longest:
                    lanes[used] = lane
                used += np.int64(lane != 0)
                if zero:
                    break
            points = at - begin - tails
            at += 1
            found += 1
            if points < min_length:
                single = double = np.int64(-1)
                continue
            key = np.int64(-1)
            if used <= longest:
                key, _ = _find(lanes, used, slots, pool, starts)
            if marks is not None:
                # Count each word as soon as it is found. If a phrase turns out to be there,
                # subtract the counts of its words again. Most words are in no phrase, and for these
                # only the marks of one key are read.
                node = np.int64(-1)
                if 0 <= key < marks.size:
                    if double >= 0:
                        node = _step(steps, double, key)
                        if node >= 0:
                            if marks[double] & PHRASE:
                                outside -= _take_back(double, tally, marks)
                            else:
                                outside -= _take_back(first, tally, marks)
                                outside -= _take_back(second, tally, marks)
                            key = node
                            single = double = np.int64(-1)
                        else:
                            double = np.int64(-1)
                    if node < 0:
                        if single >= 0:
                            node = _step(steps, single, key)
                        before_word = single
                        single = key if marks[key] & LEADS else np.int64(-1)
                        if node >= 0:
                            if marks[node] & PHRASE:
                                outside -= _take_back(before_word, tally, marks)
                                key = node
                                single = np.int64(-1)
                                if marks[node] & LEADS:
                                    double = node
                            else:
                                double, first, second = node, before_word, key
                    if key >= tally.size and not marks[key] & STOPS:
                        outside += 1
                else:
                    single = double = np.int64(-1)
            if key < 0:
                outside += 1
            elif key < tally.size:
                tally[key] += 1
                own = np.uint64(key) >> _SIX
                groups[own] |= _ONE << (np.uint64(key) & _LAST)
                blocks[own >> _SIX] |= _ONE << (own & _LAST)
        cut[document] = passages - before
        document += 1
    state[0] = passages
    state[1] = filled
    state[2] = outside
    state[3] = document
    return needed
