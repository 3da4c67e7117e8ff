"""A way to a server that can be shut and opened again, for one of its clients."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_BYTES = 65536


class Gate:
    """
    A port that passes everything on to a server.

    Args:
        port: Of the server, on this machine.

    Attributes:
        address: ``host:port``, the same whenever it is open.
    """

    def __init__(self, port: int) -> None:
        self._port, self._own = port, 0
        self._open: list[socket.socket] = []
        self.open()
        self.address = f"127.0.0.1:{self._own}"

    def open(self) -> None:
        """Pass on what comes."""
        listening = socket.create_server(("127.0.0.1", self._own))
        self._own = listening.getsockname()[1]
        self._open = [listening]
        threading.Thread(target=self._accept, args=(listening,), daemon=True).start()

    def shut(self) -> None:
        """Cut all connections, and refuse new ones."""
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self, listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client = listening.accept()[0]
                server = socket.create_connection(("127.0.0.1", self._port))
                self._open += [client, server]
                for source, target in ((client, server), (server, client)):
                    threading.Thread(target=_pass_on, args=(source, target), daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(_BYTES):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@contextmanager
def gate_to(address: str) -> Iterator[Gate]:
    """An open gate to ``host:port``."""
    gate = Gate(int(address.rpartition(":")[2]))
    try:
        yield gate
    finally:
        gate.shut()
