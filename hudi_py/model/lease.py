"""
Leases: a reader asks for a time of the table to stay readable until another time. Pure.

A lease names a time, not files, so taking one costs the same for every table. Which files it needs follows from the
times of slices, in the same way as for a reader of the table as of that time.

The progress of an incremental reader, a consumer, is a lease on everything since the time up to which it has read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, Final

import attrs

from hudi_py.errors import ConfigError, CorruptMetadata
from hudi_py.model.instant_time import EPOCH, parse_duration
from hudi_py.model.json_document import parse_json
from hudi_py.model.progress import Progress, decoded

CLOCKS_DIFFER_BY: Final = timedelta(minutes=1)
"""Assumed difference between the clocks of two machines: a lease stays valid for this much longer."""
HOLDER_LENGTH_MAX: Final = 200
_CONSUMER_PREFIX: Final = "consumer-"
_CONSUMER_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,90}")
_VERSION: Final = 1
_CONSUMER: Final = "consumer"
_SNAPSHOT: Final = "snapshot"


@attrs.frozen(kw_only=True)
class Lease:
    """
    A lease.

    Args:
        id: Names it within the table.
        holder: Who reads, in words.
        instant: Requested time of the commit that is read.
        pending: Requested times of writes up to *instant* that were pending when the lease was taken: they may complete
            later, and supersede files that the reader still needs. Also of pending compactions after *instant*: log
            files that the reader needs may be on the slices that they opened.
        created: When it was taken; with a time zone.
        expires: Until when its reader may rely on it; with a time zone.
        has_savepoint: Whether its commit keeps a savepoint for as long, for cleaners that know no leases.
        is_consumer: Whether it is the progress of an incremental reader: all times from *instant* on stay readable.
        read: Requested time of each write that this reader has read to its completion time, ``""`` in layout 1; None if
            they are not known.
    """

    id: str
    holder: str
    instant: str
    pending: tuple[str, ...] = ()
    created: datetime
    expires: datetime
    has_savepoint: bool = False
    is_consumer: bool = False
    read: Mapping[str, str] | None = attrs.field(default=None, hash=False)

    @property
    def floor(self) -> str:
        """The earliest time that it depends on: that of its commit, or of a write that was pending then."""
        return min((self.instant, *self.pending))

    def shows(self, write: str) -> bool:
        """
        Whether rows of a write, by requested time, belong to what is read.

        A consumer has read them already, so undoing them takes nothing from it.
        """
        return not self.is_consumer and write <= self.instant and write not in self.pending

    def needs(self, begins: str, ends: str | None) -> bool:
        """
        Whether it needs a slice.

        Args:
            begins: From when on the slice is shown, `FileSlice.shown_from`.
            ends: Base instant of the next newer slice, or time of the replacement of its group; None for neither.
        """
        begins_in_time = self.is_consumer or begins <= self.instant or begins in self.pending
        return begins_in_time and (ends is None or ends > self.instant or ends in self.pending)

    def needs_no_more_than(self, other: Lease) -> bool:
        """Whether all slices that this consumer needs are needed by another one, too."""
        is_later = self.instant >= other.instant
        return is_later and all(time > other.instant or time in other.pending for time in self.pending)

    def is_usable(self, now: datetime) -> bool:
        """Whether its reader may still rely on it."""
        return now < self.expires

    def is_dead(self, now: datetime) -> bool:
        """Whether nobody can rely on it any more, whatever other machines' clocks say."""
        return now >= self.expires + CLOCKS_DIFFER_BY

    def __str__(self) -> str:
        if self.is_consumer:
            return f"consumer {self.holder} at {self.instant}, until {iso(self.expires)}"
        return f"lease {self.id} of {self.holder} at {self.instant}, until {iso(self.expires)}"


def progress_of(lease: Lease) -> Progress | None:
    """What the reader of a lease has read; None if it is not known."""
    return None if lease.read is None else Progress(until=lease.instant, writes=lease.read)


def floor_of(leases: Iterable[Lease]) -> str | None:
    """The earliest time that any of them depends on; None without leases."""
    return min((lease.floor for lease in leases), default=None)


def lease_span(ttl: str | timedelta) -> timedelta:
    """
    A time to live.

    Args:
        ttl: A span, or text as ``"90m"``, ``"3h"``.

    Raises:
        ConfigError: It is not a positive span of time, or longer than ten years: such a lease would never end.
    """
    span = parse_duration(ttl) if isinstance(ttl, str) else ttl
    if not isinstance(span, timedelta) or not timedelta(0) < span <= timedelta(days=3653):
        raise ConfigError(f"time to live {ttl!r} of a lease is not a span of time up to ten years, as 90m or 3h")
    return span


def check_holder(holder: str) -> str:
    """
    The name of a holder, as given.

    Raises:
        ConfigError: It is too long, or has characters that cannot be printed.
    """
    # Holders are shown on terminals: control characters could hide or imitate other lines.
    if not holder.isprintable() or not 0 < len(holder) <= HOLDER_LENGTH_MAX:
        raise ConfigError(
            f"{holder!r} cannot be the holder of a lease: give 1 to {HOLDER_LENGTH_MAX} printable characters"
        )
    return holder


def check_id(id_: str) -> str:
    """
    The id of a lease, as given; it is part of a path.

    Raises:
        ConfigError: It cannot be the id of a lease.
    """
    if not _ID.fullmatch(id_):
        raise ConfigError(f"{id_!r} is not the id of a lease; see hudi-py lease list")
    return id_


def consumer_id(name: str) -> str:
    """
    The id of the lease that is the progress of a consumer.

    Raises:
        ConfigError: The name cannot be part of the name of a file.
    """
    if not _CONSUMER_NAME.fullmatch(name):
        raise ConfigError(f"{name!r} cannot be the name of a consumer: give 1 to 64 letters, digits, - and _")
    return _CONSUMER_PREFIX + name


def savepoint_name(instant: str) -> str:
    """The name of the savepoint that the leases on a commit share."""
    return f"lease-{instant}"


def needs_savepoint(leases: Iterable[Lease], instant: str, now: datetime) -> Lease | None:
    """A lease that counts and needs a savepoint of the commit of that time; None if there is none."""
    wanted = (each for each in leases if each.has_savepoint and each.instant == instant)
    return next((each for each in wanted if not each.is_dead(now)), None)


def iso(moment: datetime) -> str:
    """A moment as text, in UTC, to the millisecond."""
    return moment.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def encode_lease(lease: Lease) -> bytes:
    """Content of its file."""
    document = {
        "version": _VERSION,
        "kind": _CONSUMER if lease.is_consumer else _SNAPSHOT,
        "id": lease.id,
        "holder": lease.holder,
        "instant": lease.instant,
        "pending": list(lease.pending),
        "created": iso(lease.created),
        "expires": iso(lease.expires),
        **({"savepoint": True} if lease.has_savepoint else {}),
        **({} if (progress := progress_of(lease)) is None else {"writes": progress.encoded()}),
    }
    return json.dumps(document, indent=1).encode()


def decode_lease(data: bytes, path: str) -> Lease:
    """
    The lease in a file.

    Args:
        data: Content of the file.
        path: Its path, for messages; the name has to be that of the lease.

    Raises:
        CorruptMetadata: It does not decode. Then it is unknown what its reader needs.
    """
    try:
        document = parse_json(data)
        found = Lease(
            id=_text(document["id"]),
            holder=_text(document["holder"]),
            instant=_digits(document["instant"]),
            pending=tuple(map(_digits, document["pending"])),
            created=_moment(document["created"]),
            expires=_moment(document["expires"]),
            has_savepoint=_flag(document.get("savepoint", False)),
            is_consumer={_CONSUMER: True, _SNAPSHOT: False}[document["kind"]],
            read=decoded(document["instant"], _text(document["writes"])).writes if "writes" in document else None,
        )
        # Renewing and releasing go by the name, so a copy under another name could never be released.
        if document["version"] != _VERSION or path.rpartition("/")[2] != f"{found.id}.json":
            raise ValueError("its version or id is another")
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, ConfigError) as error:
        raise CorruptMetadata(
            f"{path} does not decode as a lease ({error!r}), so it is unknown which files a reader needs: nothing was "
            f"deleted; if no reader uses it any more, hudi-py lease release TABLE {path.rpartition('/')[2][:-5]}"
        ) from error
    return found


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"{value!r} is not a string")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is neither true nor false")
    return value


def _digits(value: Any) -> str:
    if not _text(value).isdigit():
        raise ValueError(f"{value!r} is not an instant time")
    return str(value)


def _moment(value: Any) -> datetime:
    moment = datetime.fromisoformat(_text(value).replace("Z", "+00:00"))
    # Subtracting is the check: Python refuses it for a time without a zone, which would mean another moment on each
    # machine.
    return EPOCH + (moment - EPOCH)
