"""Shared parts of the drivers in tests/interop: servers, a tap between client and server, and counted cases.

Uses only the standard library.
"""

import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

PROMPTS = Path(__file__).parent / "prompts"
# The time limit in seconds for a run of the program, and for any wait within it.
RUN_SECONDS = 60


class Mismatch(Exception):
    """A check failed."""


def same(what, found, expected):
    """Fail unless two values are equal."""
    if found != expected:
        raise Mismatch(f"{what}:\n      expected {expected!r}\n      found    {found!r}")


def holds(what, condition, found):
    """Fail unless a condition holds."""
    if not condition:
        raise Mismatch(f"{what}:\n      found    {found!r}")


class Cases:
    """Runs cases, prints and counts the results."""

    def __init__(self):
        self.passed = 0
        self.failed = 0

    def attempt(self, name, case, *args):
        """Run one case."""
        try:
            case(*args)
        # A case that raises any other exception has failed too, and the remaining cases should still run.
        except Exception as error:
            self.failed += 1
            what = str(error) if isinstance(error, Mismatch) else repr(error)
            print(f"FAIL  {name}\n      {what}", flush=True)
        else:
            self.passed += 1
            print(f"ok    {name}", flush=True)

    def finish(self, fewest):
        """Print the summary and return the exit status. Too few cases are a failure."""
        print(f"{self.passed} passed, {self.failed} failed")
        if self.passed + self.failed < fewest:
            print(f"only {self.passed + self.failed} cases were run; expected {fewest} or more", file=sys.stderr)
            return 1
        return 1 if self.failed else 0


def free_port():
    """Return a port that was unused a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server process that runs until the end of the `with` block.

    `command` builds the command line for a port. If another process takes the port first, the server exits
    immediately and another port is tried.
    """

    def __init__(self, name, command, log, ready="/", seconds=30, env=None, tries=3):
        self.name, self.command, self.log, self.ready, self.seconds = name, command, Path(log), ready, seconds
        self.env, self.tries = {**os.environ, **(env or {})}, tries
        self.process = None
        self.port = None

    def __enter__(self):
        self.log.parent.mkdir(parents=True, exist_ok=True)
        for _ in range(self.tries):
            self.port = free_port()
            with self.log.open("wb") as log:
                self.process = subprocess.Popen(
                    self.command(self.port), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env
                )
            if self.answers():
                return self
            self.stop()
        tail = self.log.read_text(errors="replace")[-2000:]
        raise SystemExit(f"{self.name} does not start; the end of {self.log}:\n{tail}")

    def __exit__(self, *_):
        self.stop()

    def answers(self):
        """Wait until the server answers. Return false if it has exited or does not answer in time."""
        deadline = time.monotonic() + self.seconds
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                urllib.request.urlopen(self.url(self.ready), timeout=5).close()
                return True
            except urllib.error.HTTPError:
                return True
            except OSError:
                time.sleep(0.05)
        return False

    def stop(self):
        """Stop the server."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def url(self, path=""):
        """Return an address of the server."""
        return f"http://127.0.0.1:{self.port}{path}"


class Tap:
    """Forwards bytes between the program and a server, and records both directions.

    With `hold`, the server's bytes stop after the event that contains these bytes, until `release` is called. What the
    program prints in the meantime, it prints while the answer is still in progress.
    """

    def __init__(self, port):
        self.server_port = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.lock = threading.Lock()
        self.connections = []
        self.hold = None
        self.released = threading.Event()
        threading.Thread(target=self.accept, daemon=True).start()

    def url(self, path=""):
        """Return an address of the server, through the tap."""
        return f"http://127.0.0.1:{self.port}{path}"

    def reset(self, hold=None):
        """Clear the recorded bytes. If `hold` is set, hold later answers there."""
        with self.lock:
            self.connections, self.hold, self.released = [], hold, threading.Event()

    def release(self):
        """Forward the rest of a held answer."""
        self.released.set()

    def accept(self):
        """Serve every connection with two threads."""
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(("127.0.0.1", self.server_port))
            sent, answered = bytearray(), bytearray()
            with self.lock:
                self.connections.append((sent, answered))
                hold, released = self.hold, self.released
            threading.Thread(target=self.to_server, args=(client, server, sent), daemon=True).start()
            back = (server, client, answered, hold, released)
            threading.Thread(target=self.to_client, args=back, daemon=True).start()

    def to_server(self, client, server, sent):
        """Forward what the program sends."""
        for piece in pieces(client):
            with self.lock:
                sent += piece
            if not send(server, piece):
                break
        shut(server)

    def to_client(self, server, client, answered, hold, released):
        """Forward what the server sends."""
        for piece in pieces(server):
            with self.lock:
                answered += piece
            if hold is not None:
                end = event_end(answered, hold)
                if end is not None:
                    rest = len(answered) - end
                    if not send(client, piece[: len(piece) - rest]):
                        break
                    released.wait(RUN_SECONDS)
                    piece, hold = piece[len(piece) - rest :], None
            if not send(client, piece):
                break
        shut(client)

    def requests(self):
        """Return the requests since `reset`: request line, headers (with lower-case names) and body."""
        with self.lock:
            return [request for sent, _ in self.connections for request in parse_requests(bytes(sent))]

    def answer(self):
        """Return the body of the only answer since `reset`."""
        with self.lock:
            [(_, answered)] = self.connections
            return parse_answer(bytes(answered))


def pieces(source):
    """Yield the bytes from a socket until it is closed."""
    while True:
        try:
            piece = source.recv(65536)
        except OSError:
            return
        if not piece:
            return
        yield piece


def send(target, piece):
    """Send bytes. Return false if the peer has disconnected."""
    try:
        target.sendall(piece)
    except OSError:
        return False
    return True


def shut(target):
    """Close the sending side of a connection."""
    try:
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def event_end(seen, mark):
    """Return the end of the event that contains a mark."""
    at = seen.find(mark)
    end = seen.find(b"\n\n", at) if at >= 0 else -1
    return end + 2 if end >= 0 else None


def parse_requests(data):
    """Parse consecutive HTTP/1.1 requests."""
    requests = []
    while b"\r\n\r\n" in data:
        head, data = data.split(b"\r\n\r\n", 1)
        lines = head.decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        length = int(headers.get("content-length", 0))
        body, data = data[:length], data[length:]
        requests.append((lines[0], headers, json.loads(body) if body else None))
    return requests


def parse_answer(data):
    """Parse the body of an HTTP/1.1 response, chunked or not."""
    head, rest = data.split(b"\r\n\r\n", 1)
    if b"transfer-encoding: chunked" not in head.lower():
        return rest.decode()
    body = b""
    while rest:
        size, rest = rest.split(b"\r\n", 1)
        length = int(size, 16)
        body, rest = body + rest[:length], rest[length + 2 :]
    return body.decode()


class Run:
    """The result of one run of the program."""

    def __init__(self, status, stdout, stderr):
        self.status, self.stdout, self.stderr = status, stdout, stderr

    def json(self):
        """Return the JSON output of a successful run."""
        if self.status != 0:
            raise Mismatch(f"exit status {self.status}: {self.stderr.strip()}")
        try:
            return json.loads(self.stdout)
        except ValueError:
            raise Mismatch(f"standard output is not JSON: {self.stdout!r}") from None

    def error(self):
        """Return the error that a failed run printed as JSON."""
        same("exit status", self.status, 1)
        try:
            return json.loads(self.stderr[self.stderr.index("{") :])["error"]
        except (ValueError, KeyError):
            raise Mismatch(f"standard error has no JSON error: {self.stderr!r}") from None


class Tympan:
    """The program."""

    def __init__(self, path, env=None):
        self.path = os.path.abspath(path)
        if not os.access(self.path, os.X_OK):
            raise SystemExit(f"{path} is missing: run `cargo build --package tympan-cli`")
        # The surrounding environment must not affect where requests go or which key they use.
        kept = {name: value for name, value in os.environ.items() if not is_foreign(name)}
        self.env = {**kept, "NO_COLOR": "1", **(env or {})}

    def run(self, *args, env=None):
        """Run a command until it exits."""
        command = [self.path, *map(str, args)]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, env={**self.env, **(env or {})},
                timeout=RUN_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise Mismatch(f"no end within {RUN_SECONDS} s: {' '.join(command)}") from None
        return Run(done.returncode, done.stdout.decode(), done.stderr.decode())

    def watch(self, seen, *args, until, env=None):
        """Run a command and call `seen` once its output starts with `until`. Fail if it never does."""
        command = [self.path, *map(str, args)]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**self.env, **(env or {})},
        )
        timer = threading.Timer(RUN_SECONDS / 2, process.kill)
        timer.start()
        out = b""
        try:
            while not out.startswith(until):
                piece = os.read(process.stdout.fileno(), 65536)
                if not piece:
                    break
                out += piece
            early = bool(out.startswith(until))
            seen()
            rest, stderr = process.communicate()
        finally:
            timer.cancel()
            process.kill()
        holds("nothing is shown before the answer is at its end", early, out + rest + stderr)
        return Run(process.returncode, (out + rest).decode(), stderr.decode())


def is_foreign(name):
    """Return whether a variable could affect where requests go or what they carry."""
    ends = ("_API_KEY", "_BASE_URL", "_PROXY", "_ENDPOINT")
    return name.upper().endswith(ends) or name.startswith(("OTEL_", "TYMPAN_", "INTEROP_"))
