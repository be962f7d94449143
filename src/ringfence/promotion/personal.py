"""Personal data in bytes: numbers with check digits, and many people's addresses. Pure.

One mail address is an author; a card number of a payment provider's documentation is a fixture. What counts is data
of people: valid identifiers, or rows of addresses together with other details.
"""

import re
from dataclasses import dataclass

import re2

from ringfence.promotion.decode import layers

_CARD = re2.compile(rb"\b(?:\d[ -]?){12,18}\d\b")
_IBAN = re2.compile(rb"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b")
_MAIL = re2.compile(rb"[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.)+[A-Za-z]{2,24}\b")
_PHONE = re2.compile(
    rb"(?:\+|\b00)[1-9]\d{0,2}[ .()-]{0,2}(?:\d[ .()-]{0,2}){7,11}\d\b|\(?\b[2-9]\d{2}\)?[ .-]\d{3}[ .-]\d{4}\b"
)
_SSN = re2.compile(rb"\b\d{3}-\d{2}-\d{4}\b")
_NINO = re2.compile(rb"\b[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d{2} ?\d{2} ?\d{2} ?[A-D]\b")
_BIRTH = re2.compile(rb"(?i)\b(?:date.of.birth|birth_?date|dob|birthday)\b")
_DOCUMENTED = re.compile(
    r"(?:.*\.)?(?:example|invalid|localhost)\Z|(?:.*\.)?example\.(?:com|org|net|edu)\Z", re.IGNORECASE
)
_NO_PERSON = re.compile(
    r"(?i)(?:no-?reply|git|noreply|root|admin|info|support|security|contact|hello|team|bot|.*\+.*bot)@"
)
_TEST_CARDS_WORDS = (
    "4111111111111111 4242424242424242 4012888888881881 4000056655665556 5555555555554444 5105105105105100 "
    "2223003122003222 378282246310005 371449635398431 6011111111111117 6011000990139424 3056930009020004 "
    "3566002020360505 4000000000000002 4000000000009995 5200828282828210 4222222222222 30569309025904 38520000023237 "
    "378734493671000 5019717010103742 6331101999990016 2223000048400011"
)
_TEST_CARDS = frozenset(_TEST_CARDS_WORDS.split())
_TEST_IBANS = frozenset(
    {"GB82WEST12345698765432", "DE89370400440532013000", "GB29NWBK60161331926819", "FR1420041010050500013M02606"}
)

# Numbers that regulators set aside for films and documents.
_FICTION = re2.compile(
    rb"\+?44[ .()-]{0,2}0?7700[ .-]?900|\b07700[ .-]?900|\+?44[ .()-]{0,2}0?1632[ .-]?960|\b555[ .-]?01\d\d"
)
_PLUS = re2.compile(rb"\+[1-9]\d{0,2}[ .()-]{0,2}(?:\d[ .()-]{0,2}){7,11}\d")
_DATE = re2.compile(rb"\b(?:19|20)\d\d-\d\d-\d\d\b|\b\d{1,2}[./]\d{1,2}[./](?:19|20)\d\d\b")

VALID_NUMBERS = 3
_NEAR = 120
"""Bytes around an address in which the rest of the record is looked for."""
ROWS_TOGETHER = 3
MAILS_ALONE = 12
"""Distinct mail addresses in one file that need no other detail to count; phones and birth dates likewise."""
MADE_UP = 20
"""As many records count even where everything in them is from ranges set aside for tests (``.test``, film numbers)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Personal:
    """Values found in one blob, by kind; only their number is ever shown."""

    cards: frozenset[str] = frozenset()
    ibans: frozenset[str] = frozenset()
    national: frozenset[str] = frozenset()
    mails: frozenset[str] = frozenset()
    rows: frozenset[str] = frozenset()
    made_up: frozenset[str] = frozenset()
    """Addresses below ``.test`` without a real detail beside them."""
    details: frozenset[str] = frozenset()
    """Phones, or birth dates in a file that speaks of them."""

    def minus(self, old: "Personal") -> "Personal":
        """What this blob holds and the older one did not."""
        return Personal(
            cards=self.cards - old.cards,
            ibans=self.ibans - old.ibans,
            national=self.national - old.national,
            mails=self.mails - old.mails,
            rows=self.rows - old.rows,
            made_up=self.made_up - old.made_up,
            details=self.details - old.details,
        )

    def verdict(self) -> str | None:
        """Why this is personal data, or None."""
        strong = len(self.cards) + len(self.ibans) + len(self.national)
        if strong >= VALID_NUMBERS or (strong and self.rows):
            parts = ((self.cards, "card"), (self.ibans, "bank account"), (self.national, "national id"))
            return ", ".join(f"{len(found)} valid {kind} numbers" for found, kind in parts if found)
        if len(self.rows) >= ROWS_TOGETHER:
            return f"{len(self.rows)} people with an address and further details"
        if len(self.mails) >= MAILS_ALONE:
            return f"mail addresses of {len(self.mails)} people"
        if len(self.mails | self.made_up | self.rows) >= MADE_UP:
            return f"addresses of {len(self.mails | self.made_up | self.rows)} people"
        if len(self.details) >= MAILS_ALONE:
            return f"phone numbers or birth dates of {len(self.details)} people"
        return None


def find_personal(raw: bytes) -> Personal:
    """Personal data in the bytes and in what is packed inside them. Raises decode.Unread."""
    parts = [_scan(text) for text, wrapped in layers(raw) if wrapped not in {"joined literals", "escapes", "hex"}]
    return Personal(
        cards=frozenset().union(*(part.cards for part in parts)),
        ibans=frozenset().union(*(part.ibans for part in parts)),
        national=frozenset().union(*(part.national for part in parts)),
        mails=frozenset().union(*(part.mails for part in parts)),
        rows=frozenset().union(*(part.rows for part in parts)),
        made_up=frozenset().union(*(part.made_up for part in parts)),
        details=frozenset().union(*(part.details for part in parts)),
    )


def _scan(text: bytes) -> Personal:
    mails = {mail for match in _MAIL.finditer(text) if _is_person(mail := match.group().decode("latin-1").casefold())}
    rows = _rows(text) if mails else set()
    made_up = {mail for mail in mails if mail.endswith(".test")}
    return Personal(
        cards=frozenset(filter(_is_card, (_digits(m.group()) for m in _CARD.finditer(text)))),
        ibans=frozenset(filter(_is_iban, (m.group().decode("latin-1").replace(" ", "") for m in _IBAN.finditer(text)))),
        national=frozenset(_national(text)),
        mails=frozenset(mails - made_up),
        rows=frozenset(rows),
        made_up=frozenset(made_up - rows),
        details=frozenset(_details(text)),
    )


def _details(text: bytes) -> set[str]:
    found = {_digits(m.group()) for m in _PLUS.finditer(text) if not _FICTION.match(m.group())}
    if _BIRTH.search(text[:2000]):
        found |= {m.group().decode("latin-1") for m in _DATE.finditer(text)}
    return found


def _digits(raw: bytes) -> str:
    return re.sub(r"\D", "", raw.decode("latin-1"))


def _is_person(mail: str) -> bool:
    domain = mail.rpartition("@")[2]
    return (
        not _DOCUMENTED.match(domain) and not _NO_PERSON.match(mail) and not domain.endswith((".png", ".svg", ".jpg"))
    )


def _is_card(digits: str) -> bool:
    """Length, an issuer's first digits, the Luhn check, and not one of the published test numbers."""
    lengths = {"4": (13, 16, 19), "5": (16,), "2": (16,), "3": (14, 15), "6": (16, 19)}
    if len(digits) not in lengths.get(digits[:1], ()) or digits in _TEST_CARDS or len(set(digits)) < 4:
        return False
    if digits[0] == "2" and not 2221 <= int(digits[:4]) <= 2720:
        return False
    doubled = (int(d) * (1 + i % 2) for i, d in enumerate(reversed(digits)))
    return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0


def _is_iban(text: str) -> bool:
    if not 15 <= len(text) <= 34 or text in _TEST_IBANS:
        return False
    return int("".join(str(int(c, 36)) for c in text[4:] + text[:4])) % 97 == 1


def _national(text: bytes) -> set[str]:
    found = {m.group().decode("latin-1").replace(" ", "") for m in _NINO.finditer(text)}
    for match in _SSN.finditer(text):
        area, group, serial = match.group().decode().split("-")
        if area not in {"000", "666", "123", "987"} and area < "900" and group != "00" and serial != "0000":
            found.add(match.group().decode())
    return found


def _rows(text: bytes) -> set[str]:
    """People whose address stands close to a phone, a card or a birth date: a record, not a mention."""
    rows = set()
    header_has_birth = bool(_BIRTH.search(text[:400]))
    for match in _MAIL.finditer(text):
        mail = match.group().decode("latin-1").casefold()
        if mail in rows or not _is_person(mail):
            continue
        near = text[max(0, match.start() - _NEAR) : match.end() + _NEAR]
        if header_has_birth or _has_phone(near) or any(_is_card(_digits(m.group())) for m in _CARD.finditer(near)):
            rows.add(mail)
    return rows


def _has_phone(near: bytes) -> bool:
    return any(not _FICTION.search(match.group()) for match in _PHONE.finditer(near))
