"""Where protobuf types may be known: at the edges, so that what lies inside speaks the project's own types."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.source_tree import imported_modules, parse, relative, sources

EDGE_NAMES = ("servicer", "client", "link", "wire")


def is_edge(path: Path) -> bool:
    """Whether a module is a servicer, a client, a link or a wire module, by the last word of its name."""
    return path.stem.rpartition("_")[2] in EDGE_NAMES


def knows_messages(path: Path) -> bool:
    """Whether a module imports the project's generated code; a ``__main__`` may, to register its servicer."""
    names = {name for name in imported_modules(parse(path)) if name.startswith("streamomni.") and "_pb2" in name}
    if path.stem == "__main__":
        names = {name for name in names if not name.endswith("_pb2_grpc")}
    return bool(names)


@pytest.mark.parametrize(
    ("name", "edge"),
    [("servicer", True), ("engine_client", True), ("served_link", True), ("wire", True), ("linker", False)],
)
def test_edges_are_known_by_name(name: str, edge: bool) -> None:
    """The last word of the module's name decides."""
    assert is_edge(Path(f"{name}.py")) is edge


def test_only_edges_import_generated_code() -> None:
    """Protobuf types stay in servicers, clients, links and wire modules; the chassis knows none of ours."""
    importing = [path for path in sources("services") if knows_messages(path)]
    inside = [relative(path) for path in importing if not is_edge(path) or path.parent.name == "chassis"]
    assert inside == []
