"""Walks the way back once: merges the change into the base in a throwaway clone, runs an allowed rollback command, compares trees.

It runs the change's scripts if the command is one of them, so it belongs into the re-run job, which holds no token.
"""

import os
import shlex
import shutil
import subprocess
import tempfile

from ringfence.model.errors import PromotionError
from ringfence.promotion.change import base_file
from ringfence.promotion.objects import BadObject
from ringfence.promotion.ownership import matching_template
from ringfence.promotion.policy import POLICY_PATH, parse_policy
from ringfence.promotion.repository import Repository
from ringfence.promotion.strict import Malformed, Value

_PATH = "/usr/local/bin:/usr/bin:/bin"
_TIMEOUT = 600
_WHO = ("-c", "user.name=rehearsal", "-c", "user.email=rehearsal@ringfence.invalid", "-c", "commit.gpgsign=false")


def rehearse(
    repo: str, base: str, head: str, command: str, *, environment: str, state: str | None, deploy: str | None = None
) -> dict[str, Value]:
    """The predicate of a rehearsal statement. Raises PromotionError where the command is not the base's or cannot run.

    ``state`` and ``deploy`` are commands of the operator (words, no shell), for rollbacks that act on a deployment: the
    first prints the tree id of what is deployed, before and after; the second brings the merged tree there. Without
    them the clone's own tree is compared.
    """
    base_id, head_id, argv = _resolve(repo, base, head, command)
    with tempfile.TemporaryDirectory(prefix="ringfence-rehearsal-") as folder:
        clone = os.path.join(folder, "clone")
        _git(folder, "clone", "-q", "--no-checkout", "--no-local", os.path.realpath(repo), clone)
        _git(clone, "checkout", "-q", "--detach", base_id)
        before = _state(clone, state)
        _git(clone, *_WHO, "merge", "-q", "--no-ff", "-m", "rehearsal", head_id)
        merge = _git(clone, "rev-parse", "HEAD")
        if deploy is not None and _run(clone, shlex.split(deploy)):
            raise PromotionError(
                "promotion-unreadable", "the deploy command failed", where=deploy[:80], remedy="mend it"
            )
        words = [word.replace("{merge}", merge) for word in argv]
        code = _run(
            clone, [words[0], *_WHO, *words[1:]] if words[0] == "git" else [_inside(clone, words[0]), *words[1:]]
        )
        after = _state(clone, state)
    return {
        "environment": environment,
        "command": command,
        "exitCode": code,
        "treeBefore": before,
        "treeAfter": after,
    }


def _resolve(repo: str, base: str, head: str, command: str) -> tuple[str, str, tuple[str, ...]]:
    try:
        with Repository(repo) as opened:
            base_id, head_id = opened.resolve(base), opened.resolve(head)
            reader = opened.reader()
            policy = parse_policy(base_file(reader.commit(base_id), POLICY_PATH, reader))
    except (BadObject, Malformed) as error:
        raise PromotionError(
            "promotion-unreadable", str(error), where=repo, remedy="mend the repository or policy"
        ) from None
    argv = matching_template(command, policy)
    if argv is None:
        raise PromotionError(
            "promotion-not-allowed",
            "the command is none of the base's rollback_commands",
            where=POLICY_PATH,
            remedy="use one of: " + "; ".join(policy.rollback_commands),
        )
    return base_id, head_id, argv


def _inside(clone: str, program: str) -> str:
    path = os.path.realpath(os.path.join(clone, program))
    if not path.startswith(os.path.realpath(clone) + os.sep) or not os.access(path, os.X_OK):
        raise PromotionError(
            "promotion-not-allowed",
            f"{program[:80]!a} is not an executable of the repository",
            remedy="name a script of the repository or git",
        )
    return path


def _state(clone: str, state: str | None) -> str:
    if state is None:
        return _git(clone, "rev-parse", "HEAD^{tree}")
    words = shlex.split(state)
    done = subprocess.run(
        words, cwd=clone, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT, check=False
    )
    text = done.stdout.decode("ascii", "replace").strip()
    if done.returncode or not text:
        raise PromotionError("promotion-unreadable", "the state command failed", where=words[0], remedy="mend it")
    return text[:128]


def _run(clone: str, argv: list[str]) -> int:
    done = subprocess.run(
        argv, cwd=clone, env=_env(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=_TIMEOUT, check=False
    )
    return done.returncode


def _git(folder: str, *words: str) -> str:
    git = shutil.which("git", path=_PATH)
    if git is None:
        raise PromotionError("promotion-unreadable", "git is not installed", remedy="install git")
    done = subprocess.run(
        [git, "-c", "core.hooksPath=/dev/null", *words],
        cwd=folder,
        env=_env(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_TIMEOUT,
        check=False,
    )
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()[-200:]
        raise PromotionError(
            "promotion-unreadable",
            f"git {words[0] if words[0] != '-c' else words[-1][:12]} failed: {said!a}",
            where=folder,
            remedy="the change may conflict with the base: rebase it",
        )
    return done.stdout.decode("ascii", "replace").strip()


def _env() -> dict[str, str]:
    return {
        "PATH": _PATH,
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_EDITOR": "true",
    }
