"""Runs the language server in Neovim, without a screen.

Usage: neovim.py TYMPAN
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

INSTALL = "apt-get install -y neovim"
# A run takes a second. This is only for a run that never ends.
SECONDS = 120


def main():
    """Run the script and return its exit status."""
    tympan = Path(sys.argv[1]).resolve()
    neovim = shutil.which("nvim")
    if neovim is None:
        print(f"SKIPPED: the test with Neovim, which is not here ({INSTALL})")
        return 0
    script = Path(__file__).with_name("neovim.lua").resolve()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "home")
        home.mkdir()
        workspace = Path(folder, "workspace")
        workspace.mkdir()
        # A user's own configuration and state stay out of the test.
        names = ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"]
        environment = {**os.environ, **dict.fromkeys(names, str(home))}
        environment |= {"TYMPAN": str(tympan), "WORKSPACE": str(workspace), "LC_ALL": "C.UTF-8"}
        command = [neovim, "--clean", "--headless", "-c", f"luafile {script}"]
        done = subprocess.run(
            command, env=environment, timeout=SECONDS, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False
        )
    # Neovim without a screen prints to standard error.
    print(done.stderr.decode(errors="replace").replace("\r", ""))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
