"""Streams of Spark 4 over a data source in Python, on a machine with other work."""

from collections.abc import Callable

_ATTEMPTS = 5


def with_a_started_source(run: Callable[[], object]) -> None:
    """
    Run a query with a stream to its end.

    Spark starts a Python process for each stream and gives up if that one does not answer within ten seconds, which no
    setting changes. Nothing was read by then, so the query is begun again.
    """
    for left in reversed(range(_ATTEMPTS)):
        try:
            run()
        except Exception as error:
            if "failed to connect back" not in str(error) or not left:
                raise
        else:
            return
