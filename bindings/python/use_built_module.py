"""Makes the package of this checkout importable in the current environment, with a native module that is already built.

`maturin develop` does the same, but builds the module itself, with fewer features of its dependencies than the
workspace has, so that cargo builds most of them a second time.
"""

import os
import shutil
import sys
import sysconfig
from pathlib import Path

sources = Path(__file__).resolve().parent / "python"
module = sources / "tympan" / "_native.abi3.so"
# A process that has loaded the old file keeps it, because the new one is a different file.
new = module.with_suffix(".new")
shutil.copyfile(sys.argv[1], new)
os.replace(new, module)
Path(sysconfig.get_path("purelib"), "tympan.pth").write_text(f"{sources}\n", encoding="utf-8")
