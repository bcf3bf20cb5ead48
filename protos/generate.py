"""Generates Python code beside the .proto files, checks that it is fresh, and lints the .proto files.

``python protos/generate.py write | check | lint``
"""

from __future__ import annotations

import filecmp
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import google.rpc

ROOT = Path(__file__).resolve().parent
PACKAGE = ROOT / "streamomni"
GENERATED = ("*_pb2.py", "*_pb2.pyi", "*_pb2_grpc.py", "*_pb2_grpc.pyi")


def protos() -> list[str]:
    """The .proto files, relative to the import root."""
    return sorted(str(path.relative_to(ROOT)) for path in PACKAGE.rglob("*.proto"))


def generated(root: Path) -> set[Path]:
    """The generated files below ``root``, relative to it."""
    return {path.relative_to(root) for pattern in GENERATED for path in root.rglob(pattern)}


def protoc(*options: str) -> None:
    """Run grpcio-tools' protoc on all .proto files."""
    # google/rpc/*.proto lie in googleapis-common-protos, next to the Python code made from them.
    google_includes = Path(next(iter(google.rpc.__path__))).parents[1]
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT}", f"-I{google_includes}"]
    # protoc looks for the mypy plugins on the PATH, which a venv that is not activated is not on.
    plugins = [
        f"--plugin=protoc-gen-{name}={Path(sys.executable).with_name(f'protoc-gen-{name}')}"
        for name in ("mypy", "mypy_grpc")
    ]
    subprocess.run([*command, *plugins, *options, *protos()], check=True)


def write(out: Path) -> None:
    """Generate messages, stubs and their types below ``out``."""
    protoc(f"--python_out={out}", f"--grpc_python_out={out}", f"--mypy_out=quiet:{out}", f"--mypy_grpc_out=quiet:{out}")


def check() -> list[str]:
    """Lines that name each generated file which is missing, left over or not what the .proto files give."""
    with tempfile.TemporaryDirectory() as name:
        fresh = Path(name)
        write(fresh)
        expected, found = generated(fresh), generated(PACKAGE.parent)
        stale = {path for path in expected & found if not filecmp.cmp(fresh / path, ROOT / path, shallow=False)}
    return [
        *(f"protos/{path}: missing" for path in sorted(expected - found)),
        *(f"protos/{path}: its .proto file is gone" for path in sorted(found - expected)),
        *(f"protos/{path}: differs from what its .proto file gives" for path in sorted(stale)),
    ]


def lint() -> int:
    """Run buf's linter on what protoc compiles, so that it needs no network for imported files; returns its code."""
    buf = shutil.which("buf", path=str(Path(sys.executable).parent))
    if buf is None:
        sys.exit("buf is not installed beside this Python; run `make setup`")
    with tempfile.NamedTemporaryFile(suffix=".binpb") as image:
        protoc("--include_imports", "--include_source_info", f"--descriptor_set_out={image.name}")
        config = str(ROOT.parent / "buf.yaml")
        return subprocess.call([buf, "lint", image.name, "--config", config, "--path", PACKAGE.name])


def main() -> int:
    """Do what the command line asks for; returns the exit code."""
    match sys.argv[1:]:
        case ["write"]:
            for path in generated(ROOT):
                (ROOT / path).unlink()
            write(ROOT)
        case ["check"]:
            if lines := check():
                print("\n".join([*lines, "run `make protos` and commit the result"]), file=sys.stderr)
                return 1
        case ["lint"]:
            return lint()
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
