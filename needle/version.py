"""The version of this distribution, said once."""

VERSION = "0.1.0"
