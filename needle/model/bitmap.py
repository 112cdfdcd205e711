"""Which weights are kept with how many bits: `default=4,embedding=4,attn.q_proj=3,engram0=1.58`. No JAX."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from needle.errors import InputError
from needle.model.codebooks import CODEBOOKS, WIDTHS_TEXT

DEFAULT_BITS = 4
_DEFAULT = "default"
_PROJECTIONS = ("gate_proj", "k_proj", "out_proj", "q_proj", "v_proj")
_NUMBERLESS_NAMES = (
    "embedding",
    *(f"attn.{projection}" for projection in _PROJECTIONS),
    *(f"engram.{part}" for part in ("tables", "key_proj", "value_proj")),
    *(f"mhc_phi_{part}" for part in ("pre", "post", "res")),
    *(f"mtp.{projection}" for projection in (*_PROJECTIONS, "combine")),
)
_KNOWN = sorted({_DEFAULT, "attn", "engram", "mhc_phi", "mtp", *_NUMBERLESS_NAMES})
_KNOWN_TEXT = "default, embedding, attn.<projection>, engram<site>.<part>, mhc_phi_<part>, mtp.<projection>"
_FORM = "write it like default=4,embedding=4,attn.q_proj=3,engram0=1.58"
_PATTERNS = (
    (re.compile(r"embedding/embedding"), r"embedding"),
    (re.compile(r"stack/layers/block/self_attn/(\w+)/kernel"), r"attn.\1"),
    (re.compile(r"stack/(mhc_phi_\w+)"), r"\1"),
    (re.compile(r"engrams_(\d+)/embedding"), r"engram\1.tables"),
    (re.compile(r"engrams_(\d+)/(\w+_proj)/kernel"), r"engram\1.\2"),
    (re.compile(r"mtp_block/self_attn/(\w+)/kernel"), r"mtp.\1"),
    (re.compile(r"mtp_(combine)/kernel"), r"mtp.\1"),
)


@dataclass(frozen=True)
class BitMap:
    """Bits by name; of several names that begin a leaf's, the longest decides, else the default.

    `str(bit_map)` is the spelling that `parse_bit_map` reads.
    """

    default: float = DEFAULT_BITS
    widths: tuple[tuple[str, float], ...] = ()

    def bits_of(self, name: str) -> float:
        """Bits of the leaf with this canonical name, such as `attn.q_proj`."""
        matching = [entry for entry in self.widths if _begins(entry[0], name)]
        return max(matching, key=lambda entry: len(entry[0]))[1] if matching else self.default

    def same_as(self, other: BitMap, names: Iterable[str]) -> bool:
        """Whether both give these leaves the same bits, however they are spelled."""
        return all(self.bits_of(name) == other.bits_of(name) for name in names)

    @property
    def words(self) -> str:
        """The map in a sentence: `4 bits`, or its spelling when there is more to say."""
        return str(self) if self.widths else f"{self.default:g} bits"

    def __str__(self) -> str:
        return ",".join(f"{name}={bits:g}" for name, bits in ((_DEFAULT, self.default), *self.widths))


def parse_bit_map(
    text: str, *, default: float = DEFAULT_BITS, engram_sites: int | None = None, field: str = "bits-map"
) -> BitMap:
    """A map from its spelling; a number alone is its default, and a map without one has `default`.

    Raises InputError that names the entry at fault, with the nearest known name. Given the number of a
    model's engram sites, a site that it does not have is an error too.
    """
    if not text.strip():
        return BitMap(default)
    entries = [part.strip() for part in text.split(",")]
    if re.fullmatch(r"[\d.]+", entries[0]):
        entries[0] = f"{_DEFAULT}={entries[0]}"
    widths: dict[str, float] = {}
    for entry in entries:
        try:
            name, bits = _parsed(entry, engram_sites)
            if name in widths:
                raise ValueError(f"{name} is given twice")
        except ValueError as error:
            raise InputError(f"bit map {text!r:.120}: {error}", remedy=_FORM, field=field) from None
        widths[name] = bits
    default = widths.pop(_DEFAULT, default)
    return BitMap(default, tuple(widths.items()))


def canonical_name(path: str) -> str:
    """The name by which a bit map knows the leaf at `path`; empty for a leaf that is not quantised."""
    for pattern, name in _PATTERNS:
        found = pattern.fullmatch(path)
        if found:
            return found.expand(name)
    return ""


def ships(path: str) -> bool:
    """Whether an archive holds the leaf: the multi-token head and the contrastive temperature stay behind."""
    return not path.startswith("mtp_") and not path.endswith("/log_temp")


def _begins(prefix: str, name: str) -> bool:
    """`engram1` begins `engram1.tables` but not `engram10.tables`."""
    rest = name.removeprefix(prefix)
    return name.startswith(prefix) and not (prefix[-1:].isdigit() and rest[:1].isdigit())


def _parsed(entry: str, engram_sites: int | None) -> tuple[str, float]:
    """One `name=bits`. Raises ValueError with words for a person."""
    name, sign, number = (part.strip() for part in entry.partition("="))
    if not entry:
        raise ValueError("an entry is empty; it is a list of name=bits with commas between")
    if not sign:
        raise ValueError(f"{entry!r} has no '='; an entry is name=bits")
    _require_known(name, engram_sites)
    try:
        bits = float(number)
    except ValueError:
        bits = 0.0
    if bits not in CODEBOOKS:
        raise ValueError(f"{name} cannot have {number or 'no'} bits; weights have {WIDTHS_TEXT}")
    return name, bits


def _require_known(name: str, engram_sites: int | None) -> None:
    site = re.fullmatch(r"engram(\d+)(\..*)?", name)
    numberless = f"engram{site[2] or ''}" if site else name
    if not _begins_known(numberless) or (name.startswith("engram.") and not site):
        raise ValueError(f"no weights are called {name!r}{_nearest(numberless, site)}")
    if site and engram_sites is not None and int(site[1]) >= engram_sites:
        counted = f"this model has {engram_sites} engram sites, counted from 0"
        raise ValueError(f"there is no {name}: {counted}")


def _begins_known(text: str) -> bool:
    """Whether a known name is, or begins with, this text, up to a dot or an underscore."""
    return any(known.startswith(text) and (known[len(text) :] or ".")[0] in "._" for known in _KNOWN if text)


def _nearest(numberless: str, site: re.Match[str] | None) -> str:
    close = difflib.get_close_matches(numberless, _KNOWN, n=1)
    if not close:
        return f"; known are {_KNOWN_TEXT}"
    number = site[1] if site else "0"
    return f"; did you mean {re.sub(r'^engram(?=.)', f'engram{number}', close[0])!r}?"
