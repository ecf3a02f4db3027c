"""From a command line to a worker: which server, which conversation, and who keeps the server alive."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import uuid
from dataclasses import replace
from pathlib import Path

from letta_tui import __version__
from letta_tui.commands.context import Context
from letta_tui.commands.errors import USAGE, CommandError
from letta_tui.commands.keeper_port import KeeperAdapter
from letta_tui.config import DEFAULT_API_KEY_ENV, Profile, repository_of
from letta_tui.keeper.options import KeeperOptions, KeeperPaths
from letta_tui.keeper.program import NoProgram, find_letta
from letta_tui.ledger.peek import last_used
from letta_tui.paths import DEMO_PROFILE, Paths
from letta_tui.transport.connection import Refused
from letta_tui.transport.credentials import missing_key
from letta_tui.transport.endpoint import Endpoint, direct, hosted, server_key
from letta_tui.worker.config import HostedOptions, Mode, Target, WorkerConfig

_BESIDE = "keep-"


def worker_config(args: argparse.Namespace, context: Context) -> WorkerConfig:
    """What the worker is started with. Makes the profile's folders; raises ``CommandError``."""
    context.paths.create()
    endpoint = endpoint_for(args, context)
    cwd = working_folder(args.cwd, context.profile)
    confined = confined_to(args, endpoint, context.profile)
    return WorkerConfig(
        ledger_path=context.paths.ledger,
        cache_path=context.paths.cache_db,
        endpoint=endpoint,
        keeper=keeper_for(endpoint, context, confined),
        target=Target(
            agent_id=args.agent or (None if args.conversation else context.profile.agent or None),
            conversation_id=args.conversation,
            new=args.new,
            default=args.default,
        ),
        mode=mode_of(args.mode),
        cwd=str(cwd),
        cwd_explicit=args.cwd is not None,
        window_id=new_window_id(),
        tools=context.profile.tools,
        mcp=context.profile.mcp,
        skill_sources=context.profile.skill_sources,
        toolset=context.profile.toolset,
        toolset_include=context.profile.toolset_include,
        client_version=__version__,
        hosted=hosted_options(context.profile),
        long_turn=context.profile.notification_seconds,
        notifications=context.profile.notifications,
        confined_to=confined or "",
    )


def hosted_options(profile: Profile) -> HostedOptions:
    return HostedOptions(
        sandbox=profile.sandbox,
        repositories=tuple(repository_of(text) for text in profile.repositories),
        sandbox_minutes=int(profile.sandbox_minutes),
    )


def confined_to(args: argparse.Namespace, endpoint: Endpoint | None, profile: Profile) -> str | None:
    """The agent whose memory is all that the server may write to; ``None`` unless that was asked for."""
    if args.confine is None:
        return None
    if endpoint is not None:
        raise CommandError("--confine is for the embedded server: this one was started by others.", USAGE)
    agent: str = args.agent or profile.agent
    if not agent:
        raise CommandError(
            "--confine memory needs --agent: such a server can write to that agent's memory alone.", USAGE
        )
    return agent


def keeper_for(
    endpoint: Endpoint | None, context: Context, confine_agent: str | None = None
) -> KeeperAdapter | None:
    """Who keeps turns alive when this window dies; ``None`` where the server does it by itself (hosted).

    The embedded server's keeper also starts it. In front of a direct server a keeper only stays subscribed.
    """
    paths, name = keeper_paths(context.paths), context.profile.name
    if endpoint is None:
        options = replace(options_for(context), confine_agent=confine_agent)
        options = with_manners(options, context.profile)
        return KeeperAdapter(paths, options, name, variables=context.profile.environment)
    if endpoint.kind != "direct":
        return None
    options = with_manners(watching_options(endpoint, context.profile.idle_minutes * 60), context.profile)
    return KeeperAdapter(beside(paths, endpoint), options, name, server=endpoint)


def with_manners(options: KeeperOptions, profile: Profile) -> KeeperOptions:
    """How the keeper calls a person whose windows are closed."""
    return replace(
        options,
        notify=profile.notifications == "on",
        notify_after=profile.notification_seconds,
        notify_details=profile.notification_details,
    )


def options_for(context: Context) -> KeeperOptions:
    """How the embedded server of the profile is run; the demo's has folders and a model of its own."""
    if context.profile.name == DEMO_PROFILE and DEMO_PROFILE not in context.config.profiles:
        from letta_tui.keeper.client import KeeperError
        from letta_tui.practice.demo import prepare

        try:
            return prepare(context.paths).options
        except KeeperError as error:
            raise CommandError(str(error)) from None
    return keeper_options(context.profile)


def watching_options(endpoint: Endpoint, idle_seconds: float = 0) -> KeeperOptions:
    """Options for a keeper in front of a server that somebody else runs. Raises ``CommandError``."""
    if endpoint.kind != "direct":
        raise CommandError("A keeper is for direct servers: a hosted runtime goes on by itself.", USAGE)
    return KeeperOptions(
        url=endpoint.url,
        token=endpoint.token,
        token_file=endpoint.token_file,
        token_command=endpoint.token_command,
        token_env=endpoint.token_env,
        ca_file=endpoint.ca_file,
        idle_seconds=idle_seconds,
    )


def beside(paths: KeeperPaths, endpoint: Endpoint) -> KeeperPaths:
    """Folders of its own for each direct server, so that the embedded server's keeper is not in the way."""
    name = hashlib.sha256(server_key(endpoint).encode()).hexdigest()[:8]
    return KeeperPaths(state=paths.state / f"{_BESIDE}{name}", runtime=paths.runtime / name)


def keepers_beside(paths: KeeperPaths) -> list[KeeperPaths]:
    """The folders of every keeper that has been in front of a direct server."""
    try:
        folders = sorted(p for p in paths.state.iterdir() if p.name.startswith(_BESIDE))
    except OSError:
        return []
    return [KeeperPaths(p, paths.runtime / p.name.removeprefix(_BESIDE)) for p in folders if p.is_dir()]


def mode_of(name: str | None) -> Mode | None:
    """The permission mode that was named; ``None`` leaves it to the rules for new and resumed ones."""
    known: tuple[Mode, ...] = ("standard", "acceptEdits", "unrestricted", "strict")
    return next((mode for mode in known if mode == name), None)


def working_folder(named: str | None, profile: Profile) -> Path:
    """The folder the agent's tools work in: named now, by the profile, or the current one."""
    try:
        folder = Path(named).expanduser().absolute() if named else profile.cwd or Path.cwd()
    except (OSError, RuntimeError, ValueError):
        raise CommandError("The current folder no longer exists; name one with --cwd.", USAGE) from None
    if not folder.is_dir():
        raise CommandError(f"The working folder {folder} does not exist or is no folder.", USAGE)
    return folder


def endpoint_for(args: argparse.Namespace, context: Context) -> Endpoint | None:
    """The server that was asked for; ``None`` is the embedded one.

    ``--url`` wins, then a profile that names a server. Otherwise the conversation one would come back to
    decides: it is opened on the server it was on.
    """
    if args.url:
        return remember(context.paths, named_endpoint(args.url, args.token_file))
    if context.profile.kind != "embedded":
        return profile_endpoint(context.profile)
    if args.profile is not None:
        return None
    last = last_used(context.paths.ledger, args.agent or "", args.conversation or "")
    if last is None or last.kind != "direct":
        return None
    token_file = _known_endpoints(context.paths).get(last.server_key)
    return named_endpoint(last.label, token_file)


def named_endpoint(url: str, token_file: str | None) -> Endpoint:
    """A server somebody named by its address."""
    try:
        return direct(url, token_file=Path(token_file).expanduser().absolute() if token_file else None)
    except Refused as error:
        raise CommandError(error.words, USAGE) from None


def profile_endpoint(profile: Profile) -> Endpoint:
    """The server of a direct or hosted profile."""
    token = _from_keyring(profile.keyring) if profile.keyring else None
    try:
        if profile.kind == "direct":
            return direct(
                profile.url,
                token=token,
                token_file=profile.token_file,
                token_command=profile.token_command,
                token_env=profile.token_env,
                ca_file=profile.ca_file,
            )
        return hosted(
            profile.api_base,
            device_id=profile.device,
            token=token,
            token_file=profile.token_file,
            token_command=profile.token_command,
            token_env=profile.token_env or DEFAULT_API_KEY_ENV,
            ca_file=profile.ca_file,
        )
    except Refused as error:
        raise CommandError(error.words, USAGE) from None


def key_trouble(profile: Profile) -> str:
    """One sentence when the profile's token or key is not there; the keyring is not asked."""
    if profile.kind == "embedded" or profile.keyring:
        return ""
    try:
        return missing_key(profile_endpoint(profile))
    except CommandError as error:
        return str(error)


def _from_keyring(entry: str) -> str:
    service, _, user = entry.partition("/")
    try:
        import keyring
    except ImportError:
        raise CommandError(
            "The profile's keyring entry needs a package: pip install 'letta-tui[keyring]'.", USAGE
        ) from None
    try:
        key = keyring.get_password(service, user or service)
    except Exception as error:  # every backend has errors of its own
        said = (str(error) or type(error).__name__).splitlines()[0].split(". ")[0].rstrip(".")
        raise CommandError(f"The keyring gave no answer: {said}.") from None
    if not key:
        raise CommandError(f"The keyring has no entry {entry!r}.")
    return key


def need_letta(context: Context) -> None:
    """Say at once that there is no server to start, unless one is running already."""
    need_program(options_for(context), keeper_paths(context.paths))


def need_program(options: KeeperOptions, paths: KeeperPaths) -> None:
    """Raises ``CommandError`` when there is neither a ``letta`` program nor a keeper that has found one."""
    try:
        find_letta(options.letta, os.environ)
    except NoProgram as missing:
        if not asyncio.run(_keeper_runs(paths)):
            raise CommandError(str(missing)) from None


async def _keeper_runs(paths: KeeperPaths) -> bool:
    from letta_tui.keeper.client import find_keeper

    handle = await find_keeper(paths)
    if handle is None:
        return False
    await handle.close()
    return True


def new_window_id() -> str:
    """Names this window in drafts and decisions."""
    return uuid.uuid4().hex[:12]


def keeper_paths(paths: Paths) -> KeeperPaths:
    return KeeperPaths(state=paths.state, runtime=paths.runtime)


def keeper_options(profile: Profile) -> KeeperOptions:
    """How an embedded server of this profile is run."""
    environment: dict[str, str | None] = dict(profile.environment)
    if not profile.telemetry:
        environment.setdefault("LETTA_CODE_TELEM", "0")
    if not profile.self_update:
        environment.setdefault("DISABLE_AUTOUPDATER", "1")
    return KeeperOptions(letta=profile.letta, server_env=environment, idle_seconds=profile.idle_minutes * 60)


def remember(paths: Paths, endpoint: Endpoint) -> Endpoint:
    """Keep where the token of a server named on the command line is, so that it can be come back to."""
    known = _known_endpoints(paths)
    key = server_key(endpoint)
    token_file = str(endpoint.token_file) if endpoint.token_file else None
    if key in known and (token_file is None or known[key] == token_file):
        if endpoint.token_file is None and known[key]:
            return replace(endpoint, token_file=Path(known[key] or ""))
        return endpoint
    if endpoint.token_file is not None and not endpoint.token_file.exists():
        return endpoint  # mistyped: nothing to come back to
    known[key] = token_file
    file = _endpoints_file(paths)
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        draft.write_text(json.dumps(known, indent=2), encoding="ascii")
        draft.replace(file)
    except OSError:
        draft.unlink(missing_ok=True)  # a convenience: the person can name the file again
    return endpoint


def _endpoints_file(paths: Paths) -> Path:
    return paths.state / "endpoints.json"


def _known_endpoints(paths: Paths) -> dict[str, str | None]:
    try:
        raw = json.loads(_endpoints_file(paths).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return {}
    if not isinstance(raw, dict):
        return {}
    return {str(k): v for k, v in raw.items() if v is None or isinstance(v, str)}
