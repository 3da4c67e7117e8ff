"""Tells the number of interruptions tried at the end of the run."""

tried = []


def pytest_runtest_logreport(report):
    if report.when == "call":
        tried.extend(count for name, count in report.user_properties if name == "interruptions")


def pytest_terminal_summary(terminalreporter):
    if tried:
        terminalreporter.write_line(f"crash tests: {sum(tried)} interruptions tried")
