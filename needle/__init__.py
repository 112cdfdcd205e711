"""Training for JAX with a record anyone can read; importing it costs nothing and loads no JAX."""

from needle.runs.writer import report

__version__ = "0.1.0"
__all__ = ["__version__", "report"]
