"""Kernels are compiled once a machine, and code is loaded only from places that nobody else can write to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.columnar import compiler, encode_kernels, record_kernels

COUNT_MISSES = """
from penstock.columnar import encode_kernels, record_kernels
names = {**vars(encode_kernels), **vars(record_kernels)}
kernels = [one for one in names.values() if getattr(one, "signatures", None)]
print(sum(sum(kernel.stats.cache_misses.values()) for kernel in kernels), len(kernels))
"""


def test_a_second_process_compiles_nothing() -> None:
    assert record_kernels.index_records and encode_kernels.write_records  # compiled by now, if they were not before
    done = subprocess.run([sys.executable, "-c", COUNT_MISSES], capture_output=True, text=True, check=True)
    misses, kernels = done.stdout.split()
    assert (int(misses), int(kernels) > 10) == (0, True)


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_directory_that_others_can_write_to_is_not_used(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    assert not compiler._is_ours(tmp_path)


def test_a_private_directory_is_made_and_used(tmp_path: Path) -> None:
    assert compiler._is_ours(tmp_path / "made" / "here")
    assert (tmp_path / "made" / "here").stat().st_mode & 0o777 == 0o700


def test_a_link_or_a_file_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "file").touch()
    assert not compiler._is_ours(tmp_path / "link")
    assert not compiler._is_ours(tmp_path / "file")


def test_where_the_sources_cannot_be_written_beside_the_users_cache_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = compiler._choose_directory()
    assert beside is not None and beside.parent.name == "__pycache__"
    monkeypatch.setattr(compiler, "_is_ours", lambda directory: "__pycache__" not in directory.parts)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    chosen = compiler._choose_directory()
    assert chosen is not None and chosen.parent == tmp_path / "penstock"


def test_a_directory_that_is_given_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler._CONFIG, "CACHE_DIR", str(tmp_path))
    chosen = compiler._choose_directory()
    assert chosen is not None and chosen.parent == tmp_path
