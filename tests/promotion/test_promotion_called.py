"""What the base's CI pulls in: what cannot be read or followed to its end is refused, never taken for nothing."""

import pytest

from ringfence.promotion.blast import called
from ringfence.promotion.change import Reader
from ringfence.promotion.objects import BadObject, Node


def reader(text):
    def blob(oid):
        if text is None:
            raise BadObject(f"object {oid} is missing")
        return text

    return Reader(
        commit=None,
        tree={"root": {".gitlab-ci.yml": Node(mode="100644", oid="file")}}.__getitem__,
        blob=blob,
        size=None,
        prefetch=None,
        merge_bases=None,
    )


def test_what_a_ci_file_names_counts_as_part_of_it():
    assert called.called_by_ci("root", reader(b"include: ci/a.yml\n")) == ("ci/a.yml", "ci/a.yml/**")


def test_a_ci_file_that_cannot_be_read_is_not_one_that_names_nothing():
    with pytest.raises(BadObject):
        called.called_by_ci("root", reader(None))


def test_more_than_can_be_followed_is_refused():
    lines = b"".join(b"- ci/%d.yml\n" % number for number in range(called._MOST + 1))
    with pytest.raises(BadObject, match="name more than"):
        called.called_by_ci("root", reader(lines))
