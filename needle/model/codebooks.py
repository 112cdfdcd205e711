"""The levels that weights are rounded to: constants of the format, so they are data and not computed."""

from __future__ import annotations

from dataclasses import dataclass

from needle.errors import InputError

GROUP_SIZE = 128


@dataclass(frozen=True)
class Codebook:
    """The levels of one width, ascending, for groups of unit length.

    `bits` is the width as people write it, `index_bits` what one index takes in an archive, `code` how an
    archive names the width, `stored` the number that stands for each level there.
    """

    bits: float
    index_bits: int
    code: int
    levels: tuple[float, ...]
    stored: tuple[int, ...]

    @property
    def label(self) -> str:
        """The width for people: `4`, `1.58`."""
        return f"{self.bits:g}"


# Fitted once to a sample of a unit Gaussian, hence not symmetric; exact float32 values (the model page,
# "Quantisation"). Ternary is {-1.2240064, 0, 1.2240064} / sqrt(128).
_TERNARY = (-0.10818791, 0.0, 0.10818791)
_TWO_BITS = (-0.13317214, -0.03990209, 0.04003528, 0.13346045)
_THREE_BITS = (
    -0.18926136, -0.11788499, -0.06614969, -0.021013461,
    0.022101032, 0.06678507, 0.118262075, 0.18982603,
)  # fmt: skip
_FOUR_BITS = (
    -0.23953155, -0.18070605, -0.14095794, -0.10901255, -0.081512965, -0.05652765, -0.03293915, -0.01011611,
    0.0127108, 0.035707917, 0.059458256, 0.08497702, 0.11274162, 0.14469692, 0.184239, 0.2422737,
)  # fmt: skip

CODEBOOKS: dict[float, Codebook] = {
    1.58: Codebook(1.58, index_bits=2, code=5, levels=_TERNARY, stored=(3, 0, 1)),
    2: Codebook(2, index_bits=2, code=2, levels=_TWO_BITS, stored=tuple(range(4))),
    3: Codebook(3, index_bits=3, code=3, levels=_THREE_BITS, stored=tuple(range(8))),
    4: Codebook(4, index_bits=4, code=4, levels=_FOUR_BITS, stored=tuple(range(16))),
}
WIDTHS_TEXT = "1.58, 2, 3 or 4"


def codebook(bits: float) -> Codebook:
    """The codebook of a width. Raises InputError for a width that does not exist."""
    try:
        return CODEBOOKS[bits]
    except (KeyError, TypeError):
        raise InputError(f"weights have {WIDTHS_TEXT} bits, not {bits!r}") from None


def codebook_of_code(code: int) -> Codebook | None:
    """The codebook an archive names by `code`, None when there is no such."""
    return next((book for book in CODEBOOKS.values() if book.code == code), None)
