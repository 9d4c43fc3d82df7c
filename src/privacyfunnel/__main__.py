"""`python -m privacyfunnel` is `pfunnel`."""

from .cli import main

if __name__ == "__main__":
    main()
