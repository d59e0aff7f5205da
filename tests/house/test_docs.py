"""What the documents name exists: paths, modules, doors of packages, links, configurations, numbers of decisions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest

from penstock.base.configs.broker import BROKER_CONFIGS
from penstock.base.configs.group import GROUP_CONFIGS
from penstock.base.configs.metrics import CLIENT_METRICS_CONFIGS
from penstock.base.configs.own import OWN_CONFIGS
from penstock.base.configs.topic import TOPIC_CONFIGS
from penstock.wire.security_names import NAMES as CLIENT_SECURITY
from tests.house.tracked import GENERATED, ROOT, text, tracked, tree

DOCUMENTS = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", *tracked("docs/", ".md"))
PACKAGES = tuple(path for path in tracked("src/penstock/", "__init__.py") if not path.startswith(GENERATED))

ROOTS = ("", "src/penstock/", "src/penstock/broker/", "docs/")
"""where a path in a document may begin"""
OF_OTHERS = ("tests/test-runner",)
"""paths of other projects"""
WRITTEN_LATER = re.compile(r"(docs/)?proofs/.*\.json")
"""results: `make prove` and `make bench` write them"""

CONFIGS = {*BROKER_CONFIGS, *TOPIC_CONFIGS, *GROUP_CONFIGS, *CLIENT_METRICS_CONFIGS, *CLIENT_SECURITY, *OWN_CONFIGS}
NOT_CONFIGS_OF_A_BROKER = {
    "application.id": "an application's of Kafka Streams",
    "streams.assignor.offload.enable": "Kafka's, which is not there",
    "client.rack": "a consumer's",
    "batch.size": "a producer's",
    "linger.ms": "a producer's",
    "group.protocol": "a consumer's",
    "group.remote.assignor": "a consumer's",
    "group.instance.id": "a consumer's",
    "max.poll.interval.ms": "a consumer's",
    "share.version": "a feature",
    "streams.version": "a feature",
    "metadata.version": "a feature",
    "kraft.version": "a feature",
    "transaction.version": "a feature",
    "cluster.id": "in meta.properties",
    "directory.id": "in meta.properties",
    "log.read": "a function",
    "fastcrc.crc32.iscsi": "a function",
    "penstock.testing.simulate": "a function",
}
FILE_SUFFIXES = ("py", "md", "json", "txt", "toml", "log", "properties", "metadata", "checkpoint", "sh", "out", "class")

TICKED = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PATH = re.compile(r"[\w.<>*-]+(/[\w.<>*{},-]*)+|[\w-]+\.(py|md)")
CONFIG = re.compile(r"[a-z][a-z0-9]*(\.[a-z0-9-]+)+")
DOOR = re.compile(r"([a-z_]+)\.([A-Za-z_]+)(?:\.[A-Za-z_]+)*(\(.*\))?")


@pytest.mark.parametrize("document", [*DOCUMENTS, *PACKAGES])
def test_paths_that_are_named_exist(document: str):
    assert [name for name in _paths_named(document) if not _exists(name, document)] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document: str):
    targets = [target.partition("#")[0] for target in LINK.findall(text(document)) if "://" not in target]
    directory = (ROOT / document).parent
    assert [target for target in targets if target and not (directory / target).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_configurations_that_are_named_exist(document: str):
    unknown = [name for name in _configs_named(document) if name not in CONFIGS and name not in NOT_CONFIGS_OF_A_BROKER]
    assert unknown == []


@pytest.mark.parametrize("package", PACKAGES)
def test_the_doors_that_a_package_names_are_there(package: str):
    here = PurePosixPath(package).parent
    missing = []
    for said in TICKED.findall(ast.get_docstring(tree(package)) or ""):
        door = DOOR.fullmatch(said)
        module = f"{here}/{door[1]}.py" if door else ""
        if door and module in tracked() and door[2] not in _names(module):
            missing.append(said)
    assert missing == []


@pytest.mark.parametrize("package", PACKAGES)
def test_the_modules_that_a_package_calls_doors_are_there(package: str):
    here = PurePosixPath(package).parent
    sentence = re.search(r"Doors[^:]*:(.*?)(?:\.\s|\.$)", ast.get_docstring(tree(package)) or "", re.DOTALL)
    if sentence is None:
        return
    own = _names(package)
    named = {said.partition(".")[0] for said in TICKED.findall(sentence[1])}
    there = {name for name in named if name in own or f"{here}/{name}.py" in tracked() or (ROOT / here / name).is_dir()}
    assert sorted(name for name in named - there if name.isidentifier() and name.islower() and name != "penstock") == []


def test_decisions_are_numbered_without_gaps():
    numbers = [int(PurePosixPath(path).name[:4]) for path in tracked("docs/adr/", ".md")]
    assert numbers == list(range(1, len(numbers) + 1))


def test_every_page_of_the_guide_and_of_the_formats_is_found_from_another():
    linked = {
        str((ROOT / document).parent.joinpath(target.partition("#")[0]).resolve().relative_to(ROOT))
        for document in DOCUMENTS
        for target in LINK.findall(text(document))
        if "://" not in target
    }
    named = {str(PurePosixPath(name)) for document in [*DOCUMENTS, *PACKAGES] for name in _paths_named(document)}
    pages = [path for path in DOCUMENTS if path.startswith(("docs/guide/", "docs/formats/"))]
    lonely = [page for page in pages if page not in linked and page not in named and not _is_told_by_folder(page)]
    assert lonely == []


def _is_told_by_folder(page: str) -> bool:
    """README links to the folder; a reader sees the names."""
    return f"]({PurePosixPath(page).parent}/)" in text("README.md")


def _said(document: str) -> Iterator[str]:
    """What stands in backticks: in a document's prose, or in a package's docstring."""
    if document.endswith(".py"):
        prose = ast.get_docstring(tree(document)) or ""
    else:
        prose = FENCED.sub("", text(document))
    yield from TICKED.findall(prose)


def _paths_named(document: str) -> Iterator[str]:
    for said in _said(document):
        if PATH.fullmatch(said) and said not in OF_OTHERS and not WRITTEN_LATER.fullmatch(said) and _is_ours(said):
            yield said


def _is_ours(path: str) -> bool:
    """Whether it begins where our files do; what is on a user's disk, or on a server, does not."""
    first = path.partition("/")[0]
    return "/" not in path or any((ROOT / root / first).is_dir() for root in ROOTS)


def _exists(path: str, document: str) -> bool:
    if "/" not in path:
        return any(PurePosixPath(one).name == path for one in tracked())
    pattern = re.sub(r"<[^>]+>", "*", path.rstrip("/"))
    beside = f"{PurePosixPath(document).parent}/"
    return any(next(ROOT.glob(f"{root}{pattern}"), None) is not None for root in (*ROOTS, beside))


def _configs_named(document: str) -> Iterator[str]:
    for said in _said(document):
        name = said.partition("=")[0]
        if CONFIG.fullmatch(name) and name.rpartition(".")[2] not in FILE_SUFFIXES and not _is_module(name):
            yield name
    yield from re.findall(r"--set ([a-z0-9.]+)=", text(document))


def _is_module(name: str) -> bool:
    """`penstock.client` or `penstock.testing.Cluster`, and files by their short names, such as `session.py`."""
    path = name.replace(".", "/")
    return any((ROOT / "src" / one).exists() for one in (path, f"{path}.py")) or path.startswith("concurrent/")


def _names(module: str) -> set[str]:
    """What a module defines or imports at its top."""
    found: set[str] = set()
    for node in tree(module).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            found.update(alias.asname or alias.name for alias in node.names)
    return found
