"""Asking for a probe, and what a child that works would print."""

import json
import os
import sys

from needle.devices.probing import run_probe

WORKING = json.dumps(
    {"platform": "cpu", "status": "works", "reason": "right", "devices": [], "bfloat16": True}
)


def ask(platform="cpu", python=sys.executable, *, packages=None, timeout_s=60.0, **variables):
    """A probe's outcome, with these variables beside the test's own."""
    environment = {**os.environ, **variables}
    return run_probe(
        platform, str(python), packages=packages or {}, environment=environment, timeout_s=timeout_s
    )
