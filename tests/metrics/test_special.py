"""Special functions are scipy's, with or without the rest of its package."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY_MODULE = "scipy._lib.array_api_compat"
CHECK = """
import sys, threading
from auditor.metrics import _special

arguments = {name: (0.3,) for name in ("ndtr", "ndtri", "expit", "logit")}
arguments |= {"stdtr": (5, 1.2), "stdtrit": (5, 0.9), "nctdtr": (5, 0.5, 1.2)}
arguments |= {"betainc": (2, 3, 0.4), "betaincinv": (2, 3, 0.4)}
SETUP
values = {name: getattr(_special, name)(*arguments[name]) for name in _special.NAMES}
print("HEAVY_MODULE" in sys.modules)
import scipy.special, scipy.stats
assert values == {name: getattr(scipy.special, name)(*arguments[name]) for name in _special.NAMES}
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
    ],
    ids=["alone", "imported before", "another thread", "no compiled module", "functions elsewhere"],
)
def test_special_functions_are_scipys(setup: str, imports_all: bool) -> None:
    """The module with the compiled functions is private: without it, they come from the public package."""
    command = [sys.executable, "-c", CHECK.replace("SETUP", setup)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not process.returncode, process.stderr
    assert process.stdout.strip() == str(imports_all)
