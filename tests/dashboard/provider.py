"""An OpenID Connect provider for tests: it signs in whoever it is told to, and asks nothing."""

from __future__ import annotations

import base64
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey


@dataclass
class Provider:
    """Whom it signs in next, and what it was asked."""

    url: str = ""
    claims: dict[str, Any] = field(default_factory=dict)
    codes: dict[str, str] = field(default_factory=dict)
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one"}))
    client: tuple[str, str] = ("whilst", secrets.token_hex(8))

    def token(self, nonce: str) -> str:
        now = int(time.time())
        claims = {"iss": self.url, "aud": self.client[0], "sub": "someone", "nonce": nonce}
        return jwt.encode(
            {"alg": "RS256", "kid": "one"},
            claims | {"iat": now, "exp": now + 600} | self.claims,
            self.key,
        )


class _Handler(BaseHTTPRequestHandler):
    provider: Provider

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        one = self.provider
        if parts.path == "/.well-known/openid-configuration":
            self._json(
                {
                    "issuer": one.url,
                    "authorization_endpoint": f"{one.url}/authorize",
                    "token_endpoint": f"{one.url}/token",
                    "jwks_uri": f"{one.url}/keys",
                    "response_types_supported": ["code"],
                    "subject_types_supported": ["public"],
                    "id_token_signing_alg_values_supported": ["RS256"],
                }
            )
        elif parts.path == "/keys":
            self._json({"keys": [one.key.as_dict(private=False) | {"use": "sig", "alg": "RS256"}]})
        elif parts.path == "/authorize":
            code = secrets.token_hex(8)
            one.codes[code] = asked.get("nonce", "")
            back = urlencode({"code": code, "state": asked["state"]})
            self.send_response(302)
            self.send_header("Location", f"{asked['redirect_uri']}?{back}")
            self.end_headers()
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        asked = {name: values[0] for name, values in parse_qs(body).items()}
        given = self.headers.get("Authorization", "").removeprefix("Basic ")
        client = tuple(base64.b64decode(given).decode().split(":")) if given else ()
        nonce = self.provider.codes.pop(asked.get("code", ""), None)
        if client != self.provider.client or nonce is None:
            self._json({"error": "invalid_client"}, 401)
            return
        self._json(
            {
                "access_token": "none",
                "token_type": "Bearer",
                "expires_in": 600,
                "id_token": self.provider.token(nonce),
            }
        )

    def _json(self, value: object, status: int = 200) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def provider() -> Iterator[Provider]:
    one = Provider()
    handler = type("Handler", (_Handler,), {"provider": one})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    one.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield one
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
