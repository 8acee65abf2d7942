"""Commands that are forked find slow imports loaded, in whatever folder the first of them is started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.support.forked_commands import CONTEXT, start_fork_server
start_fork_server()
process = CONTEXT.Process(target=exec, args=("import sys; sys.exit('litellm' not in sys.modules)",))
process.start()
process.join()
sys.exit(process.exitcode)
"""


def test_slow_imports_are_loaded_before_the_fork_in_any_folder(tmp_path: Path) -> None:
    assert subprocess.run([sys.executable, "-c", SCRIPT], cwd=tmp_path, check=False, timeout=300).returncode == 0
