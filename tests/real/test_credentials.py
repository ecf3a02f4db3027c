"""A signed bearer token on the real server, one that expires in mid-life, and what is done about it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from pathlib import Path
from typing import Any

import pytest

from letta_tui.transport import Refused, open_connection
from letta_tui.transport.endpoint import direct
from letta_tui.worker.config import Target
from tests.support.seat import Seat, config_for
from tests.support.server import RealServer

pytestmark = pytest.mark.real
SECRET = b"a shared secret of more than thirty-two bytes"


def signed(lives: float, secret: bytes = SECRET, **claims: Any) -> str:
    """A JWT (HS256) that expires in ``lives`` seconds."""
    head = {"alg": "HS256", "typ": "JWT"}
    body = {"exp": int(time.time() + lives), "iss": "tests", **claims}
    parts = [_part(json.dumps(each).encode()) for each in (head, body)]
    return ".".join([*parts, _part(hmac.digest(secret, ".".join(parts).encode(), hashlib.sha256))])


def _part(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@pytest.mark.long
async def test_a_signed_token_that_expires_is_replaced_and_nothing_is_lost(
    own_server: RealServer, tmp_path: Path
) -> None:
    server, secret, token = own_server, tmp_path / "secret", tmp_path / "token"
    conversation = await server.conversation()
    secret.write_bytes(SECRET)
    server.auth = (
        "--ws-auth", "signed-bearer-token", "--ws-shared-secret-file", str(secret),
        "--ws-issuer", "tests", "--ws-max-clock-skew-seconds", "0",
    )  # fmt: skip
    server.restart()
    endpoint = direct(server.url, token_file=token)
    for wrong in (
        signed(60, b"another secret of more than thirty-two bytes"),
        signed(-5),
        signed(60, iss="x"),
    ):
        token.write_text(wrong)
        with pytest.raises(Refused, match="refused the token: it is wrong or has expired"):
            await open_connection(endpoint)
    token.write_text(signed(60))
    target = Target(agent_id=server.agent_id, conversation_id=conversation)
    seat = await Seat.start(config_for(server, tmp_path / "ours", endpoint=endpoint, target=target)).ready()
    try:
        await seat.said("[[say before]]")
        await seat.reply("before")
        await seat.rest()
        token.write_text(signed(-1))
        server.restart()
        failed = await seat.until(
            lambda: seat.connection if seat.connection and seat.connection.phase == "failed" else None,
            what="the token is refused",
        )
        assert failed is not None
        assert f"Put a new one into {token}: it is taken up at once." in failed.words
        assert failed.words in seat.notices
        key = await seat.said("[[say after]]")  # kept, not sent
        token.write_text(signed(60))
        await seat.ready(timeout=30)
        await seat.reply("after")
        await seat.rest()
        row = seat.row_of(key)
        assert row is not None
        assert row.delivery == "delivered"
        assert seat.texts("assistant") == ["before", "after"]
    finally:
        await seat.quit()
