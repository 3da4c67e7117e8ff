"""Assembles the page of a table: one file with everything in it, which loads nothing from anywhere."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any, Final

from hudi_py.inspection.json_stream import json_text
from hudi_py.inspection.say import visible
from hudi_py.model.words import counted

_PARTS: Final = {"@UPLOT_CSS@": "uplot.css", "@CSS@": "page.css", "@UPLOT_JS@": "uplot.js", "@JS@": "page.js"}
_SCRIPTS: Final = ("@UPLOT_JS@", "@JS@")


def page_html(document: Any, title: str) -> str:
    """
    Return the page as HTML.

    Text of the table only occurs inside of a JSON block and in the title, both escaped, and the page's own script shows
    it as text. Scripts run only if they are the page's own: the content security policy names their hashes.

    Args:
        document: See `hudi_py.inspection.page_data.page_document`.
        title: Title of the page.
    """
    return html_of_json(json_text(document, ensure_ascii=True), title)


def html_of_json(document: str, title: str) -> str:
    """As `page_html`, of a document that is JSON already, ASCII only."""
    parts = {mark: _text(name) for mark, name in _PARTS.items()}
    # Of the scripts as they stand in the page: a script that text of the table would bring along has another hash.
    hashes = " ".join(f"'sha256-{_hash(parts[mark])}'" for mark in _SCRIPTS)
    values = {
        **parts,
        "@TITLE@": escape(visible(title)),
        "@POLICY@": policy(hashes),
        "@DATA@": _inside_of_script(document),
    }
    # Split once, and never replaced in the result: a mark inside of the table's own text would be replaced too.
    pieces = _text("page.html").split("@@")
    return "".join(values[f"@{piece}@"] if number % 2 else piece for number, piece in enumerate(pieces))


def list_html(links: Sequence[tuple[str, str]]) -> str:
    """Return a page with links, as pairs of address and text; it has no script."""
    items = "".join(f'<li><a href="{escape(url)}">{escape(visible(text))}</a></li>' for url, text in links)
    about = (
        f'<p class="hint">{counted(len(links), "table")}. For programs: <a href="/api">JSON</a>, '
        '<a href="/metrics">metrics</a>.</p>'
    )
    return _plain_html("Tables", f'{about}<ul class="list">{items}</ul>')


def api_html(rows: str) -> str:
    """Return a page with the addresses of the server; *rows* are those of an HTML table."""
    return _plain_html(
        "JSON addresses",
        '<p>As <a href="/openapi.json">OpenAPI</a>. Tables are named by their number, from 0.</p>'
        '<div class="scroll" tabindex="0" role="region" aria-label="Addresses"><table><thead><tr>'
        '<th scope="col">address</th><th scope="col">answers with</th><th scope="col">takes</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>",
    )


def error_html(title: str, message: str) -> str:
    """Return a page that says why there is no other."""
    return _plain_html(title, f'<p>{escape(visible(message))}</p><p><a href="/">All tables</a></p>')


def _plain_html(title: str, body: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{title} - hudi-py serve</title>'
        f"<style>{_text('page.css')}</style></head><body><header><h1>{title}</h1></header>"
        f"<main>{body}</main></body></html>"
    )


def policy(script_source: str) -> str:
    """Return the content security policy of a page whose scripts come from *script_source*."""
    return (
        f"default-src 'none'; script-src {script_source}; style-src 'unsafe-inline'; img-src data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'"
    )


def script_json(document: Any) -> str:
    """Return JSON that can stand inside of a script element: nothing in it ends the element or begins a comment."""
    return _inside_of_script(json_text(document, ensure_ascii=True))


def _inside_of_script(text: str) -> str:
    # JSON has the same meaning with them escaped, and no `</script>` or `<!--` is left.
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _text(name: str) -> str:
    return files("hudi_py.inspection").joinpath("page", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
