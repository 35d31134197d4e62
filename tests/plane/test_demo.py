"""`make demo STAY=0`: every step is seen, the table closes it, nothing stays behind."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STEPS = 14


@pytest.mark.timeout(300)
def test_every_step_of_the_demo_is_seen(artefacts):
    done = subprocess.run(["make", "demo", "STAY=0"], cwd=ROOT, capture_output=True, text=True, timeout=290)
    (artefacts / "demo.txt").write_text(done.stdout)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    rows = re.findall(r"^ (\d+)\. .*\d\.\d$", done.stdout, re.MULTILINE)
    assert sorted({int(row) for row in rows}) == list(range(1, STEPS + 1))
    assert "Every step was seen" in done.stdout
