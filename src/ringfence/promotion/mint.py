"""The identity of the CI job that runs this: asks the platform for a token bound to the statements. Touches the network.

A token is asked for only after the statements are final, with their digest as its audience. Where the platform offers
no identity there is none, and nothing is attested.
"""

import json
import os
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass

from ringfence.model.errors import PromotionError
from ringfence.promotion.jws import BadToken, take_apart
from ringfence.promotion.strict import Value

_TIMEOUT = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What this job is, by the claims of its own token."""

    builder: str
    invocation: str
    run_id: str
    pull_request: int | None


def github_job() -> Job:
    """The GitHub Actions job that runs this; raises PromotionError outside one or without ``id-token: write``."""
    claims = _claims(github_token("ringfence-who-am-i"))
    server = os.environ.get("GITHUB_SERVER_URL", "https://github.com")
    words = str(claims.get("ref", "")).split("/")
    number = int(words[2]) if words[:2] == ["refs", "pull"] and len(words) == 4 and words[2].isdigit() else None
    run_id = str(claims.get("run_id", ""))
    invocation = f"{server}/{claims.get('repository')}/actions/runs/{run_id}/attempts/{claims.get('run_attempt')}"
    return Job(
        builder=f"{server}/{claims.get('job_workflow_ref')}", invocation=invocation, run_id=run_id, pull_request=number
    )


def github_token(audience: str) -> bytes:
    """A token of this job for the audience; raises PromotionError."""
    url, bearer = os.environ.get("ACTIONS_ID_TOKEN_REQUEST_URL"), os.environ.get("ACTIONS_ID_TOKEN_REQUEST_TOKEN")
    if not url or not bearer:
        raise no_identity("the job has no permission id-token: write")
    request = urllib.request.Request(  # noqa: S310 - the address is the runner's own, not the change's
        f"{url}&audience={urllib.parse.quote(audience, safe='')}", headers={"Authorization": f"bearer {bearer}"}
    )
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:  # noqa: S310 - as above
            token = json.loads(answer.read(65_536)).get("value")
    except (OSError, ValueError, AttributeError) as error:
        raise no_identity(f"the platform gave no token ({type(error).__name__})") from None
    if not isinstance(token, str):
        raise no_identity("the platform's answer holds no token")
    return token.encode("ascii", "replace")


def gitlab_job() -> Job:
    """The GitLab pipeline that runs this, by the predefined variables of a job; the token of a later child pipeline proves it."""
    names = ("CI_SERVER_URL", "CI_PROJECT_PATH", "CI_PIPELINE_ID", "CI_COMMIT_REF_NAME", "CI_SERVER_HOST")
    values = {name: os.environ.get(name, "") for name in names}
    if not all(values.values()):
        raise no_identity("this is not a GitLab CI job")
    config = os.environ.get("RINGFENCE_CI_CONFIG", os.environ.get("CI_CONFIG_PATH", ".gitlab-ci.yml"))
    place = f"{values['CI_SERVER_HOST']}/{values['CI_PROJECT_PATH']}//{config}"
    run_id = values["CI_PIPELINE_ID"]
    return Job(
        builder=f"https://{place}@refs/heads/{values['CI_COMMIT_REF_NAME']}",
        invocation=f"{values['CI_SERVER_URL']}/{values['CI_PROJECT_PATH']}/-/pipelines/{run_id}",
        run_id=run_id,
        pull_request=None,
    )


def buildkite_job() -> Job:
    """The Buildkite build that runs this; raises PromotionError outside one."""
    names = ("BUILDKITE_ORGANIZATION_SLUG", "BUILDKITE_PIPELINE_SLUG", "BUILDKITE_BUILD_NUMBER")
    organisation, pipeline, number = (os.environ.get(name, "") for name in names)
    if not (organisation and pipeline and number):
        raise no_identity("this is not a Buildkite job")
    builder = f"https://buildkite.com/{organisation}/{pipeline}"
    return Job(builder=builder, invocation=f"{builder}/builds/{number}", run_id=number, pull_request=None)


def buildkite_token(audience: str) -> bytes:
    """A token of this job for the audience; raises PromotionError."""
    try:
        done = subprocess.run(
            ["buildkite-agent", "oidc", "request-token", "--audience", audience],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise no_identity(f"buildkite-agent gave no token ({type(error).__name__})") from None
    return done.stdout.strip()


def given_token(variable: str, audience: str) -> bytes:
    """A token that the platform put into a variable (GitLab's ``id_tokens``), if it is for the audience."""
    token = os.environ.get(variable, "").encode("ascii", "replace")
    if not token or _claims(token).get("aud") != audience:
        raise no_identity(f"{variable} holds no token for these statements")
    return token


_IN_CI = "run `ringfence promote attest` in the attest job of the trusted pipeline, or give --key for plain git"


def no_identity(why: str, remedy: str = _IN_CI) -> PromotionError:
    """The refusal of ``attest`` where nobody can prove who runs it."""
    error = PromotionError(
        "promotion-no-identity",
        f"nothing is attested without a CI identity: {why}",
        remedy=remedy,
    )
    error.exit = 20  # type: ignore[attr-defined] # the command line reads it: a refusal, not a fault
    return error


def _claims(token: bytes) -> dict[str, Value]:
    try:
        return take_apart(token).claims
    except BadToken as error:
        raise no_identity(f"the platform's token is {error}") from None
