"""The few kinds of error a person can act on.

NeedleError            what happened, where, and what to do; printed in one place per program
├── InputError         bad input or usage; nothing was started (exit status 2)
└── RunError           the run itself failed (exit status 1)
"""

from __future__ import annotations


class NeedleError(Exception):
    """A failure with a remedy: `str(error)` is everything a person needs to see.

    `field` names the setting at fault where there is one, so that a form can mark it.
    """

    exit_status = 1

    def __init__(self, message: str, *, where: str = "", remedy: str = "", field: str = "") -> None:
        self.message = message
        self.where = where
        self.remedy = remedy
        self.field = field
        super().__init__(message)

    def __str__(self) -> str:
        located = f"{self.where}: {self.message}" if self.where else self.message
        return f"{located}\n  {self.remedy}" if self.remedy else located


class InputError(NeedleError):
    """Bad input or usage, found before anything was started."""

    exit_status = 2


class RunError(NeedleError):
    """A run that could not go on."""
