# SPDX-License-Identifier: Apache-2.0
"""What argusd pushes by remote write, read, and a receiver that refuses what Prometheus refuses.

    with Receiver() as other:
        other.answer = taken = Taken()
        taken.pages             those that were taken, oldest first: Page(ms, samples)
"""

import struct
import time
from typing import NamedTuple

STALE = 0x7FF0000000000002
AHEAD_MS = 10 * 60 * 1000  # later than now by more is refused, as by Prometheus


class Page(NamedTuple):
    ms: int
    samples: dict  # {(name, its other labels in order): value}, STALE where it ends


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def unsnapped(body):
    """The bytes of a block whose chunks are literals with a length of two bytes, as argusd writes them."""
    size, at = varint(body, 0)
    out = b""
    while at < len(body):
        assert body[at] == 61 << 2, body[at]
        n = int.from_bytes(body[at + 1 : at + 3], "little") + 1
        out += body[at + 3 : at + 3 + n]
        at += 3 + n
    assert len(out) == size
    return out


def fields(data):
    """(number, value) of a protobuf message: bytes, an integer, or the eight bytes of a double."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            n, at = varint(data, at) if key & 7 == 2 else (8, at)
            value, at = data[at : at + n], at + n
        yield key >> 3, value


def page_of(body):
    samples, times = {}, set()
    for _, series in fields(unsnapped(body)):
        labels = [tuple(v.decode() for _, v in fields(label)) for number, label in fields(series) if number == 1]
        (sample,) = [dict(fields(value)) for number, value in fields(series) if number == 2]
        (bits,) = struct.unpack("<Q", sample[1])
        (value,) = struct.unpack("<d", sample[1])
        name = dict(labels)["__name__"]
        key = name, tuple(label for label in labels if label[0] != "__name__")
        assert labels == sorted(labels) and key not in samples, labels
        samples[key] = STALE if bits == STALE else value
        times.add(sample[2])
    (ms,) = times
    return Page(ms, samples)


class Taken:
    """The answer of a Receiver. No sample of a page is older than one that was taken, or far in the future."""

    def __init__(self):
        self.pages, self.refused = [], []

    def __call__(self, _, body):
        page = page_of(body)
        late = page.ms > time.time() * 1000 + AHEAD_MS
        if late or (self.pages and page.ms <= self.pages[-1].ms):
            self.refused.append(page)
            return 400, b"out of bounds" if late else b"out of order sample"
        self.pages.append(page)
        return 204, b""

    def values(self, name):
        """Of one name, as the newest page has it: {labels: value}."""
        return {key[1]: value for key, value in self.pages[-1].samples.items() if key[0] == name} if self.pages else {}

    def ends(self, name):
        """The labels of each stale marker of this name, of all pages."""
        return [key[1] for page in list(self.pages) for key, value in page.samples.items()
                if key[0] == name and value == STALE]  # fmt: skip
