"""The script that prints the shape of the code."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "shape.py"


def test_the_table_is_printed_and_interfaces_stay_narrow():
    run = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, check=True)
    rows = dict(line.strip("| ").split(" | ") for line in run.stdout.splitlines())
    assert int(rows["modules and packages on the ground floor"]) <= 20
    assert rows["names with two meanings"] == "none"
    assert all(int(each.split()[-1]) <= 8 for each in rows["widest interfaces"].split(", "))
    assert " in " in rows["frames from ONMF.fit to the formula"]
