"""`python -m elman`: the command line."""

from elman.cli.main import run

if __name__ == "__main__":
    run()
