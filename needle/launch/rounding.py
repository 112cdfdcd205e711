"""Which rounding of the weights a fine-tuning run trains for."""

from __future__ import annotations

from needle.runs.record import Decision

NONE = "none"
DEFAULT_BITS = "4"


def choose_rounding(choice: str, weight_bits: str) -> Decision:
    """`none`, a number of bits, or the bit map that the base carries as its `weight_bits`."""
    if choice == NONE:
        return Decision(NONE, "asked for: trained on exact weights, which an archive rounds afterwards")
    if choice != "auto":
        return Decision(choice, f"asked for: trained for weights of {choice} bits")
    if weight_bits:
        return Decision(weight_bits, "the bits that the base was made for")
    return Decision(DEFAULT_BITS, "what an archive keeps of a base that names no bits of its own")
