"""What a shape recognises must be canonical: it takes the place of decoding in strict verification."""

import contextlib
import random

import pytest

from ringfence.ledger import canonical, walk
from ringfence.ledger.shapes import MOST_SHAPES, PATIENCE, Shapes, plain
from ringfence.ledger.verdict import Fault

VALUE = {
    "body": {
        "argv": ["git", "add", "a.py"],
        "deep": {
            "limit": -5,
            "none": None,
            "on": True,
            "paths": [{"links": 1, "real": "/x"}, {"links": 2, "real": "/y"}],
        },
        "empty": [],
        "mixed": [1, "two", {"three": 3}],
    },
    "kind": "tool.intent",
    "seq": 7,
    "time": 1_800_000_000_000_000,
}


def line_of(value) -> bytes:
    return canonical.encode(value) + b"\n"


def learned(*values) -> Shapes:
    shapes = Shapes()
    for value in values:
        shapes.learn([value])
    return shapes


def known(shapes: Shapes, line: bytes) -> bool:
    return plain((line,), line) and not shapes.unknown([(0, line)])


def changed(**body):
    return {**VALUE, "body": {**VALUE["body"], **body}}


@pytest.mark.parametrize(
    "value",
    [
        VALUE,
        changed(argv=[]),
        changed(argv=["x"] * 40),
        changed(deep={**VALUE["body"]["deep"], "on": False, "paths": []}),
        {**VALUE, "seq": 0},
        {**VALUE, "seq": 10**15 - 1},
        {**VALUE, "time": 8_999_999_999_999_999},
    ],
)
def test_other_values_in_the_same_members_are_recognised(value):
    assert known(learned(VALUE), line_of(value))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"seq":7', b'"seq":07'),
        (b'"seq":7', b'"seq":7.0'),
        (b'"seq":7', b'"seq":7e1'),
        (b'"seq":7', b'"seq":-0'),
        (b'"seq":7', b'"seq": 7'),
        (b'"seq":7', b'"seq":9007199254740993'),
        (b'"seq":7', b'"seq":7,"seq":7'),
        (b'"seq":7', b'"seq":"7"'),
        (b'"time":1800000000000000', b'"time":9007199254740993'),
        (b'"time":1800000000000000', b'"time":18000000000000000'),
        (b'"limit":-5', b'"limit":-05'),
        (b'"limit":-5', b'"limit":-9007199254740993'),
        (b'"git"', b'"g\\u0069t"'),
        (b'"git"', b'"g\tt"'),
        (b'"git"', b'"g\xc3t"'),
        (b'"git"', b'"g\xfft"'),
        (b'"git"', b'"g\nt"'),
        (b'"git","add"', b'"git",,"add"'),
        (b'["git"', b'[,"git"'),
        (b'"on":true', b'"on":True'),
        (b'"kind":"tool.intent","seq":7', b'"seq":7,"kind":"tool.intent"'),
        (b"}\n", b"} \n"),
        (b"}\n", b"}"),
        (b"}\n", b"}\r\n"),
    ],
)
def test_another_writing_of_the_same_is_not(old, new):
    line = line_of(VALUE)
    assert line.count(old) >= 1
    assert not known(learned(VALUE), line.replace(old, new))


def test_whatever_random_damage_leaves_recognised_is_canonical():
    chance, line = random.Random(5), line_of(VALUE)
    recognised = 0
    for number in range(40_000):
        if number % 2000 == 0:  # shapes that miss too often are not tried any more
            shapes = learned(VALUE, changed(argv=[1]))
        damaged = bytearray(line)
        for _ in range(chance.randint(1, 3)):
            place = chance.randrange(len(damaged))
            match chance.randrange(3):
                case 0:
                    damaged[place] = chance.choice(b'019-.eE"\\{}[],: \n\x00\x1f\x7f\x80aZ')
                case 1:
                    del damaged[place]
                case _:
                    start = chance.randrange(len(damaged))
                    damaged[place:place] = damaged[start : start + chance.randint(1, 12)]
        if known(shapes, bytes(damaged)):
            recognised += 1
            assert damaged.endswith(b"\n")
            canonical.decode(bytes(damaged[:-1]))
    assert recognised > 1000


def test_a_hostile_record_is_matched_in_linear_time_or_not_learned():
    deep: object = "x"
    for _ in range(90):
        deep = [deep, deep] if _ < 8 else [deep]
    assert not known(learned({"body": deep}), line_of({"body": deep}))
    shapes = learned({"body": ["x"] * 3000 + [1]})
    assert known(shapes, line_of({"body": ["x"] * 3000 + [1]}))
    assert not known(shapes, line_of({"body": ["x"] * 3000 + [1]})[:-4] + b",]}\n")
    shapes = learned({"body": [[["x"]]]})
    assert not known(shapes, line_of({"body": [[["x"] * 20] * 20] * 20})[:-3] + b"\n")


SOME = {"b": 1, "d": "x", "e": {}, "g": [[{"p": None}], []]}
VARIANTS = [
    {"body": {}, "kind": "k"},
    {"body": SOME, "kind": "k"},
    {"body": {**SOME, "a": True, "c": [], "f": "y"}, "call": "c", "kind": "k"},
    {"body": {"b": "one", "e": {"in": -1}, "g": 7}, "kind": "k", "mission": "m"},
]


@pytest.mark.parametrize("together", [True, False])
def test_members_that_are_not_always_there_are_recognised_in_every_combination(together):
    shapes = Shapes()
    for values in [VARIANTS] if together else [[value] for value in VARIANTS]:
        shapes.learn(values)
    chance = random.Random(7)
    for _ in range(2000):
        names = [name for name in "abcdefg" if chance.randrange(2)]
        body = {name: chance.choice([v["body"][name] for v in VARIANTS if name in v["body"]]) for name in names}
        line = line_of({"body": body, "kind": "z", **({"call": "c"} if chance.randrange(2) else {})})
        assert known(shapes, line)


def test_what_is_not_in_order_not_separated_or_always_there_is_not_recognised():
    shapes = Shapes()
    shapes.learn(VARIANTS)
    good = b'{"body":{"a":true,"b":1,"d":"x"},"call":"c","kind":"k"}\n'
    assert known(shapes, good)
    for old, new in (
        (b'"a":true,"b":1', b'"b":1,"a":true'),
        (b'"a":true,"b":1', b'"a":true"b":1'),
        (b'"a":true,"b":1', b'"a":true,,"b":1'),
        (b'"a":true', b'"a":true,"a":true'),
        (b'"d":"x"', b'"d":"x",'),
        (b'{"a"', b'{,"a"'),
        (b'"d":"x"', b'"d":"x","new":"x"'),
        (b'"d":"x"', b'"d":7'),
        (b',"kind":"k"', b""),
        (b'"kind":"k"', b'"kind":7'),
        (b'"body":{"a":true,"b":1,"d":"x"},', b""),
        (b'"call":"c","kind":"k"', b'"kind":"k","call":"c"'),
    ):
        assert old in good
        assert not known(shapes, good.replace(old, new, 1)), new


def test_random_damage_of_members_that_may_lack_leaves_recognised_only_what_is_canonical():
    chance = random.Random(8)
    lines = [line_of(value) for value in VARIANTS]
    pieces = [
        b",",
        b"{}",
        b"[]",
        b'"a":true',
        b'"b":1',
        b',"d":"x"',
        b'"e":{"in":-1}',
        b"[[]]",
        b"null",
        b"-",
        b"0",
        b'"',
    ]
    recognised = 0
    for number in range(40_000):
        if number % 2000 == 0:
            shapes = Shapes()
            shapes.learn(VARIANTS)
        damaged = bytearray(chance.choice(lines))
        for _ in range(chance.randint(1, 3)):
            place = chance.randrange(len(damaged))
            damaged[place : place + chance.randrange(9)] = chance.choice([b"", *pieces])
        if known(shapes, bytes(damaged)):
            recognised += 1
            canonical.decode(bytes(damaged[:-1]))
    assert recognised > 100


@pytest.mark.parametrize("size", [1, 40], ids=["short", "long"])
def test_any_number_of_items_with_one_comma_between_two(size):
    item = {f"name-{number:02d}": "x" for number in range(size)}
    shapes = Shapes()
    shapes.learn([{"body": {"many": [[item]]}}])
    one = canonical.encode(item)

    def seen(many: bytes) -> bool:
        return known(shapes, b'{"body":{"many":%s}}\n' % many)

    for many in (b"[]", b"[[]]", b"[[],[]]", b"[[%s]]" % one, b"[[%s,%s,%s],[],[%s]]" % (one, one, one, one)):
        assert seen(many)
    for wrong in (
        b"[[%s,]]",
        b"[[,%s]]",
        b"[[%s],]",
        b"[,[%s]]",
        b"[[%s,,%%s]]",
        b"[[%s%%s]]",
        b"[[%s]",
        b"[[%s]]]",
        b"[%s]",
    ):
        assert not seen((wrong % one).replace(b"%s", one)), wrong


def test_what_is_no_object_is_not_learned():
    shapes = Shapes()
    shapes.learn([["x"], "x"])
    assert shapes.unknown([(0, b'["x"]\n')])


def test_a_shape_that_grows_too_long_is_begun_anew_with_what_came_last():
    shapes = Shapes()
    values = [{"kind": "k", **{f"member-{number}-{n}": "x" for n in range(100)}} for number in range(5)]
    for value in values:
        shapes.learn([value])
        assert known(shapes, line_of(value))
    assert not known(shapes, line_of(values[0]))
    huge = {"kind": "k", **{f"member-{n}": "x" for n in range(1000)}}
    shapes.learn([huge])
    assert not known(shapes, line_of(huge))


def test_shapes_are_few_and_the_one_not_used_gives_way():
    values = [{f"k{number}": 1, "kind": f"kind-{number}"} for number in range(MOST_SHAPES + 5)]
    shapes = learned(*values)
    assert [known(shapes, line_of(value)) for value in values] == [True] * MOST_SHAPES + [False] * 5
    shapes.unknown([(0, line_of(values[0]))] * 5000)
    shapes.learn([values[-1]])
    assert known(shapes, line_of(values[-1]))
    assert sum(known(shapes, line_of(value)) for value in values) == MOST_SHAPES


def test_shapes_that_seldom_match_are_left_alone_and_tried_again_later():
    shapes, strange = learned(VALUE), [(0, line_of({"other": 1}))]
    assert not shapes.unknown([(0, line_of(VALUE))])
    shapes.unknown(strange * (PATIENCE + 1))
    assert shapes.unknown([(7, line_of(VALUE))]) == [(7, line_of(VALUE))]
    for _ in range(3):
        shapes.unknown(strange * PATIENCE)
    assert not shapes.unknown([(0, line_of(VALUE))])


def test_escapes_and_other_alphabets_are_recognised_only_in_their_one_writing():
    shapes = Shapes(any_text=True)
    shapes.learn([VALUE])
    for argument in ('say "é" \\ ', "a\nb\tc\rd\be\ff", "\x1b[31m\x00\x07\x0b\x0e\x1f", "日本 🙂 \x7f", ""):
        assert not shapes.unknown([(0, line_of(changed(argv=[argument])))])
    line = line_of(VALUE)
    for other in (
        b"\\u0067it",
        b"\\u001Bg",
        b"\\u0008",
        b"\\u000a",
        b"\\u0020",
        b"\\u007f",
        b"\\u1b",
        b"\\u0b00",
        b"g\\/t",
        b"\\git",
        b"g\x1ft",
        b"g\nt",
        b'g"t',
        b"git\\",
    ):
        assert shapes.unknown([(0, line.replace(b'"git"', b'"%s"' % other))])


def test_random_damage_of_other_text_leaves_recognised_only_what_is_canonical():
    chance = random.Random(6)
    line = line_of(changed(argv=['"é"', "\\\\n\n", "\u20ac\t\x1b\x0f"]))
    recognised = 0
    for number in range(40_000):
        if number % 2000 == 0:
            shapes = Shapes(any_text=True)
            shapes.learn([VALUE])
        damaged = bytearray(line)
        for _ in range(chance.randint(1, 2)):
            place = chance.randrange(len(damaged))
            if chance.randrange(2):
                damaged[place] = chance.choice(b'01-"\\{}[],:nu/bt \n\x00\x1f\x7f\xc3\xa9\xed')
            else:
                del damaged[place]
        with contextlib.suppress(UnicodeDecodeError):
            damaged.decode()
            if not shapes.unknown([(0, bytes(damaged))]):
                recognised += 1
                canonical.decode(bytes(damaged[:-1]))
    assert recognised > 1000


def test_letters_of_other_alphabets_are_as_plain_as_ascii_and_what_is_no_unicode_is_not_recognised():
    line = line_of(changed(argv=["é", "日本"]))
    assert known(learned(VALUE), line)
    line = line_of({**changed(argv=["日本"]), "prev": "ab", "v": 1})
    with pytest.raises(Fault) as found:
        strict([line] * 3 + [line.replace("日".encode(), b"\xff\xfe\xfd")])
    assert "record 3" in found.value.place


def strict(lines: list[bytes]) -> None:
    walk._strict(lines, walk.Walked(), "segment", 0)
