"""A rename that never replaces an existing file: creates atomically where a file system has no hard links."""

from __future__ import annotations

import ctypes
import errno
import os

from hudi_py.errors import StorageError

_RENAME_NOREPLACE = 1
_UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})


def rename_noreplace(folder: int, source: str, target: str) -> None:
    """
    Rename *source* to *target* in one step, failing when *target* exists (Linux ``renameat2``).

    Args:
        folder: Descriptor of the folder that holds *source* and gets *target*.
        source: Name of the file.
        target: Its new name.

    Raises:
        FileExistsError: *target* exists.
        OSError: The system refused for another reason.
        StorageError: System or file system cannot do it. Checking first and then renaming is not an alternative: two
            writers could both win.
    """
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is None:
        raise _refusal(target)
    outcome = function(folder, os.fsencode(source), folder, os.fsencode(target), ctypes.c_uint(_RENAME_NOREPLACE))
    if outcome == 0:
        return
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        raise _refusal(target)
    raise OSError(code, os.strerror(code), target)


def _refusal(target: str) -> StorageError:
    return StorageError(
        f"create_new {target}: this file system has neither hard links nor an exclusive rename, so two writers could "
        "both win; nothing was written, keep the table on another file system"
    )
