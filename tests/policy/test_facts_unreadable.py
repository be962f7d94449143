"""A pattern over a folder that cannot be read is told as not complete, never as one without matches."""

import os

import pytest

from ringfence.policy import facts


@pytest.mark.parametrize(
    ("error", "complete"),
    [(PermissionError(), False), (OSError(5, "input/output error"), False), (FileNotFoundError(), True)],
)
def test_an_unreadable_folder_makes_the_answer_incomplete(tmp_path, monkeypatch, error, complete):
    (tmp_path / "folder").mkdir()
    real = os.listdir

    def listdir(path):
        if str(path).endswith("/folder"):
            raise error
        return real(path)

    monkeypatch.setattr(os, "listdir", listdir)
    fact = facts._glob(f"{tmp_path}/folder/*")  # the one reader of patterns
    assert fact.complete is complete
    assert fact.matches == ()
