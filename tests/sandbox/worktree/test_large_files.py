"""Large files that history only points to, kept in a store beside it that stays in the layer."""

import hashlib

import pytest

pytestmark = pytest.mark.needs_userns

DIGEST = hashlib.sha256(b"large\n").hexdigest()
STORE = f".git/lfs/objects/{DIGEST[:2]}/{DIGEST[2:4]}"
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{DIGEST}\nsize 6\n"
COMMIT = f"printf '{POINTER}' > big.bin; git add big.bin; git commit -qm big"


def taken(bench, **more):
    bench.commit()
    layer = bench.tree.look(bench.mission)
    asked = bench.tree.bundle_request(layer)
    assert asked is not None
    bench.bundle(layer, asked)
    return bench.tree.take_history(layer, bench.rules, now=1, **more)


def test_a_commit_that_points_to_a_large_file_which_stays_in_the_layer_waits(make_bench):
    bench = make_bench()
    bench.box(f"mkdir -p {STORE}; echo large > {STORE}/{DIGEST}; {COMMIT}")
    (held,) = taken(bench).held
    assert (held.name, held.rule) == ("refs/heads/main", "gate/large-file")
    assert "commit it outside" in held.reason
    assert [item.name for item in taken(bench, approved=["refs/heads/main"]).moved] == ["refs/heads/main"]


def test_one_that_points_to_what_the_repository_has_or_nobody_has_goes_through(make_bench):
    bench = make_bench()
    bench.box(COMMIT)
    assert [item.name for item in taken(bench).moved] == ["refs/heads/main"]
    bench.write(f"{STORE}/{DIGEST}", "large\n")
    bench.box(
        f"rm -r .git/lfs; mkdir -p {STORE}; echo large > {STORE}/{DIGEST}; git mv big.bin b; git commit -qm moved"
    )
    assert [item.name for item in taken(bench).moved] == ["refs/heads/main"]
