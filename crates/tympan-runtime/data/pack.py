#!/usr/bin/env python3
"""Packs OpenAI's vocabularies into the files that `src/model/tokens` reads. README.md describes the format.

Usage: pack.py cl100k_base.tiktoken o200k_base.tiktoken
"""

import base64
import gzip
import hashlib
import pathlib
import sys

# The hashes that tiktoken itself checks, from tiktoken_ext/openai_public.py.
PUBLISHED = {
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}

for source in map(pathlib.Path, sys.argv[1:]):
    text = source.read_bytes()
    if hashlib.sha256(text).hexdigest() != PUBLISHED[source.stem]:
        sys.exit(f"{source}: not the published vocabulary")
    tokens = []
    for rank, line in enumerate(text.splitlines()):
        token, number = line.split()
        assert int(number) == rank
        tokens.append(base64.b64decode(token))
    packed = len(tokens).to_bytes(4, "little") + bytes(map(len, tokens)) + b"".join(tokens)
    target = pathlib.Path(__file__).parent / f"{source.stem}.gz"
    target.write_bytes(gzip.compress(packed, 9, mtime=0))
    print(f"{target.name}: {len(tokens)} tokens, {target.stat().st_size} bytes")
