"""Hostile repositories: nothing of theirs runs, nothing they pretend is believed, and what cannot be read refuses."""

import hashlib
import os
import subprocess
import zlib
from pathlib import Path

import pytest

from ringfence.promotion.check import blast, check
from ringfence.promotion.objects import BadObject, parse_tree
from ringfence.promotion.repository import Repository


def codes(verdict):
    return {reason.code for reason in verdict.reasons}


def git(folder, *words):
    env = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
    }
    done = subprocess.run(["git", *words], cwd=folder, env=env, check=True, capture_output=True, timeout=60)
    return done.stdout.decode().strip()


def test_configuration_and_hooks_of_the_repository_run_nothing(shop, tmp_path):
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    case = shop.change().write()
    (shop.git_dir / "config").write_text(
        "[core]\n\trepositoryformatversion = 1\n\tbare = true\n"
        f"\tfsmonitor = {trap}\n\thooksPath = {tmp_path}\n\tsshCommand = {trap}\n\tpager = {trap}\n\talternateRefsCommand = {trap}\n"
        f"[diff]\n\texternal = {trap}\n[include]\n\tpath = /dev/zero\n[extensions]\n\tpartialClone = origin\n"
        f'[remote "origin"]\n\turl = ext::{trap}\n\tpromisor = true\n[uploadpack]\n\tpackObjectsHook = {trap}\n'
    )
    hooks = shop.git_dir / "hooks"
    hooks.mkdir()
    (hooks / "post-checkout").symlink_to(trap)
    assert not case.check().reasons
    missing = check(str(shop.git_dir), "main", "e" * 40, str(shop.trust), str(case.evidence), at=1)
    assert codes(missing) == {"repository.unreadable"}
    assert not (tmp_path / "sprung").exists()


def test_replace_refs_and_grafts_are_not_seen(shop, double):
    case = shop.change({f"services/cart/r{i}.py": b"R\n" for i in range(12)}).write()
    clean = shop.change().write()
    shop.objects.ref(f"refs/replace/{case.head}", clean.head)
    (shop.git_dir / "info").mkdir()
    (shop.git_dir / "info" / "grafts").write_text(f"{case.head} {shop.base}\n")
    assert git(shop.git_dir, "rev-parse", f"{case.head}^{{tree}}") == git(
        shop.git_dir, "rev-parse", f"{clean.head}^{{tree}}"
    )
    assert "blast.paths" in codes(case.check())


def test_an_object_that_is_not_what_its_id_says_is_found(shop):
    case = shop.change().write()
    path = shop.git_dir / "objects" / case.head[:2] / case.head[2:]
    honest = shop.change().write()
    other = shop.git_dir / "objects" / honest.head[:2] / honest.head[2:]
    path.write_bytes(other.read_bytes())
    verdict = case.check()
    assert codes(verdict) == {"repository.unreadable"}


@pytest.mark.parametrize("raw", [b"", b"x", zlib.compress(b"commit 5\0abc")])
def test_broken_objects_refuse(shop, raw):
    case = shop.change().write()
    (shop.git_dir / "objects" / case.content[:2] / case.content[2:]).write_bytes(raw)
    assert codes(case.check()) == {"repository.unreadable"}


def test_a_shallow_clone_is_refused_with_the_remedy(shop):
    case = shop.change().write()
    (shop.git_dir / "shallow").write_text(shop.base + "\n")
    verdict = case.check()
    assert codes(verdict) == {"repository.unreadable"}
    assert "full history" in verdict.reasons[0].found


def test_borrowed_objects_are_refused(shop):
    case = shop.change().write()
    (shop.git_dir / "objects" / "info").mkdir()
    (shop.git_dir / "objects" / "info" / "alternates").write_text("/srv/other/objects\n")
    assert codes(case.check()) == {"repository.unreadable"}


def test_attributes_and_ignored_submodules_hide_nothing(shop):
    files = {
        ".gitattributes": b"* -diff linguist-generated\n",
        ".gitmodules": b'[submodule "v"]\n\tpath = v\n\turl = x\n\tignore = all\n',
        "v": ("160000", "b" * 40),
        "services/cart/long.py": b"".join(b"A%d\n" % i for i in range(9000)),
    }
    verdict = shop.change(files).check()
    assert {"blast.protected_path", "blast.submodule", "blast.bytes"} <= codes(verdict)


@pytest.mark.parametrize("name", [b".git", b".GIT", b"..", b"git~1", b".g\xe2\x80\x8cit", b"a\\b", b"a\nb", b"\xff"])
def test_names_that_no_honest_tree_holds_refuse(shop, name):
    objects = shop.objects
    blob = objects.write("blob", b"x")
    tree = objects.raw_tree([("100644", name, blob)])
    case = shop.change().write()
    case.head = objects.commit(tree, [case.content])
    assert codes(case.check()) == {"repository.unreadable"}


def test_trees_out_of_order_twice_or_with_odd_modes_are_bad(shop):
    blob = "a" * 40
    for entries in (
        [("100644", b"b", blob), ("100644", b"a", blob)],
        [("100644", b"a", blob), ("100644", b"a", blob)],
        [("100666", b"a", blob)],
    ):
        raw = b"".join(m.encode() + b" " + n + b"\0" + bytes.fromhex(o) for m, n, o in entries)
        with pytest.raises(BadObject):
            parse_tree("f" * 40, raw)


@pytest.mark.parametrize(
    "name", ["nope", "-x", "../x", "main^", "main:promotion", "refs/heads/ma*", "", "a" * 39, "\0"]
)
def test_names_that_are_no_refs_refuse(shop, name):
    assert codes(check(str(shop.git_dir), "main", name, None, None, at=1)) == {"repository.unreadable"}


def test_refs_are_found_loose_packed_and_through_head(shop, double):
    case = shop.change().write()
    shop.objects.ref("refs/heads/agent/x", case.head)
    (shop.git_dir / "packed-refs").write_text(f"# pack-refs\n{case.head} refs/heads/packed\n")
    (shop.git_dir / "HEAD").write_text("ref: refs/heads/agent/x\n")
    with Repository(str(shop.git_dir)) as opened:
        assert {opened.resolve(n) for n in ("agent/x", "refs/heads/agent/x", "packed", "HEAD")} == {case.head}


def test_a_packed_repository_in_a_work_tree_is_read(shop, tmp_path, double):
    case = shop.change().write()
    shop.objects.ref("refs/heads/agent", case.head)
    shop.objects.ref("refs/tested/x", case.tested)
    git(tmp_path, "clone", "-q", "--no-local", str(shop.git_dir), "work")
    git(tmp_path / "work", "fetch", "-q", "origin", "refs/tested/x:refs/tested/x")
    git(tmp_path / "work", "worktree", "add", "-q", "--detach", "../linked", "origin/main")
    git(
        tmp_path / "work",
        "-c",
        "user.name=x",
        "-c",
        "user.email=x@x.example",
        "tag",
        "-a",
        "-m",
        "t",
        "tagged",
        case.head,
    )
    for folder in ("work", "linked"):
        for head in ("origin/agent", "tagged"):
            verdict = check(
                str(tmp_path / folder), "origin/main", head, str(shop.trust), str(case.evidence), at=double.NOW
            )
            assert verdict.outcome.word == "human_review", verdict.reasons


def test_not_a_repository(tmp_path):
    assert codes(check(str(tmp_path), "main", "x", None, None, at=1)) == {"repository.unreadable"}


def test_histories_without_a_common_ancestor_refuse(shop):
    case = shop.change().write()
    case.head = shop.objects.commit(shop.base_tree, [])
    assert codes(case.check()) == {"repository.unreadable"}


def test_a_base_without_policy_refuses(shop, double):
    case = shop.change().write()
    assert codes(
        check(str(shop.git_dir), shop.root, case.head, str(shop.trust), str(case.evidence), at=double.NOW)
    ) == {"policy.unreadable"}


def test_a_base_that_moved_under_the_change_is_held(shop, double):
    case = shop.change().write()
    moved = shop.objects.commit(
        shop.objects.tree({**shop.files, "services/cart/app.py": b"B\n"}), [shop.base], name="Noor"
    )
    verdict = check(str(shop.git_dir), moved, case.head, str(shop.trust), str(case.evidence), at=double.NOW)
    assert (verdict.outcome.word, codes(verdict)) == ("hold_for_explanation", {"base.moved"})


def test_a_base_that_moved_elsewhere_is_no_matter(shop, double):
    case = shop.change().write()
    moved = shop.objects.commit(
        shop.objects.tree({**shop.files, "services/mail/app.py": b"B\n"}), [shop.base], name="Noor"
    )
    verdict = check(str(shop.git_dir), moved, case.head, str(shop.trust), str(case.evidence), at=double.NOW)
    assert (verdict.outcome.word, codes(verdict)) == ("human_review", set())


def queue_commit(shop, case, files):
    return shop.objects.commit(shop.objects.tree(files), [shop.base, case.head], name="Forge", message="queue")


def test_the_merge_queue_commit_is_judged_by_the_head_it_joins(shop, double):
    case = shop.change().write()
    files = {**case.files, "promotion.json": double.text(case.promo)}
    case.head = queue_commit(shop, case, files)
    verdict = case.check()
    assert (verdict.outcome.word, codes(verdict)) == ("human_review", set())
    assert verdict.head == case.head


def test_a_merge_with_content_of_its_own_is_refused(shop, double):
    case = shop.change().write()
    files = {**case.files, "promotion.json": double.text(case.promo), "services/cart/app.py": b"evil\n"}
    case.head = queue_commit(shop, case, files)
    assert {"sha.not_parent"} <= codes(case.check())


def test_a_token_for_a_merge_with_content_of_its_own_is_refused(shop):
    case = shop.change()
    files = {**case.files, "services/cart/app.py": b"other\n"}
    case.claims["sha"] = shop.objects.commit(shop.objects.tree(files), [shop.base, case.content], name="Forge")
    assert "identity.wrong_claims" in codes(case.check())


def test_a_token_for_a_merge_with_a_stranger_is_refused(shop):
    case = shop.change()
    stranger = shop.objects.commit(shop.base_tree, [])
    case.claims["sha"] = shop.objects.commit(shop.objects.tree(case.files), [stranger, case.content], name="Forge")
    assert "identity.wrong_claims" in codes(case.check())


def test_a_branch_that_took_in_the_base_is_judged_by_its_own_changes(shop, double):
    first = shop.objects.commit(shop.objects.tree({**shop.files, "services/cart/a.py": b"A\n"}), [shop.base])
    moved_files = {**shop.files, "services/mail/app.py": b"B\n", "AUTHORS": b"n\n"}
    moved = shop.objects.commit(shop.objects.tree(moved_files), [shop.base], name="Noor")
    shop.files = {**moved_files, "services/cart/a.py": b"A\n"}
    merge = shop.objects.commit(shop.objects.tree(shop.files), [first, moved], message="take in main")
    case = shop.change(parents=[merge])
    case.claims["sha"] = case.content
    case.statements[2]["predicate"].update(
        treeBefore=shop.objects.tree(moved_files), treeAfter=shop.objects.tree(moved_files)
    )
    case.write()
    verdict = check(str(shop.git_dir), moved, case.head, str(shop.trust), str(case.evidence), at=double.NOW)
    assert (verdict.outcome.word, codes(verdict)) == ("human_review", set()), verdict.reasons
    assert verdict.numbers["paths"] == 3


def test_blast_alone_counts_and_proves_nothing(shop):
    case = shop.change({"services/cart/x.so": b"\0"}).write()
    verdict = blast(str(shop.git_dir), "main", case.head)
    assert verdict.dry_run
    assert codes(verdict) == {"blast.bytes"}
    assert verdict.numbers["opaque_files"] == 1


def test_links_and_pipes_in_the_evidence_folder_are_not_followed(shop, double, tmp_path):
    case = shop.change().write()
    real = tmp_path / "elsewhere.json"
    real.write_bytes((case.evidence / "sandbox.json").read_bytes())
    for make in (lambda p: p.symlink_to(real), os.mkfifo, lambda p: p.mkdir()):
        path = case.evidence / "sandbox.json"
        path.unlink()
        make(path)
        verdict = check(str(shop.git_dir), "main", case.head, str(shop.trust), str(case.evidence), at=double.NOW)
        assert verdict.outcome.word == "refuse"
        assert "check.fault" not in codes(verdict)
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        path.write_bytes(real.read_bytes())


def test_a_hash_of_sha256_length_is_read_by_that_algorithm(tmp_path):
    git(tmp_path, "init", "-q", "--bare", "--object-format=sha256", "long.git")
    raw = b"blob 1\0x"
    oid = hashlib.sha256(raw).hexdigest()
    path = Path(tmp_path / "long.git" / "objects" / oid[:2] / oid[2:])
    path.parent.mkdir()
    path.write_bytes(zlib.compress(raw))
    with Repository(str(tmp_path / "long.git")) as opened:
        opened.resolve(oid)
        assert opened.blob(oid) == b"x"


def test_nothing_is_left_behind(shop, tmp_path, monkeypatch):
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "t"))
    (tmp_path / "t").mkdir()
    shop.change().check()
    assert list((tmp_path / "t").iterdir()) == []


def test_a_refused_answer_does_not_spoil_the_next_one(shop):
    objects = shop.objects
    forged = objects.write("blob", b"%s commit 3\nabc\n" % shop.base.encode())
    with Repository(str(shop.git_dir)) as opened:
        opened.resolve(shop.base)
        for oid in (forged, "e" * 40):
            with pytest.raises(BadObject):
                opened.commit(oid)
        assert opened.commit(shop.base).tree == shop.base_tree
        with pytest.raises(BadObject):
            opened.blob(shop.base)


def test_trees_that_unfold_without_end_refuse_in_time(shop):
    objects = shop.objects
    tree = objects.raw_tree([("100644", b"%d" % i, objects.write("blob", b"x")) for i in range(10)])
    for _ in range(9):
        tree = objects.raw_tree([("40000", b"%d" % i, tree) for i in range(10)])
    case = shop.change().write()
    case.head = objects.commit(tree, [case.content])
    verdict = case.check()
    assert codes(verdict) == {"repository.unreadable"}
    assert "split the change" in verdict.reasons[0].found


STALLS = {
    "blanks-after-quotes": ("a.py", b"'" + b" " * 60_000 + b'"' + b"\t" * 60_000),
    "newlines-in-yaml": ("a.yaml", b"\n" * 200_000),
    "open-comments": ("db/2.sql", b"/*" * 60_000),
    "open-quotes": ("db/2.sql", b"$a$ $b$ '" * 9_000),
    "newlines-in-sql": ("db/2.sql", b"\n" * 200_000),
    "mails": ("a.txt", b"a@b.cc " * 30_000),
    "digits": ("a.txt", b"4 " * 200_000),
    "quotes": ("a.py", b"\"'" * 200_000),
    "percent": ("a.txt", b"%41" * 40_000),
    "tokens": ("a.txt", b"AKIA" + b"QWERTYUIOPASDFGH AKIA" * 20_000),
    "braces": ("a.json", b"{" * 400_000),
    "flow": ("a.yaml", b"[" * 30_000),
    "nested-anchors": ("a.yaml", b"a: &a [1]\n" + b"b: [*a, *a]\n" * 2_000),
}


@pytest.mark.parametrize("name", STALLS)
def test_bytes_made_to_stall_are_judged_in_time(shared_shop, name):
    import time

    path, raw = STALLS[name]
    started = time.process_time()
    verdict = shared_shop.change({path: raw}).check()
    assert time.process_time() - started < 8
    assert verdict.outcome.word in {"refuse", "human_review"}
    assert "check.fault" not in codes(verdict)


def test_a_tag_with_the_name_of_the_base_is_not_taken_for_it(shop):
    """Its policy would be whatever its author wrote there."""
    case = shop.change().write()
    shop.objects.ref("refs/tags/main", case.content)
    with Repository(str(shop.git_dir)) as opened, pytest.raises(BadObject, match="refs/tags/main, refs/heads/main"):
        opened.resolve("main")
    with Repository(str(shop.git_dir)) as opened:
        assert opened.resolve("refs/heads/main") == shop.base
    shop.objects.ref("refs/tags/main", shop.base)
    with Repository(str(shop.git_dir)) as opened:
        assert opened.resolve("main") == shop.base
