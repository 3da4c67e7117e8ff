"""What a decoder answered is kept by the content, so a file that has changed is always decoded anew."""

import pytest

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.kept import kept_if_small


def test_the_same_small_content_is_decoded_once_and_another_one_or_an_error_each_time():
    """A content of the same length, or with another argument, is another one; of large ones the last may be held."""
    decoded = []

    @kept_if_small
    def decode(data, source):
        decoded.append((data, source))
        if data == b"bad":
            raise CorruptMetadata(source)
        return data.upper()

    assert [decode(data, "a") for data in (b"one", b"two", b"one")] == [b"ONE", b"TWO", b"ONE"]
    assert decode(b"one", "b") == b"ONE"
    assert decoded == [(b"one", "a"), (b"two", "a"), (b"one", "b")]
    for _ in range(2):
        with pytest.raises(CorruptMetadata):
            decode(b"bad", "a")
        assert len(decode(b"x" * 2_000_000, "a")) == 2_000_000
    assert len(decoded) == 7
    large, other = b"x" * 20_000, b"y" * 20_000
    assert [decode(data, "a") for data in (large, large, other, other, large)] == [
        data.upper() for data in (large, large, other, other, large)
    ]
    assert decoded[7:] == [(large, "a"), (other, "a"), (large, "a")]
