"""``ringfence init``: write a starting policy and fixtures that fit the repository, and trust them."""

import argparse
import os

from ringfence.cli.text import one_line
from ringfence.model.errors import PolicyError, RingfenceError
from ringfence.supervisor.paths import Paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ringfence.policy.policy import Policy


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the subcommand."""
    parser.add_argument("directory", nargs="?", default=".", help="the repository (here otherwise)")
    parser.add_argument("--preset", action="append", metavar="NAME", help="use these presets instead of looking")


def run(args: argparse.Namespace, paths: Paths) -> int:
    """Exit 0 when both files are written, checked and trusted; existing files are never overwritten."""
    from ringfence.policy.fixtures import read_fixtures, report, run_fixtures
    from ringfence.policy.load import FILE_NAME, FIXTURES_NAME
    from ringfence.policy.policy import Policy
    from ringfence.policy.starting import detect, starting_fixtures, starting_policy
    from ringfence.sandbox.worktree.repository import find_repository
    from ringfence.supervisor.trusting import this_person, trust

    root = os.path.realpath(args.directory)
    if not os.path.isdir(root):
        raise RingfenceError(
            "not-a-directory",
            "a policy is written into a folder",
            where=root,
            remedy="name the repository's own folder",
        )
    if not os.path.lexists(os.path.join(root, ".git")):
        find_repository(root)  # refuses a repository without a working tree, as a run would
    files = (os.path.join(root, FILE_NAME), os.path.join(root, FIXTURES_NAME))
    for path in files:
        if os.path.lexists(path):
            error = PolicyError(
                "already-there", "the file exists and is not overwritten", where=path, remedy="edit it, or move it away"
            )
            error.exit = 1  # type: ignore[attr-defined]  # the entry point takes an error's own exit code
            raise error
    presets = tuple(args.preset) if args.preset else detect(root)
    text, fixtures = starting_policy(presets), starting_fixtures(presets)
    policy = Policy.parse(text, root=root)  # refuses a folder that is a home or `/` before anything is written
    rows = report(run_fixtures(policy, read_fixtures(fixtures, file=FIXTURES_NAME)))
    if rows:
        raise PolicyError(
            "starting-policy",
            f"the starting policy fails its own fixtures: {rows[0]['command']}",
            remedy="leave out some of the presets, or take `ringfence init` without `--preset`",
        )
    for path, content in zip(files, (text, fixtures), strict=True):
        _write_new(path, content)
    written = Policy.load(files[0])
    trust(paths, root, written.trust_digest, this_person("peer"))
    for path in files:
        print(one_line(f"wrote {path}"))
    print(f"presets: {', '.join(presets)}; trusted as {written.trust_digest[:16]}")
    for name, folder in _unseen_toolchains(written):
        print(
            one_line(f"note: your {name} lies in {folder}; boxes use it once `commands.toolchains` names that folder")
        )
    print("next: commit both files, then `ringfence check` and `ringfence why -- git push`")
    return 0


def _unseen_toolchains(policy: "Policy") -> list[tuple[str, str]]:
    """Programs that this person's PATH finds where no box looks: a version manager's, mostly."""
    import pwd

    from ringfence.sandbox.host import find_toolchains

    found = find_toolchains(os.environ.get("PATH", ""), pwd.getpwuid(os.getuid()).pw_dir, ())
    return [(one.name, one.bin) for one in found if one.bin and one.bin not in policy.trusted_directories]


def _write_new(path: str, content: str) -> None:
    with open(path, "x", encoding="utf-8") as file:
        file.write(content)
        os.fchmod(file.fileno(), 0o644)
