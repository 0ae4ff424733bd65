"""The file alone, on a machine that has only uv: it installs what it needs.

Apart from the main run, since it fetches the packages anew: -m packages.
"""
import re
import shutil
import tomllib

import pytest
from conftest import ROOT, SCRIPT, run_script

BLOCK = re.search(r"^# /// script\n((?:# .*\n)+)# ///$",
                  SCRIPT.read_text(encoding="utf-8"), re.M)


def test_the_block_asks_for_what_requirements_txt_asks_for():
    block = tomllib.loads(re.sub("^# ?", "", BLOCK[1], flags=re.M))
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    wanted = [line for line in lines if line and not line.startswith("#")]
    assert sorted(block["dependencies"]) == sorted(wanted)
    assert block["requires-python"] == ">=3.11"


@pytest.mark.packages
def test_uv_runs_the_file(tmp_path):
    if not shutil.which("uv"):
        pytest.skip("there is no uv here")
    script = shutil.copy(SCRIPT, tmp_path)
    result = run_script("run", "--no-config", script, script="--quiet",
                        cwd=tmp_path, env={"TRITON_INTERPRET": "1"},
                        program=shutil.which("uv"), timeout=3000)
    if "exit " not in result.stdout:
        pytest.skip(f"uv could not set up: {result.stderr[-300:]}")
    assert result.stdout.endswith("\nexit 0\n")
