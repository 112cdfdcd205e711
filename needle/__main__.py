"""`python -m needle` is `needle`."""

from needle.cli import main

main()
