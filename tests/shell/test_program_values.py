"""Which words are values of options and which are files: a file that is taken for a value is judged by nobody."""

import pytest

from ringfence.shell.parse import parse_line
from ringfence.shell.programs import PathAccess, read_arguments


def paths(line):
    return {(path.text, path.access) for path in read_arguments(parse_line(line).commands[0]).paths}


@pytest.mark.parametrize(
    "line",
    [
        "zcat -f x", "zcat -d x", "zcat -l x", "bzcat -d x", "xzcat -f x", "xzcat -d x", "zstdcat -l x", "zstdcat -T x", "zstdcat -d x", "lzcat -f x",
        "fmt -t x", "hexdump -L x", "hd -L x", "xxd -t x", "xxd -c 8 x", "sdiff -W x y", "sdiff -l x y", "diff3 -x x y z", "tree --filesfirst x", "tac -s , x", "rev x",
        "pydocstyle -e x", "pydocstyle -s x", "radon cc -s x", "radon cc -j x", "bandit -d x", "vitest -w x", "mocha -w x", "ack foo -C x",
    ],
)  # fmt: skip
def test_a_file_behind_a_flag_is_read(line):
    assert ("x", PathAccess.READ) in paths(line)


@pytest.mark.parametrize(
    "line", ["zstd -T x", "zstd -S x", "unzstd -T x", "lz4 -T x", "isort --sl x", "yapf -i -p x", "xxd -r -c 8 y x", "xxd -r -l 5 -s 2 y x"]
)  # fmt: skip
def test_a_file_behind_a_flag_is_written(line):
    assert ("x", PathAccess.WRITE) in paths(line)


@pytest.mark.parametrize(
    "line",
    ["od -A x -t x1 f", "od -N 5 -j 2 f", "hexdump -n 16 -C f", "hexdump -e '1/1 \"%02x\"' f", "xxd -l 16 f", "xxd -g 1 -c16 f", "strings -n 8 f", "fold -w 80 f", "expand -t 4 f", "diff3 -m f g h", "sdiff -w 100 f g"],
)  # fmt: skip
def test_the_value_of_an_option_is_not_written(line):
    assert all(access is PathAccess.READ for _, access in paths(line))
    assert ("f", PathAccess.READ) in paths(line)


def test_letters_that_stand_apart_are_no_cluster():
    reading = read_arguments(parse_line("xxd -bc ../x").commands[0])
    assert [effect.option for effect in reading.effects] == ["-bc"]
