"""A secret in the encodings in which a server may echo it, independent of the redaction code."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote


def encodings(secret: str) -> dict[str, str]:
    """The encoded secret by the encoding's name; JSON-escaped ones without their quotes."""
    data = secret.encode()
    code_by_encoding = {
        "plain": secret,
        "bearer": f"Bearer {secret}",
        "slash": secret.replace("/", "\\/"),
        "unicode": "".join(f"\\u{ord(c):04x}" for c in secret),
        "UNICODE": "".join(f"\\u{ord(c):04X}" for c in secret),
        "mixed": "".join(f"\\u{ord(c):04x}" if i % 3 else c for i, c in enumerate(secret)),
        "nested": json.dumps("".join(f"\\u{ord(c):04x}" for c in secret))[1:-1],
        "quoted": quote(secret, safe=""),
        "percent": "".join(f"%{b:02x}" for b in data),
        "PERCENT": "".join(f"%{b:02X}" for b in data),
        "hex": data.hex(),
        "HEX": data.hex().upper(),
    }
    for before in range(3):
        code = base64.b64encode(b"u:x"[:before] + data + b":end").decode()
        safe = code.replace("+", "-").replace("/", "_")
        code_by_encoding |= {f"base64-{before}": code, f"url-{before}": safe, f"unpadded-{before}": safe.rstrip("=")}
        code_by_encoding[f"basic-{before}"] = quote(base64.b64encode(b"u:x"[:before] + data).decode(), safe="")
    return code_by_encoding


def secret_fragments(secret: str) -> list[bytes]:
    """Byte strings that reveal the secret; of base64 only the part that does not depend on the neighbouring bytes."""
    code_by_encoding = encodings(secret)
    parts = [code for name, code in code_by_encoding.items() if "-" not in name]
    for before in range(3):
        for name in (f"base64-{before}", f"url-{before}"):
            parts.append(code_by_encoding[name][4 if before else 0 : 4 * (len(secret) // 3)])
    return [part.removeprefix("Bearer ").encode() for part in parts]
