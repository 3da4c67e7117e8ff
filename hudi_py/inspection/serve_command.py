"""The command ``hudi-py serve``: the pages of tables, for a browser on this machine."""

from __future__ import annotations

import ipaddress
import socket
import sys
from threading import Thread
from typing import TYPE_CHECKING

import click

from hudi_py.errors import ConfigError
from hudi_py.inspection.clean_options import retention_options
from hudi_py.inspection.failure import print_json
from hudi_py.inspection.options import Common, command
from hudi_py.inspection.say import say
from hudi_py.model.words import counted

if TYPE_CHECKING:
    from hudi_py.config.clean_options import CleanOptions

_TOKEN_LENGTH_MIN = 16


@click.command()
@click.argument("locations", nargs=-1, metavar="[TABLE|FOLDER|PATTERN|URL]...")
@click.option(
    "--tables",
    "source",
    metavar="SOURCE",
    help="File with one location per line, folder, pattern, URL or glue://DATABASE.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address; any but the loopback needs --token.")
@click.option("--port", type=click.IntRange(0, 65535), default=8642, show_default=True, help="Port; 0 for a free one.")
@click.option("--token", envvar="HUDI_PY_TOKEN", help="What requests have to know (or HUDI_PY_TOKEN).")
@click.option(
    "--allow-actions", is_flag=True, help="Let those who know the token maintain, clean, compact, archive and recover."
)
@retention_options
@command
def serve(
    common: Common,
    locations: tuple[str, ...],
    source: str | None,
    host: str,
    port: int,
    token: str | None,
    allow_actions: bool,
    options: CleanOptions,
) -> None:
    r"""
    Serve the pages of tables to a browser, until Ctrl-C. Changes nothing, unless --allow-actions is given.

    The page is that of hudi-py report and follows the table while jobs run. On the loopback address it asks for no
    token; on any other one it does, as a part of the address (?token=...) or as Authorization: Bearer.

    \b
    Examples:
      hudi-py serve s3://lake/trips
      hudi-py serve /lake/warehouse --port 0
      HUDI_PY_TOKEN=... hudi-py serve --tables tables.txt --host 0.0.0.0
      HUDI_PY_TOKEN=... hudi-py serve /lake/warehouse --allow-actions
    """
    from hudi_py.inspection.served_tables import ServedTables, Sources
    from hudi_py.inspection.server import Server
    from hudi_py.inspection.site import Site
    from hudi_py.inspection.site_actions import Actions

    sources = (*locations, *(() if source is None else (source,)))
    if not sources:
        raise ConfigError("give tables, a folder with tables in it, or --tables FILE")
    is_loopback = _is_loopback(host)
    if token is None and not is_loopback:
        raise ConfigError(f"--host {host} can be reached from other machines: give --token, or leave --host out")
    # Without one every user and every program of this machine could change the tables.
    if allow_actions and token is None:
        raise ConfigError("--allow-actions needs a token: give --token, or HUDI_PY_TOKEN")
    # Letters and digits only: it stands in addresses and cookies as it is.
    if token is not None and (len(token) < _TOKEN_LENGTH_MIN or not token.isalnum() or not token.isascii()):
        raise ConfigError(f"--token needs at least {_TOKEN_LENGTH_MIN} characters, letters and digits only")
    found = Sources(sources, common.storage_options)
    tables = found.tables
    try:
        server = Server((host, port), socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise ConfigError(f"--host {host} --port {port}: {error.strerror}; give another port") from error
    with server:
        port = server.server_port
        names = ("127.0.0.1", "localhost", "[::1]", f"[{host}]" if ":" in host else host.lower())
        # With a token any name will do: who knows it may ask, whatever the server is called.
        hosts = frozenset(f"{name}:{port}" for name in names) if is_loopback else None
        actions = Actions(common.open, options) if allow_actions else None
        server.site = Site(
            ServedTables(tables, found.look),
            lambda table: common.open(table).read_only(),
            hosts=hosts,
            token=token,
            options=options,
            actions=actions,
        )
        # Beside the first requests: a storage that does not answer must not keep the server from starting.
        Thread(target=server.site.warm, name="hudi-py-warm", daemon=True).start()
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
        if common.as_json:
            print_json({"url": url, "tables": len(tables)})
        else:
            say(f"serving {counted(len(tables), 'table')} at {url}; Ctrl-C stops it")
        # The caller may wait for the address, and a pipe would keep the line back.
        sys.stdout.flush()
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:  # SIGTERM, too, by which containers are stopped
            # What is cut off goes on with the next run; but who can wait has a table without leftovers.
            if actions is not None and actions.is_running:
                say("hudi-py: waiting for the action under way; Ctrl-C again ends it at once", file=sys.stderr)
            if actions is not None:
                actions.end()  # in any case: one may have begun since it was asked
            say("hudi-py: stopped", file=sys.stderr)


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
