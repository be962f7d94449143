"""JSON for the thin client, without the ``json`` package and what it imports.

The C scanner and string encoder are the ones that ``json`` itself uses. A test compares this file with ``json`` over
generated values, on both sides; where the C module is missing, ``json`` does the work.
"""

try:
    from _json import encode_basestring_ascii, make_scanner
except ImportError:  # another Python implementation
    encode_basestring_ascii = make_scanner = None  # type: ignore[assignment,misc]

_SPACE = " \t\n\r"


class _Settings:
    """What the C scanner asks for; the values are those of ``json.loads``, without NaN and infinities."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    memo: dict[str, str] = {}  # noqa: RUF012 - the scanner clears it after each document

    @staticmethod
    def parse_constant(name: str) -> object:
        """NaN and infinities are not JSON."""
        raise ValueError(name)


def encode(value: object) -> str:
    """JSON text in ASCII without spaces. Raises TypeError for what JSON cannot hold; floats are not used here."""
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, (list, tuple)):
        return "[" + ",".join([encode(item) for item in value]) + "]"
    if isinstance(value, dict):
        return "{" + ",".join([_key(name) + ":" + encode(item) for name, item in value.items()]) + "}"
    raise TypeError(type(value).__name__)


def decode(text: str) -> object:
    """The value of a JSON document. Raises ValueError (or RecursionError) for anything else."""
    if make_scanner is None:
        import json

        return json.loads(text)
    scan = make_scanner(_Settings)  # type: ignore[arg-type]  # the stub names a decoder; the scanner reads attributes
    start = _skip(text, 0)
    try:
        value, end = scan(text, start)
    except StopIteration:
        raise ValueError("no JSON value") from None
    if _skip(text, end) != len(text):
        raise ValueError("more than one JSON value")
    return value


def _string(text: str) -> str:
    if encode_basestring_ascii is None:
        import json

        return json.dumps(text)
    return encode_basestring_ascii(text)


def _key(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(type(name).__name__)
    return _string(name)


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at
