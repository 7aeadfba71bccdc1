"""`recado simulator`: the simulated provider in a process of its own (C35)."""

import asyncio
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import typer
import uvloop

from recado.cli.errors import CommandError
from recado.simulator.behaviour import RequestShares
from recado.simulator.options import SimulatorOptions
from recado.simulator.server import Simulator
from recado.simulator.smpp_centre import OddReceipts

_Share = float


def mount(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "simulator",
        epilog="Example: recado simulator --listen 127.0.0.1:8090 --record sent.jsonl --secret S --lost-share 0.01",
    )(simulator)


def _share(text: str, flag: str) -> typer.models.OptionInfo:
    return typer.Option(flag, min=0.0, max=1.0, metavar="0..1", help=text)  # type: ignore[no-any-return]


def simulator(
    record: Annotated[
        Path, typer.Option("--record", metavar="FILE", help="Where every request is noted, one JSON line each.")
    ],
    secret: Annotated[
        str,
        typer.Option(
            "--secret", envvar="RECADO_SIMULATOR_SECRET", help="Signs the callbacks: the service's bridge secret."
        ),
    ],
    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT", help="Where the provider listens; port 0: any free one.")
    ] = "127.0.0.1:8090",
    token: Annotated[
        str | None,
        typer.Option("--token", envvar="RECADO_SIMULATOR_TOKEN", help="The only bearer token that is let in."),
    ] = None,
    protocol: Annotated[
        Literal["bridge", "cloud", "both"],
        typer.Option("--protocol", help="The bridge protocol, the hosted API of the adapter cloud, or both at once."),
    ] = "both",
    callback_url: Annotated[
        str | None, typer.Option("--callback-url", metavar="URL", help="For sends that name no callbackUrl.")
    ] = None,
    cloud_callback_url: Annotated[
        str | None, typer.Option("--cloud-callback-url", metavar="URL", help="Where the hosted API sends its webhooks.")
    ] = None,
    app_secret: Annotated[
        str | None,
        typer.Option(
            "--app-secret",
            envvar="RECADO_SIMULATOR_APP_SECRET",
            help="Signs the hosted API's webhooks: the service's cloud app secret. Default: --secret.",
        ),
    ] = None,
    smpp: Annotated[
        str | None,
        typer.Option("--smpp", metavar="HOST:PORT", help="Listen as an SMS centre too, over SMPP; port 0: any free."),
    ] = None,
    smtp: Annotated[
        str | None,
        typer.Option("--smtp", metavar="HOST:PORT", help="Listen as a mail server too, over SMTP; port 0: any free."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="The same seed draws the same behaviour.")] = 1,
    latency_ms: Annotated[float, typer.Option("--latency-ms", min=0.0, help="Median time to answer a send.")] = 0.0,
    receipt_ms: Annotated[float, typer.Option("--receipt-ms", min=0.0, help="Median time to each receipt.")] = 200.0,
    retry_after: Annotated[
        int, typer.Option("--retry-after", min=0, max=3600, help="Seconds asked for by a slow-down.")
    ] = 1,
    idempotent: Annotated[
        bool,
        typer.Option(
            "--idempotent",
            help="The bridge answers a repeated Idempotency-Key with the id of the first send, and sends nothing.",
        ),
    ] = False,
    slow_down_share: Annotated[_Share, _share("Sends answered with 429 or 503.", "--slow-down-share")] = 0.0,
    refuse_share: Annotated[_Share, _share("Sends refused for good.", "--refuse-share")] = 0.0,
    lost_share: Annotated[_Share, _share("Sends processed without an answer.", "--lost-share")] = 0.0,
    error_share: Annotated[_Share, _share("Sends processed and answered with a 5xx.", "--error-share")] = 0.0,
    duplicate_share: Annotated[_Share, _share("Receipts that come twice.", "--duplicate-share")] = 0.0,
    early_share: Annotated[_Share, _share("Receipts that come before the answer.", "--early-share")] = 0.0,
    shuffle_share: Annotated[_Share, _share("Messages read before delivered.", "--shuffle-share")] = 0.0,
    unreferenced_share: Annotated[_Share, _share("Receipts without our id.", "--unreferenced-share")] = 0.0,
    undelivered_share: Annotated[_Share, _share("Accepted sends reported failed.", "--undelivered-share")] = 0.0,
    code_share: Annotated[
        list[str] | None,
        typer.Option(
            "--code-share",
            metavar="CODE=0..1",
            help="Sends over the hosted API answered with that error code, such as 131056=0.01; may be repeated.",
        ),
    ] = None,
    unknown_share: Annotated[
        _Share, _share("Receipts over SMPP beside which one of an unknown id comes.", "--unknown-share")
    ] = 0.0,
    malformed_share: Annotated[
        _Share, _share("Receipts over SMPP beside which a malformed one comes.", "--malformed-share")
    ] = 0.0,
    silent_share: Annotated[_Share, _share("Processed sends without receipts.", "--silent-share")] = 0.0,
) -> None:
    """Play a chat-app provider, behind the bridge protocol and as the hosted API, with as much trouble as you ask for;
    with --smpp an SMS centre too, with --smtp a mail server.

    On the record of an earlier run it goes on where that one ended, and sends the receipts that were left.
    `POST /control/…` makes it do things: see docs/simulator.md.
    """
    host, port = _address(listen, "--listen")
    if record.is_dir():
        raise CommandError(f"--record {record} is a folder: name a file")
    try:
        shares = RequestShares(
            slow_down=slow_down_share,
            refuse=refuse_share,
            lost=lost_share,
            error=error_share,
            duplicate=duplicate_share,
            early=early_share,
            shuffle=shuffle_share,
            unreferenced=unreferenced_share,
            undelivered=undelivered_share,
            silent=silent_share,
        )
        options = SimulatorOptions(
            host=host,
            port=port,
            record=record,
            secret=secret,
            token=token,
            app_secret=app_secret,
            protocol=protocol,
            callback_url=callback_url,
            cloud_callback_url=cloud_callback_url,
            codes=_codes(code_share or ()),
            seed=seed,
            shares=shares,
            latency=latency_ms / 1_000,
            receipt_delay=receipt_ms / 1_000,
            retry_after=retry_after,
            idempotent=idempotent,
            smpp=None if smpp is None else _address(smpp, "--smpp"),
            smtp=None if smtp is None else _address(smtp, "--smtp"),
            odd_receipts=OddReceipts(unknown=unknown_share, malformed=malformed_share),
        )
        run_simulator(options)
    except ValueError as error:
        raise CommandError(str(error)) from None


def run_simulator(options: SimulatorOptions) -> None:
    """Run until SIGTERM or SIGINT; prints one line to standard output once it listens."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_until_told(options))


async def _until_told(options: SimulatorOptions) -> None:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    simulator = Simulator(options, tell=lambda line: print(line, file=sys.stderr, flush=True))
    await simulator.start()
    try:
        smpp = f", SMPP on port {simulator.smpp_port}" if options.smpp is not None else ""
        smtp = f", SMTP on port {simulator.smtp_port}" if options.smtp is not None else ""
        print(f"simulator listens on {simulator.url}{smpp}{smtp}, record {options.record}", flush=True)
        await told.wait()
    finally:
        await simulator.stop()


def _codes(given: Iterable[str]) -> dict[int, float]:
    """`131056=0.01` → {131056: 0.01}; ValueError for anything else."""
    codes = {}
    for text in given:
        code, _, share = text.partition("=")
        try:
            codes[int(code)] = float(share)
        except ValueError:
            raise ValueError(f"--code-share {text} is not CODE=SHARE, for example 131056=0.01") from None
        if not 0 <= codes[int(code)] <= 1:
            raise ValueError(f"--code-share {text}: the share is not between 0 and 1")
    return codes


def _address(listen: str, option: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise CommandError(f"{option} {listen} is not HOST:PORT, for example 127.0.0.1:8090")
    return host.strip("[]"), int(port)
