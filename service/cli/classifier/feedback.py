"""`faultline feedback JOB --wrong [--cause CODE] | --right`: the vote of a job's submitter, sent to the API."""

import argparse
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from classifiers import taxonomy
from service.api_client import ApiClient, ApiResponse, ApiUnreachable, address_of
from service.cli import exit_codes, output
from service.cli.argument_types import Subparsers
from service.cli.files import read_token
from service.cli.output import add_json_option, json_document
from service.errors import ConfigurationError, InvalidInput, NotFound, Unavailable
from service.internet_addresses import LOOPBACK
from service.setting_texts import CLIENT_TOKEN_FILE, CLIENT_URL

_SHOWN_JOBS: Final = 20


def add_parser(commands: Subparsers) -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser(
        "feedback",
        help="say whether the verdict on your job is right",
        description="Records a vote on the newest failure of a job. Operators see it; it becomes a label if one of "
        f"them agrees. Needs a token that may read the job ({CLIENT_TOKEN_FILE}).",
    )
    parser.add_argument("job", help="the id of the job")
    answer = parser.add_mutually_exclusive_group(required=True)
    answer.add_argument("--right", action="store_true", help="the verdict is right")
    answer.add_argument("--wrong", action="store_true", help="the verdict is wrong")
    parser.add_argument("--cause", help="with --wrong: the code of the right cause, such as USER.4")
    parser.add_argument("--note", help="a sentence for the operators")
    parser.add_argument("--cluster", help="the cluster of the job, where several have a job of this id")
    parser.add_argument("--url", help=f"where Faultline is (default: {CLIENT_URL}, else http://127.0.0.1:8080)")
    parser.add_argument("--token-file", type=Path, help=f"file with the API token (default: {CLIENT_TOKEN_FILE})")
    parser.add_argument("--allow-http", action="store_true", help="send the token without TLS beyond this machine")
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    """Send the vote, and print what it is about.

    Raises:
        InvalidInput: an unknown cause, or jobs of several clusters.
        ConfigurationError: the address or the file of the token can't be used.
        NotFound: no failure of this job is visible with the token.
        Unavailable: the service does not answer, or refuses the vote.
    """
    vote = _vote(args)
    client = _client(args)
    try:
        failure = _newest_failure(client, args.job, args.cluster)
        path = f"/failures/{failure['id']}/feedback"
        receipt = _checked(client.request("POST", path, json.dumps(vote).encode()))
    except ApiUnreachable as error:
        raise Unavailable(str(error)) from None
    finally:
        client.close()
    if args.format == "json":
        json_document({"failure": failure["id"], "vote": vote["kind"], "feedback": receipt.get("feedback_id")})
        return exit_codes.OK
    output.line(f"failure {failure['id']}, job {failure['job_id']} on {failure['cluster']}: {failure['headline']}")
    output.line(f"verdict: {failure['side']}, {failure['cause']}")
    if vote["kind"] == "agree":
        output.line("your vote is saved: the verdict is right")
    else:
        named = f", the cause is {vote['cause']}" if vote.get("cause") else ""
        output.line(f"your vote is saved: the verdict is wrong{named}; an operator decides")
    return exit_codes.OK


def _vote(args: argparse.Namespace) -> dict[str, Any]:
    if args.right:
        if args.cause is not None:
            raise InvalidInput("--cause: expected --wrong with it")
        return {"kind": "agree", "note": args.note}
    if args.cause is None:
        return {"kind": "contest", "note": args.note}
    causes = taxonomy.load().causes
    if args.cause not in causes:
        raise InvalidInput(f"--cause: expected one of {', '.join(causes)}, got {args.cause[:40]}")
    return {"kind": "contest", "side": taxonomy.load().side_of(args.cause), "cause": args.cause, "note": args.note}


def _client(args: argparse.Namespace) -> ApiClient:
    url = args.url or os.environ.get(CLIENT_URL) or "http://127.0.0.1:8080"
    parts = address_of(url)
    if parts is None or parts.username or parts.query:
        raise ConfigurationError("--url: expected an address such as https://faultline.example, without user and query")
    given = os.environ.get(CLIENT_TOKEN_FILE)
    path = args.token_file or (Path(given) if given else None)
    if path is not None and parts.scheme == "http" and parts.hostname not in LOOPBACK and not args.allow_http:
        raise ConfigurationError("--url: expected https, or --allow-http where the network is trusted")
    token = None if path is None else read_token(path)
    return ApiClient(url, token=None if token is None else lambda: token, user_agent="faultline-feedback")


def _newest_failure(client: ApiClient, job: str, cluster: str | None) -> Mapping[str, Any]:
    """The newest failure of a job, as GET /failures describes it."""
    query = {"job": job, "sort": "-ended_at", "limit": str(_SHOWN_JOBS), **({"cluster": cluster} if cluster else {})}
    found = _checked(client.request("GET", f"/failures?{urlencode(query)}"))["items"]
    of_job = [one for one in found if one["job_id"] == job]
    if not of_job:
        others = sorted({one["job_id"] for one in found})
        more = f"; jobs of this name: {', '.join(others)}" if others else ""
        raise NotFound(f"no failure of job {job[:80]} is visible with this token{more}")
    clusters = sorted({one["cluster"] for one in of_job})
    if len(clusters) > 1:
        raise InvalidInput(f"--cluster: expected one of {', '.join(clusters)}, which all have a job {job[:80]}")
    newest: Mapping[str, Any] = of_job[0]
    return newest


def _checked(response: ApiResponse) -> Any:
    """The body of an answer.

    Raises:
        Unavailable: the service refuses; the message is the service's.
    """
    if not response.ok or not isinstance(response.body, Mapping):
        raise Unavailable(response.detail or f"the service answered {response.status}")
    return response.body
