"""
What tests share: tables, models of them, processes to be killed, and what reads the repository itself.

Each module has one name, ``support.NAME``; test modules import nothing from one another.
"""
