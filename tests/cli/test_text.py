"""Untrusted names in what a person reads: no control character, no line that is not ours."""

from ringfence.cli import run
from ringfence.cli.text import escape, one_line


def test_a_name_cannot_make_a_line_of_its_own():
    assert one_line("a\nringfence: all is well\tx\r") == "a\\x0aringfence: all is well\\x09x\\x0d"
    assert escape("a\nb\x1b[31m\u202e") == "a\nb\\x1b[31m\\u202e"


def test_every_line_of_a_report_is_one_line(capsys):
    message = {"exit": 0, "messages": ["not applied, refused: a\nringfence: all is well: why"]}
    run._finish(message, run.Options(), (0, 1, 2))
    assert capsys.readouterr().err.count("\n") == 1
