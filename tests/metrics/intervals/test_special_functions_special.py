"""Special functions are scipy's, with or without the rest of its package.

`make scipy` runs this module and all other tests of metrics with the oldest and the newest supported scipy.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import scipy

HEAVY_MODULE = "scipy._lib.array_api_compat"
CHECK = """
import sys, threading
from auditor.metrics.intervals import special_functions as _special

known = dict(_special.KNOWN_VALUES)
SETUP
values = {name: getattr(_special, name)(*arguments) for name, (arguments, _) in known.items()}
print("HEAVY_MODULE" in sys.modules)
import scipy.special, scipy.stats
assert values == {name: getattr(scipy.special, name)(*arguments) for name, (arguments, _) in known.items()}
assert abs(scipy.stats.t.cdf(1.2, 5) - values["stdtr"]) < 1e-12
""".replace("HEAVY_MODULE", HEAVY_MODULE)


@pytest.mark.parametrize(
    ("setup", "imports_all"),
    [
        ("", False),
        ("import scipy.special", True),
        ("threading.Thread(target=threading.Event().wait, daemon=True).start()", True),
        ("_special.COMPILED_MODULE = 'missing'", True),
        ("_special.COMPILED_MODULE = '_basic'", True),
        ("_special.KNOWN_VALUES['nctdtr'] = ((5, 0.5, 1.2), 0.7)", True),
        ("_special.KNOWN_VALUES['stdtr'] = ((5, 0.5, 1.2), 0.7)", True),
    ],
    ids=[
        *("alone", "imported before", "another thread", "no compiled module", "functions elsewhere"),
        *("another value", "other arguments"),
    ],
)
def test_special_functions_are_scipys(setup: str, imports_all: bool) -> None:
    """The module with the compiled functions is private: without it, they come from the public package."""
    command = [sys.executable, "-c", CHECK.replace("SETUP", setup)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not process.returncode, process.stderr
    assert process.stdout.strip() == str(imports_all)


def test_the_tested_scipy_is_the_one_of_the_makefile() -> None:
    assert scipy.__version__ == os.environ.get("AUDITOR_TEST_SCIPY", scipy.__version__)
