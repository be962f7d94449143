"""The thin client's JSON is the same as json's, both ways, over generated values."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.supervisor import jsontext

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda v: st.lists(v) | st.dictionaries(st.text(), v),
    max_leaves=20,
)


@given(VALUES)
def test_encoding_is_what_json_reads_and_writes(value):
    text = jsontext.encode(value)
    assert text == json.dumps(value, separators=(",", ":"))
    assert jsontext.decode(text) == value


@given(st.text(alphabet='[]{},:"\\ \n0123456789.eE+-truefalsnu', max_size=30))
def test_decoding_agrees_with_json_on_broken_text(text):
    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises(ValueError):
            jsontext.decode(text)
    else:
        assert jsontext.decode(text) == expected


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "", " ", "{} {}", "[1,]", '{"a":1,}', "'a'", '"\n"'])
def test_what_is_not_json_is_refused(text):
    with pytest.raises(ValueError):
        jsontext.decode(text)


def test_what_json_cannot_hold_is_refused():
    for value in (1.5, b"x", {1: 2}, object()):
        with pytest.raises(TypeError):
            jsontext.encode(value)
