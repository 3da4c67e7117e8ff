"""``python -m hudi_py``."""

from hudi_py.inspection.cli import main

if __name__ == "__main__":
    main()
