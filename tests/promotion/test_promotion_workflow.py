"""The shipped workflow and template, run job by job on this machine against an issuer that makes the platforms' tokens.

The runner knows as much of both formats as the shipped files use. Each job gets a folder and an environment of its own;
only the jobs that ask for it can mint a token.
"""

import hashlib
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.parse
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
RERUN = """\
set -eu
if ringfence promote attest --platform github --commit 0 --evidence /nonexistent 2>/dev/null; then exit 9; fi
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=0644 -cf "$OUT/cart.tar" services/cart/app.py
grep -q 'return PRICES' services/cart/app.py
"""

# As the real one: what is downloaded is written below the folder by its names, through whatever links stand there.
GH = """\
import pathlib, sys
source, target = map(pathlib.Path, sys.argv[1:])
files = [path for path in source.rglob("*") if path.is_file()]
for path in files:
    place = target / path.relative_to(source)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(path.read_bytes())
sys.exit(0 if files else 1)
"""


class World:
    """Server, trusted repository, issuer and artefact store of one test."""

    def __init__(self, shop, double, folder):
        self.shop, self.double, self.folder = shop, double, folder
        self.store = folder / "store"
        self.trusted = folder / "trusted"
        shutil.copytree(shop.trust, self.trusted / "trust")
        (self.trusted / "rerun.sh").write_text(RERUN)
        hosting = folder / "host" / "orchard"
        hosting.mkdir(parents=True)
        (hosting / "shop").symlink_to(shop.git_dir)
        (hosting / "shop.git").symlink_to(shop.git_dir)
        programs = folder / "bin"
        programs.mkdir()
        self.program(
            programs / "ringfence", f'exec {sys.executable} -m ringfence.cli.main --test-root {folder}/state "$@"'
        )
        # The jobs give away what they are in as root; here whoever runs the tests keeps it.
        self.program(programs / "chown", "exit 0")
        self.program(
            programs / "setpriv",
            f'echo "$@" > {folder}/setpriv; while [ "${{1#--}}" != "$1" ]; do shift; done; exec "$@"',
        )
        self.program(programs / "gh", f'exec {sys.executable} {folder}/gh.py "{self.store}/$3/promotion-evidence" "$9"')
        (folder / "gh.py").write_text(GH)
        self.env = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "HOME": str(folder / "home"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_COUNT": "2",
            "GIT_CONFIG_KEY_0": f"url.file://{folder}/host/.insteadOf",
            "GIT_CONFIG_VALUE_0": "https://github.com/",
            "GIT_CONFIG_KEY_1": f"url.file://{folder}/host/.insteadOf",
            "GIT_CONFIG_VALUE_1": "https://gitlab.example.org/",
        }

    @staticmethod
    def program(path, text):
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def bash(self, script, cwd, env):
        return subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", script],
            cwd=cwd,
            env={**self.env, **env},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


class GitHub:
    """Runs integrations/github/promotion.yml for one event."""

    def __init__(self, world, number, head, run_id, queue=False):
        self.world, self.run_id = world, run_id
        self.text = (ROOT / "integrations/github/promotion.yml").read_text()
        self.flow = yaml.safe_load(self.text)
        key = "event.merge_group" if queue else "event.pull_request"
        self.values = {
            "github.token": "t",
            f"github.{key}.{'base_sha' if queue else 'base.sha'}": world.shop.base,
            f"github.{key}.{'head_sha' if queue else 'head.sha'}": head,
            f"github.{key}.{'base_ref' if queue else 'base.ref'}": "refs/heads/main" if queue else "main",
            "github.event.pull_request.number": str(number) if not queue else "",
        }
        self.flow["env"].update(TRUST="orchard/trusted", ARTIFACT="cart.tar", ROLLBACK=world.double.ROLLBACK)
        self.values.update({f"env.{name}": value for name, value in self.flow["env"].items()})
        self.number, self.head, self.results, self.log = number, head, {}, []

    def lookup(self, expression):
        for term in expression.split("||"):
            word = term.strip()
            value = word[1:-1] if word.startswith("'") else self.values.get(word, "")
            if value:
                return value
        return ""

    def fill(self, value):
        return re.sub(r"\$\{\{(.*?)\}\}", lambda m: self.lookup(m.group(1)), str(value))

    def holds(self, condition, failed):
        if condition is None:
            return not failed
        terms = [term.strip() for term in condition.split("&&")]
        always = "always()" in terms
        told = all(self.lookup(t.split("==")[0]) == t.split("'")[1] for t in terms if "==" in t)
        return told and (always or not failed)

    def run(self):
        for name, job in self.flow["jobs"].items():
            needs = job.get("needs", [])
            needs = [needs] if isinstance(needs, str) else needs
            failed = any(self.results[n] != "success" for n in needs)
            self.results[name] = self.run_job(name, job) if self.holds(job.get("if"), failed) else "skipped"
            self.values[f"needs.{name}.result"] = self.results[name]
        return self.results

    def run_job(self, name, job):
        place = self.world.folder / f"run-{self.run_id}-{name}"
        place.mkdir()
        env = {k: self.fill(v) for k, v in {**self.flow["env"], **job.get("env", {})}.items()}
        env.update(
            GITHUB_SERVER_URL="https://github.com",
            GITHUB_REPOSITORY="orchard/shop",
            GITHUB_OUTPUT=str(place / "output"),
        )
        server = None
        if job["permissions"].get("id-token") == "write":
            server = self.issuer()
            env.update(
                ACTIONS_ID_TOKEN_REQUEST_URL=f"http://127.0.0.1:{server.server_port}/?x=1",
                ACTIONS_ID_TOKEN_REQUEST_TOKEN="b",
            )
        failed = False
        for step in job["steps"]:
            failed |= not self.step(step, place, env, failed)
        if server is not None:
            server.shutdown()
            server.server_close()
        for key, expression in job.get("outputs", {}).items():
            self.values[f"needs.{name}.outputs.{key}"] = self.fill(expression)
        if name == "attest":
            assert not (place / "change").exists()
        return "failure" if failed else "success"

    def step(self, step, place, env, failed):
        sid = step.get("id", "")
        if sid == "install" or not self.holds(step.get("if"), failed):
            self.values[f"steps.{sid}.outcome"] = "skipped"
            return True
        if "uses" in step:
            return self.use(
                step["uses"].split("@")[0], {k: self.fill(v) for k, v in step.get("with", {}).items()}, place
            )
        done = self.world.bash(step["run"], place, {**env, **{k: self.fill(v) for k, v in step.get("env", {}).items()}})
        self.log.append(f"{sid}: {done.returncode}\n{done.stdout}{done.stderr}")
        self.values[f"steps.{sid}.outcome"] = "failure" if done.returncode else "success"
        output = place / "output"
        for line in output.read_text().splitlines() if output.exists() else []:
            key, _, value = line.partition("=")
            self.values[f"steps.{sid}.outputs.{key}"] = value
        output.unlink(missing_ok=True)
        return not done.returncode

    def use(self, action, given, place):
        if action == "actions/checkout" and given.get("repository") == "orchard/trusted":
            shutil.copytree(self.world.trusted, place / given["path"])
        elif action == "actions/checkout":
            assert given["persist-credentials"] == "False"
            done = self.world.bash(
                f"git clone -q --no-checkout https://github.com/orchard/shop {given['path']} && git -C {given['path']} fetch -q origin {given['ref']} && git -C {given['path']} checkout -q --detach {given['ref']}",
                place,
                {},
            )
            assert done.returncode == 0, done.stderr
        elif action == "actions/upload-artifact":
            target = self.world.store / self.run_id / given["name"]
            source = place / given["path"]
            if source.is_dir():
                shutil.copytree(source, target)
            elif source.exists():
                target.mkdir(parents=True)
                shutil.copy(source, target)
        elif action == "actions/download-artifact":
            shutil.copytree(self.world.store / self.run_id / given["name"], place / given["path"])
        else:
            raise AssertionError(action)
        return True

    def issuer(self):
        flow, double = self, self.world.double
        merge = self.world.shop.git_dir / f"refs/pull/{self.number}/merge"

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                assert self.headers["Authorization"] == "bearer b"
                audience = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)["audience"][0]
                case = flow.world.template
                now = int(time.time())
                claims = {
                    **case.claims,
                    "aud": audience,
                    "iat": now,
                    "nbf": now - 300,
                    "exp": now + 300,
                    "run_id": flow.run_id,
                }
                claims.update(
                    sha=merge.read_text().strip(), ref=f"refs/pull/{flow.number}/merge", jti=f"{flow.run_id}-{audience}"
                )
                body = json.dumps({"count": 1, "value": double.ISSUERS["github"].token(claims).decode()}).encode()
                self.send_response(200)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server


@pytest.fixture
def world(shop, double, tmp_path):
    made = World(shop, double, tmp_path)
    made.template = shop.change()
    return made


def push_content(world, files=None):
    """What the agent pushes: the content commit, and the platform's merge of it."""
    case = world.shop.change(files)
    objects = world.shop.objects
    objects.ref(f"refs/heads/agent-{case.number}", case.content)
    objects.ref(f"refs/pull/{case.number}/head", case.content)
    objects.ref(f"refs/pull/{case.number}/merge", case.tested)
    return case


def sandbox_evidence(world, case):
    """What the fence leaves behind, as a ref beside the branch."""
    tree = world.folder / f"sandbox-{case.number}"
    (tree / "services/cart").mkdir(parents=True)
    body = case.files["services/cart/app.py"]
    (tree / "services/cart/app.py").write_bytes(body)
    done = world.bash(RERUN.splitlines()[2].replace("$OUT", str(world.folder)), tree, {})
    assert done.returncode == 0, done.stderr
    artifact = (world.folder / "cart.tar").read_bytes()
    case.sandbox["artifact"]["sha256"] = hashlib.sha256(artifact).hexdigest()
    files = {"sandbox.json": world.double.text(case.sandbox), "artifacts/sandbox/cart.tar": artifact}
    objects = world.shop.objects
    objects.ref(f"refs/ringfence/evidence/{case.content}", objects.commit(objects.tree(files), [], name="Fence"))
    return case.sandbox["artifact"]["sha256"]


def push_evidence(world, case, digest, run_id):
    case.promo.update(sandbox_artifact_sha256=digest, trusted_ci_artifact_sha256=digest, trusted_ci_run_id=run_id)
    objects = world.shop.objects
    head = objects.commit(
        objects.tree({**case.files, "promotion.json": world.double.text(case.promo)}), [case.content], name="Bot"
    )
    merge = objects.commit(
        objects.tree({**case.files, "promotion.json": world.double.text(case.promo)}), [world.shop.base, head]
    )
    objects.ref(f"refs/heads/agent-{case.number}", head)
    objects.ref(f"refs/pull/{case.number}/head", head)
    objects.ref(f"refs/pull/{case.number}/merge", merge)
    return head


def test_github_an_honest_change_goes_through_all_jobs(world):
    case = push_content(world)
    first = GitHub(world, case.number, case.content, "7001")
    assert first.run() == {"look": "success", "rerun": "success", "attest": "success", "check": "failure"}, first.log
    digest = sandbox_evidence(world, case)
    head = push_evidence(world, case, digest, "7001")
    second = GitHub(world, case.number, head, "7002")
    assert second.run() == {"look": "success", "rerun": "skipped", "attest": "skipped", "check": "success"}, second.log
    assert "human_review" in second.log[-1]
    # The merge queue's commit is run again, and judged by the head that it joins.
    objects = world.shop.objects
    queue = objects.commit(
        world.shop.objects.tree({**case.files, "promotion.json": world.double.text(case.promo)}),
        [world.shop.base, head],
    )
    objects.ref("refs/heads/queue", queue)
    third = GitHub(world, case.number, queue, "7003", queue=True)
    assert third.run()["check"] == "success", third.log
    assert third.results["rerun"] == "success"


def test_github_a_false_green_is_attested_as_failed_and_refused(world):
    case = push_content(world, {"services/cart/app.py": b"PRICES = {}\n"})
    first = GitHub(world, case.number, case.content, "7101")
    assert first.run()["rerun"] == "failure"
    assert first.results["attest"] == "success"
    head = push_evidence(world, case, sandbox_evidence(world, case), "7101")
    second = GitHub(world, case.number, head, "7102")
    assert second.run()["check"] == "failure"
    assert "false green" in second.log[-1]


def test_what_a_person_may_explain_is_held_by_the_check_and_not_failed_by_the_scan(world):
    """A failed scan could not be explained: what is only held would be refused for ever."""
    files = {"services/cart/app.py": world.double.APP.replace("3", "4").encode(), "AGENTS.md": b"Run the tests.\n"}
    case = push_content(world, files)
    first = GitHub(world, case.number, case.content, "7801")
    assert first.run()["look"] == "success", first.log
    head = push_evidence(world, case, sandbox_evidence(world, case), "7801")
    second = GitHub(world, case.number, head, "7802")
    assert second.run()["check"] == "failure"
    assert "hold_for_explanation" in second.log[-1], second.log
    lab = GitLab(world, case, "7803")
    looked, done = lab.job("look", lab.flow["look"])
    assert done.returncode == 0, done.stderr
    assert (looked / "looked/secret-scan").read_text() == "passed\n"
    bad = push_content(world, {"services/cart/app.py": b"A = 1\n", "CODEOWNERS": b"* @agent\n"})
    assert GitHub(world, bad.number, bad.content, "7804").run()["look"] == "failure"
    lab = GitLab(world, bad, "7805")
    looked, done = lab.job("look", lab.flow["look"])
    assert (looked / "looked/secret-scan").read_text() == "failed\n"


@pytest.mark.parametrize("base", ["lax", "refs/heads/lax", "mai", "", "main2"])
def test_github_a_base_that_is_not_protected_is_not_judged(world, base):
    case = push_content(world)
    flow = GitHub(world, case.number, case.content, "7901")
    flow.values["github.event.pull_request.base.ref"] = base
    place = world.folder / "alone"
    place.mkdir()
    target = next(step for step in flow.flow["jobs"]["check"]["steps"] if step.get("id") == "target")
    env = {name: flow.fill(value) for name, value in flow.flow["env"].items()}
    assert flow.flow["jobs"]["check"]["steps"].index(target) == 0
    assert not flow.step(target, place, env, failed=False)
    assert "the base is none of: main" in flow.log[-1]


def test_github_evidence_of_another_run_does_not_count(world):
    one, two = (
        push_content(world),
        push_content(world, {"services/cart/app.py": b"def price(n):\n    return PRICES[n]\n"}),
    )
    for case, run_id in ((one, "7201"), (two, "7202")):
        assert GitHub(world, case.number, case.content, run_id).run()["attest"] == "success"
    head = push_evidence(world, two, sandbox_evidence(world, two), "7201")
    last = GitHub(world, two.number, head, "7203")
    assert last.run()["check"] == "failure"
    assert "identity.wrong_claims" in last.log[-1]


def test_github_evidence_cannot_reach_the_trust_folder(world):
    """Anybody who can push brings a link in the evidence ref, and a run whose files go through it."""
    case = push_content(world)
    thief = world.store / "7301" / "promotion-evidence" / "more"
    thief.mkdir(parents=True)
    (thief / "keys.json").write_text('{"keys": []}')
    digest = sandbox_evidence(world, case)
    objects = world.shop.objects
    files = {"sandbox.json": world.double.text(case.sandbox), "more": ("120000", b"../trusted/trust")}
    objects.ref(f"refs/ringfence/evidence/{case.content}", objects.commit(objects.tree(files), [], name="Agent"))
    last = GitHub(world, case.number, push_evidence(world, case, digest, "7301"), "7302")
    assert last.run()["check"] == "failure"
    given = world.folder / "run-7302-check" / "trusted" / "trust"
    assert {p.name: p.read_bytes() for p in given.iterdir()} == {
        p.name: p.read_bytes() for p in world.shop.trust.iterdir()
    }


def test_github_code_of_the_change_cannot_write_the_rehearsal_or_the_scan(world):
    forged = '{"environment": "staging", "command": "x", "exitCode": 0, "treeBefore": "", "treeAfter": ""}'
    (world.trusted / "rerun.sh").write_text(RERUN + f"echo '{forged}' > \"$OUT/rehearsal.json\"\n")
    case = push_content(world)
    first = GitHub(world, case.number, case.content, "7401")
    assert first.run()["attest"] == "success", first.log
    stated = (world.store / "7401" / "promotion-evidence" / "ci.intoto.jsonl").read_text().splitlines()
    rehearsal = json.loads(stated[2])["predicate"]
    assert rehearsal["command"] == world.double.ROLLBACK
    assert rehearsal["treeBefore"] == world.shop.base_tree


def test_github_what_the_scan_and_the_rehearsal_found_comes_from_a_job_without_code_of_the_change():
    """The runner's own memory is in the reach of what runs beside it: whoever owns the machine writes its outputs."""
    jobs = yaml.safe_load((ROOT / "integrations/github/promotion.yml").read_text())["jobs"]
    assert [name for name, job in jobs.items() if any("rerun.sh" in step.get("run", "") for step in job["steps"])] == [
        "rerun"
    ]
    assert "outputs" not in jobs["rerun"]
    assert jobs["attest"]["env"] == {
        "SCAN": "${{ needs.look.outputs.scan }}",
        "UNIT": "${{ needs.rerun.result }}",
        "REHEARSAL": "${{ needs.look.outputs.rehearsal }}",
    }


def test_github_nothing_outside_the_file_chooses_what_it_runs_and_believes():
    """A caller's inputs, and variables that whoever may write to a repository sets for it, could name another rerun.sh."""
    text = (ROOT / "integrations/github/promotion.yml").read_text()
    used = set(re.findall(r"\$\{\{(.*?)\}\}", text))
    words = {word for expression in used for word in re.findall(r"[a-z_]+(?=\.)", expression) if "." in expression}
    assert words & {"inputs", "vars", "secrets"} == set()
    assert "workflow_call" not in text
    assert "workflow_dispatch" not in text
    assert set(re.findall(r"repository: (.*?),", text)) == {'"${{ env.TRUST }}"'}


def test_github_the_workflow_grants_no_more_than_it_says():
    flow = yaml.safe_load((ROOT / "integrations/github/promotion.yml").read_text())
    assert flow["permissions"] == {}
    grants = {name: job["permissions"] for name, job in flow["jobs"].items()}
    assert grants == {
        "look": {"contents": "read"},
        "rerun": {"contents": "read"},
        "attest": {"id-token": "write"},
        "check": {"contents": "read", "actions": "read"},
    }
    for job in flow["jobs"].values():
        for step in job["steps"]:
            assert "${{" not in step.get("run", "")
            assert re.fullmatch(r"[a-z/-]+@[0-9a-f]{40}", step.get("uses", "a@" + "0" * 40))
            assert not step.get("continue-on-error")
    events = flow[True]  # YAML 1.1 reads the key `on` as true
    assert events.keys() == {"pull_request", "merge_group"}


def flat(script):
    for item in script:
        yield from flat(item) if isinstance(item, list) else [item]


class GitLab:
    """Runs the jobs of integrations/gitlab/promotion.gitlab-ci.yml as a downstream pipeline in the trusted project."""

    def __init__(self, world, case, run_id):
        self.world, self.run_id = world, run_id
        self.flow = yaml.safe_load((ROOT / "integrations/gitlab/promotion.gitlab-ci.yml").read_text())
        self.env = {
            **{k: v for k, v in self.flow["variables"].items() if k != "GIT_STRATEGY"},
            "ARTIFACT": "cart.tar",
            "CI_SERVER_URL": world.double.GITLAB,
            "CI_SERVER_HOST": "gitlab.example.org",
            "CI_PROJECT_PATH": "orchard/trusted",
            "CI_PIPELINE_ID": run_id,
            "CI_COMMIT_REF_NAME": "main",
            "CI_JOB_TOKEN": "glcbt-of-the-trusted-project",
            "RINGFENCE_CI_CONFIG": "promotion.yml",
            "CHANGE_PROJECT": "orchard/shop",
            "CHANGE_BASE": world.shop.base,
            "CHANGE_HEAD": case.content,
        }

    def job(self, name, job, given=(), **env):
        place = self.world.folder / f"lab-{self.run_id}-{name}"
        place.mkdir()
        if job.get("variables", {}).get("GIT_STRATEGY") == "clone":
            shutil.copytree(self.world.trusted, place, dirs_exist_ok=True)
            (place / ".git").mkdir()
            (place / ".git/config").write_text(
                "url = https://gitlab-ci-token:glcbt@gitlab.example.org/orchard/trusted.git\n"
            )
        for source in given:
            shutil.copytree(source, place / source.name)
        script = "\n".join(flat(job["script"]))
        done = self.world.bash(script, place, {**self.env, **env})
        return place, done

    def token(self, audience):
        now = int(time.time())
        claims = self.world.shop.change(platform="gitlab").claims
        claims.update(
            aud=audience, iat=now, nbf=now - 5, exp=now + 3600, pipeline_id="999", pipeline_source="parent_pipeline"
        )
        return self.world.double.ISSUERS["gitlab"].token(claims).decode()


def test_gitlab_an_honest_change_goes_through_all_jobs(world):
    case = world.shop.change(platform="gitlab")
    world.shop.objects.ref(f"refs/heads/agent-{case.number}", case.content)
    first = GitLab(world, case, "8001")
    looked, done = first.job("look", first.flow["look"])
    assert done.returncode == 0, done.stderr
    place, done = first.job("rerun", first.flow["rerun"])
    assert done.returncode == 0, done.stderr
    assert not (place / "looked").exists()
    place, done = first.job("attest", first.flow["attest"], [looked / "looked", place / "out"])
    assert done.returncode == 0, done.stderr
    assert not (place / "change.git").exists()
    child = yaml.safe_load((place / "bind.yml").read_text())["bind"]
    audience = child["id_tokens"]["RINGFENCE_TOKEN"]["aud"]
    place, done = first.job("bind", child, [place / "evidence"], RINGFENCE_TOKEN=first.token(audience))
    assert done.returncode == 0, done.stderr
    evidence = place / "evidence"
    digest = sandbox_evidence(world, case)
    (evidence / "sandbox.json").write_bytes(world.double.text(case.sandbox))
    (evidence / "artifacts/sandbox").mkdir()
    shutil.copy(world.folder / "cart.tar", evidence / "artifacts/sandbox")
    head = push_evidence(world, case, digest, "8001")
    second = GitLab(world, case, "8002")
    second.env["CHANGE_HEAD"] = head
    _, done = second.job("check", second.flow["check"], EVIDENCE_DIR=str(evidence))
    assert done.returncode == 0, done.stdout + done.stderr
    # A token for other statements is not taken, neither by the job nor by the gate.
    _, done = first.job("bind-again", child, [evidence], RINGFENCE_TOKEN=first.token("promotion+sha256:" + "0" * 64))
    assert done.returncode == 20
    head = push_evidence(world, case, digest, "8003")
    second.env["CHANGE_HEAD"] = head
    _, done = second.job("check-again", second.flow["check"], EVIDENCE_DIR=str(evidence))
    assert done.returncode == 20
    assert "8003" in done.stdout


def test_gitlab_what_the_scan_found_is_out_of_the_changes_reach():
    flow = yaml.safe_load((ROOT / "integrations/gitlab/promotion.gitlab-ci.yml").read_text())
    assert flow["look"]["artifacts"]["paths"] == ["looked"]
    assert flow["rerun"]["artifacts"]["paths"] == ["out"]
    assert not any("rerun.sh" in line for line in flat(flow["look"]["script"]))
    assert not any("promote" in line for line in flat(flow["rerun"]["script"]))
    read = " ".join(flat(flow["attest"]["script"]))
    assert "looked/secret-scan" in read
    assert "looked/rehearsal.json" in read
    assert "out/secret-scan" not in read


def test_gitlab_the_changes_code_reaches_no_token_of_the_trusted_project(world):
    """With it the code could start pipelines there, with variables of its own, and upload what later jobs take as theirs."""
    (world.trusted / "rerun.sh").write_text(
        'env > "$OUT/env"\nls -a .. > "$OUT/beside"\ncp services/cart/app.py "$OUT/cart.tar"\n'
    )
    case = world.shop.change(platform="gitlab")
    world.shop.objects.ref(f"refs/heads/agent-{case.number}", case.content)
    flow = GitLab(world, case, "8201")
    place, done = flow.job("rerun", flow.flow["rerun"])
    assert done.returncode == 0, done.stderr
    assert {line.split("=")[0] for line in (place / "out/env").read_text().splitlines()} <= {
        *("PATH", "HOME", "OUT", "PWD", "OLDPWD", "SHLVL", "_")
    }
    assert ".git" not in (place / "out/beside").read_text().split()
    asked = (world.folder / "setpriv").read_text().split()
    assert {"--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"} <= set(asked)
    for name, job in flow.flow.items():
        if name in {"look", "attest", "bind", "check"}:
            assert "rerun.sh" not in str(job)


def test_gitlab_a_job_that_cannot_change_its_user_runs_nothing_of_the_change(world):
    World.program(world.folder / "bin" / "setpriv", "exit 1")
    case = world.shop.change(platform="gitlab")
    world.shop.objects.ref(f"refs/heads/agent-{case.number}", case.content)
    flow = GitLab(world, case, "8202")
    place, done = flow.job("rerun", flow.flow["rerun"])
    assert done.returncode != 0
    assert not (place / "out/cart.tar").exists()


def test_gitlab_a_base_that_is_not_on_the_target_branch_is_refused(world):
    """Its policy would be whatever the change's author wrote there."""
    case = world.shop.change(platform="gitlab")
    objects = world.shop.objects
    lax = objects.commit(world.shop.base_tree, [world.shop.base], name="Agent", message="my own base")
    objects.ref("refs/heads/agent-base", lax)
    objects.ref(f"refs/heads/agent-{case.number}", case.content)
    flow = GitLab(world, case, "8101")
    flow.env["CHANGE_BASE"] = lax
    for name in ("look", "check"):
        _, done = flow.job(name, flow.flow[name], EVIDENCE_DIR="/nonexistent")
        assert done.returncode == 1
        assert "the base is not on main" in done.stderr
