"""`python -m elman`: the command line."""

from elman.cli.main import main

if __name__ == "__main__":
    main()
