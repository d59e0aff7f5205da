"""The Python in the guide runs as it is printed: scripts as scripts, tests as tests."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
PAGES = ["first-steps", "clients", "testing", "streams"]


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", (GUIDE / f"{page}.md").read_text(), re.DOTALL | re.MULTILINE)


def run(arguments, directory, servers):
    environment = {**os.environ, "PENSTOCK_BOOTSTRAP_SERVERS": servers}
    return subprocess.run(
        [sys.executable, *arguments], cwd=directory, env=environment, capture_output=True, text=True, timeout=100
    )


@pytest.mark.parametrize("page", PAGES)
def test_the_scripts_of_a_page_run_in_their_order(page, tmp_path, kafka_bootstrap_servers):
    scripts = [block for block in blocks(page) if "def test_" not in block]
    assert scripts
    for number, script in enumerate(scripts):
        (tmp_path / f"block{number}.py").write_text(script)
        found = run([f"block{number}.py"], tmp_path, kafka_bootstrap_servers)
        assert found.returncode == 0, f"{script}\n{found.stderr}"


@pytest.mark.parametrize("page", ["first-steps", "testing"])
def test_the_tests_of_a_page_pass(page, tmp_path, kafka_bootstrap_servers):
    tests = [block for block in blocks(page) if "def test_" in block]
    for number, test in enumerate(tests):
        (tmp_path / f"test_block{number}.py").write_text(test)
    found = run(["-m", "pytest", "-q"], tmp_path, kafka_bootstrap_servers)
    assert f"{len(tests)} passed" in found.stdout, found.stdout
