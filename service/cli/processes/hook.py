"""`faultline hook slurm|kubernetes|command`: carry out resubmission requests at a scheduler."""

import argparse
import importlib
import logging
import os
import pwd
import socket
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from service import settings
from service.cli import output
from service.cli.argument_types import Subparsers
from service.cli.files import read_token
from service.clock import Clock, SystemClock
from service.deliveries.channels import signing
from service.errors import ConfigurationError, Unavailable
from service.hooks.action_journal import Journal
from service.hooks.lease_client import LeaseClient, ServiceRefused, ServiceUnavailable
from service.hooks.options import HookOptions, read
from service.hooks.request import Scheduler
from service.hooks.runner import HookRunner, RunnerOptions
from service.hooks.webhook_listener import WakeUp, WebhookListener
from service.setting_texts import small_text
from service.shutdown import SignalShutdownFlag

if TYPE_CHECKING:
    from service.hooks.slurm.client import SlurmClient


log = logging.getLogger(__name__)

KINDS = {
    "slurm": "requeue or submit Slurm jobs",
    "kubernetes": "create Kubernetes Jobs again",
    "command": "run a program for each request",
}
FLAG_ONLY = ("command",)
LEASE_BEYOND_S = 10  # the program is terminated before its lease expires
MARGIN_S = 5.0


def add_parser(commands: Subparsers) -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser(
        "hook",
        help="carry out resubmission requests at a scheduler",
        description="Each option can also be set as FAULTLINE_HOOK_NAME, for example FAULTLINE_HOOK_POLL_S.",
    )
    kinds = parser.add_subparsers(dest="kind", required=True)
    for kind, summary in KINDS.items():
        one = kinds.add_parser(kind, help=summary, description=f"{summary}; see deploy/hooks/README.md")
        for name, field in HookOptions.model_fields.items():
            about = str(field.description)
            of = about.partition(":")[0]
            if name in FLAG_ONLY or (of in KINDS and of != kind):
                continue
            flag = f"--{name.replace('_', '-')}"
            if field.annotation is bool:
                one.add_argument(flag, action=argparse.BooleanOptionalAction, default=None, help=about)
            else:
                one.add_argument(flag, metavar=name.upper(), help=about)
        one.add_argument("--once", action="store_true", help="run one round, then exit")
    for name, about in (
        ("kubeconfig", "kubeconfig file, outside the cluster"),
        ("context", "context of the kubeconfig"),
    ):
        kinds.choices["kubernetes"].add_argument(f"--{name}", help=about)
    kinds.choices["command"].add_argument(
        "command_words", nargs="+", metavar="PROGRAM", help="the program with its arguments, after --"
    )


def run(args: argparse.Namespace) -> int:
    """Run until SIGTERM or SIGINT; with --once, for one round.

    Raises:
        ConfigurationError: an option, a file or the state folder is wrong.
        Unavailable: with --once, if the service does not answer or refuses.
    """
    flags: dict[str, Any] = {name: getattr(args, name, None) for name in HookOptions.model_fields if name != "command"}
    if args.kind == "command":
        flags["command"] = tuple(args.command_words)
    options = read(flags, os.environ)
    settings.refuse_unknown(os.environ)  # FAULTLINE_DRY_RUN=true must not start a hook that acts
    # Not the worker's logging setup, which would import the whole service; a hook stays small.
    output.log_to_stderr()
    clock = SystemClock()
    stop = SignalShutdownFlag()
    stop.listen()
    with ExitStack() as stack:
        # Slurm's commands may outlive a killed hook, and lock its folder until they end.
        patience_s = options.slurm_timeout_s if args.kind == "slurm" else 0.0
        journal = Journal(options.state_dir / args.kind, args.kind, clock, patience_s=patience_s)
        stack.callback(journal.close)
        scheduler = _scheduler(args, options, journal, clock)
        stack.callback(scheduler.close)
        name = f"{args.kind}@{options.name or socket.gethostname()}"
        client = LeaseClient(
            options.url,
            token=None if options.token_file is None else _token(options.token_file),
            hook=name,
            cluster=options.cluster,
            clock=clock,
            tls=options.tls(),
            timeout_s=options.timeout_s,
            margin_s=min(MARGIN_S, options.lease_s / 4),
        )
        stack.callback(client.close)
        runner = HookRunner(client, scheduler, journal, clock, _runner_options(args.kind, options))
        wake_up = WakeUp(stop)
        stack.callback(wake_up.close)
        if options.listen is not None and options.webhook_secret_file is not None:
            keys = _keys(options.webhook_secret_file)
            listener = stack.enter_context(WebhookListener(*options.listens_on(), keys, wake_up.notify, clock))
            log.info("listening for webhooks at %s, port %d", options.listens_on()[0], listener.port)
        log.info("%s serves the requests of cluster %s%s", name, options.cluster, _dry(options))
        if args.once:
            _once(runner, stop)
        else:
            runner.run(stop, wake_up)
    return 0


def _once(runner: HookRunner, stop: SignalShutdownFlag) -> None:
    try:
        runner.round(stop.is_set)
    except (ServiceUnavailable, ServiceRefused) as error:
        raise Unavailable(str(error)) from None


def _scheduler(args: argparse.Namespace, options: HookOptions, journal: Journal, clock: Clock) -> Scheduler:
    if args.kind == "slurm":
        from service.hooks.slurm.scheduler import SlurmOptions, SlurmScheduler  # noqa: PLC0415 - one scheduler a process
        from service.hooks.slurm.scripts import ScriptStore  # noqa: PLC0415 - as above
        from service.hooks.slurm.tools import SlurmCommands  # noqa: PLC0415 - as above

        commands = SlurmCommands(options.slurm_bin, timeout_s=options.slurm_timeout_s, held_open=journal.fileno())
        tools = commands if options.slurmrestd is None else _slurmrestd(options, commands, clock)
        chosen = SlurmOptions(
            as_root=os.geteuid() == 0,
            user=user_name(),
            save_scripts=options.save_scripts,
            link=options.write_back,
            spool=options.spool,
            settle_s=options.settle_s,
            timeout_s=options.slurm_timeout_s,
        )
        return SlurmScheduler(tools, ScriptStore(options.state_dir / "scripts", clock), clock, chosen)
    if args.kind == "command":
        from service.hooks.command import CommandScheduler  # noqa: PLC0415 - as above

        return CommandScheduler(options.command, timeout_s=options.command_timeout_s)
    made: Scheduler = importlib.import_module("service.hooks.kubernetes.scheduler").connect(
        args.kubeconfig, args.context
    )
    return made


def user_name() -> str | None:
    """Return the name of this process's user; None if it has none."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return None


def _slurmrestd(options: HookOptions, commands: "SlurmClient", clock: Clock) -> "SlurmClient":
    from service.hooks.slurm.rest import SlurmRest  # noqa: PLC0415 - one scheduler a process
    from service.hooks.slurm.rest_call import SlurmRestTransport, token_of  # noqa: PLC0415 - as above

    reference = options.slurmrestd_token
    token = None if reference is None else token_of(reference)
    caller = SlurmRestTransport(
        options.slurmrestd or "", clock=clock, token=token, tls=options.tls(), timeout_s=options.slurm_timeout_s
    )
    return SlurmRest(caller, commands, clock)


def _runner_options(kind: str, options: HookOptions) -> RunnerOptions:
    """Return the runner's options; a lease must outlast the execution of a request."""
    # Of Slurm, a lease takes two commands at least: the questions before a step, and the step itself.
    steps_s = {"command": options.command_timeout_s, "slurm": 2 * options.slurm_timeout_s}.get(kind)
    least = 0 if steps_s is None else int(steps_s) + LEASE_BEYOND_S
    return RunnerOptions(options.cluster, options.poll_s, max(options.lease_s, least), options.dry_run)


def _token(path: Path) -> Callable[[], str]:
    """Return a function that reads the token again at each call: a new one may have replaced it."""

    def read() -> str:
        try:
            return read_token(path)
        except ConfigurationError as error:
            raise ServiceRefused(error.detail) from None

    read_token(path)
    return read


def _keys(path: Path) -> Callable[[], Sequence[bytes]]:
    def read_keys() -> Sequence[bytes]:
        try:
            keys = [signing.key_of(line) for line in small_text(path, "ascii").split()]
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"{path} can't be read as the webhooks' secret: {error}") from None
        if not keys:
            raise ConfigurationError(f"{path} holds no secret")
        return keys

    read_keys()
    return read_keys


def _dry(options: HookOptions) -> str:
    return " (dry run)" if options.dry_run else ""
