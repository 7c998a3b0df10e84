"""Runs `tympan` against litellm's proxy in front of aimock.

    python3 gateway.py target/debug/tympan target/interop-models target/interop-node

The proxy parses each protocol, sends its own request to the server behind it, and rewrites the answer. The cases check
what survives both third parties: the result, and the messages and tools that reach the last server.
"""

import sys
from pathlib import Path

from aimock import APIS, KEY, Bench, aimock, structured, text, text_as_it_arrives, tool_calls, tool_results
from harness import Cases, Server, holds, same

FEWEST = 28


class Gateway(Bench):
    """The program and the proxy, with the server behind the proxy."""

    def __init__(self, program, proxy, behind):
        super().__init__(program, proxy)
        self.behind = behind

    def control_url(self, path):
        """Return an address of the last server's control API."""
        return self.behind.url(path)

    def seen(self, api, stream, status=200):
        """Return the only request that the program sent, and the resulting request at the last server."""
        requests = self.tap.requests()
        same("requests on the wire", len(requests), 1)
        line, headers, body = requests[0]
        same("request", line, f"POST {api.path} HTTP/1.1")
        name, value = api.key_header()
        same(name, headers.get(name), value)
        journal = self.control("/journal")
        same("requests at the last server", [entry["response"]["status"] for entry in journal], [status])
        return journal[0]["body"], body


def models(bench, api):
    """The proxy lists its only model."""
    run = bench.tympan.run("models", "--provider", api.provider, "--base-url", bench.tap.url())
    same("exit status", run.status, 0)
    holds("the model is listed", "interop-model" in run.stdout.split(), run.stdout)


def run_all(bench):
    """Run all cases."""
    cases = Cases()
    for api in APIS:
        for stream in (False, True):
            for case in (text, tool_calls, tool_results, structured):
                name = case.__name__.replace("_", " ")
                cases.attempt(f"litellm {api.name}, {'stream' if stream else 'whole'}: {name}", case, bench, api, stream)
        cases.attempt(f"litellm {api.name}: text as it arrives", text_as_it_arrives, bench, api)
    cases.attempt("litellm: models", models, bench, APIS[0])
    return cases.finish(FEWEST)


def main():
    """Start both servers and run the cases."""
    if len(sys.argv) != 4:
        raise SystemExit("usage: python3 gateway.py PATH-OF-TYMPAN VENV DIRECTORY-WITH-NODE-MODULES")
    program, venv, node_modules = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    proxy = venv / "bin" / "litellm"
    if not proxy.is_file():
        raise SystemExit(f"{proxy} is missing: run `make interop`, which installs it")
    config = str(Path(__file__).parent / "litellm.yaml")
    with aimock(node_modules) as behind:
        env = {
            "INTEROP_BACKEND": behind.url("/v1"),
            "INTEROP_BACKEND_KEY": KEY,
            "LITELLM_MASTER_KEY": KEY,
            # Otherwise, litellm downloads a list of prices.
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }

        def command(port):
            return [str(proxy), "--config", config, "--host", "127.0.0.1", "--port", str(port)]

        with Server("litellm", command, venv / "litellm.log", ready="/health/liveliness", seconds=120, env=env) as front:
            return run_all(Gateway(program, front, behind))


if __name__ == "__main__":
    sys.exit(main())
