"""Canonical form and tree: one spelling for one value, refusals for what could be read in two ways, proofs that hold."""

import contextlib
import hashlib
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.ledger import canonical, frame, note, tree
from ringfence.model.errors import LedgerError

keys = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=8)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53 - 1), 2**53 - 1) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=20,
)


def reference(value: object) -> bytes:
    """RFC 8785 on the admitted domain, written on its own: UTF-16 order is code point order for ASCII keys."""
    if value is None or value is True or value is False:
        return json.dumps(value).encode()
    if isinstance(value, int):
        return str(value).encode()
    if isinstance(value, str):
        out = ['"']
        for char in value:
            short = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}.get(
                char
            )
            out.append(short or (f"\\u{ord(char):04x}" if ord(char) < 0x20 else char))
        return ("".join(out) + '"').encode()
    if isinstance(value, list):
        return b"[" + b",".join(reference(item) for item in value) + b"]"
    rows = [reference(key) + b":" + reference(value[key]) for key in sorted(value)]
    return b"{" + b",".join(rows) + b"}"


@given(values)
def test_every_admitted_value_has_the_bytes_of_the_standard_and_reads_back(value):
    stored = canonical.encode(value)
    assert stored == reference(value)
    assert canonical.decode(stored) == value


@given(
    values,
    st.sampled_from([1.5, 0.0, 1e300, math.inf, 2**53, -(2**53), 2**64, b"x", {"é": 1}, "\ud800", object()]),
)
def test_what_is_not_admitted_is_refused_wherever_it_hides(value, foreign):
    for hidden in ({"a": value, "b": [foreign]}, [value, {"c": foreign}], {"é" if foreign is None else "k": foreign}):
        with pytest.raises(LedgerError) as refused:
            canonical.encode(hidden)
        assert refused.value.code == "entry-not-canonical"


def test_a_value_that_contains_itself_is_refused():
    value: list = []
    value.append(value)
    with pytest.raises(LedgerError):
        canonical.encode(value)


@pytest.mark.parametrize(
    "stored",
    [
        b'{"a":1,"a":1}',
        b'{"b":1,"a":1}',
        b'{"a": 1}',
        b'{"a":1.0}',
        b'"\\u0041"',
        b'{"a":1}\n',
        b"",
        b"{",
        b"\xff",
        b"[1e2]",
    ],
)
def test_other_spellings_are_not_canonical(stored):
    with pytest.raises(LedgerError):
        canonical.decode(stored)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(stored):
    for reader in (frame.parse_header, frame.parse_commit, note.parse, frame.classify_tail):
        reader(stored)
    with contextlib.suppress(LedgerError):
        assert canonical.encode(canonical.decode(stored)) == stored


def plain_root(leaves: list[bytes]) -> bytes:
    """RFC 6962, 2.1, word for word."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return tree.node_hash(plain_root(leaves[:split]), plain_root(leaves[split:]))


@settings(max_examples=60)
@given(st.integers(1, 70), st.data())
def test_proofs_of_any_tree_hold_and_fail_for_anything_else(size, data):
    leaves = [tree.leaf_hash(bytes([n])) for n in range(size)]
    grown = tree.Range()
    for leaf in leaves:
        grown.add(leaf)
    assert grown.root() == plain_root(leaves)
    first = data.draw(st.integers(0, size - 1))
    before = tree.Range()
    for leaf in leaves[:first]:
        before.add(leaf)
    kept = tree.Leaves(first=first, before=tuple(before.nodes), hashes=tuple(leaves[first:]))
    index, old = data.draw(st.integers(first, size - 1)), data.draw(st.integers(max(first, 1), size))
    proof = tree.inclusion(kept, index, size)
    assert tree.verify_inclusion(leaves[index], index, size, proof, grown.root())
    assert not tree.verify_inclusion(tree.leaf_hash(b"other"), index, size, proof, grown.root())
    assert not tree.verify_inclusion(leaves[index], index, size, (*proof, leaves[0]), grown.root())
    path, old_root = tree.consistency(kept, old, size), plain_root(leaves[:old])
    assert tree.verify_consistency(old, old_root, size, grown.root(), path)
    if old < size:
        assert not tree.verify_consistency(old, tree.leaf_hash(b"other"), size, grown.root(), path)
        assert not tree.verify_consistency(old, old_root, size, tree.leaf_hash(b"other"), path)


def test_known_answers_of_the_tree():
    """The test vectors of Certificate Transparency: eight leaves."""
    inputs = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
    roots = {
        1: "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        2: "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        3: "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        8: "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    }
    grown = tree.Range()
    for number, text in enumerate(inputs, 1):
        grown.add(tree.leaf_hash(bytes.fromhex(text)))
        if number in roots:
            assert grown.root().hex() == roots[number]
