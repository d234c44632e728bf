"""safetensors files: every part of every type is read as written, and a header that lies is refused."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gspmd
from gspmd.interop import safetensors
from gspmd.ir.dtypes import DTYPES
from gspmd.ir.errors import ParseError, UsageError

NAMES = {
    "BOOL": "bool",
    "I8": "i8",
    "I16": "i16",
    "I32": "i32",
    "I64": "i64",
    "U8": "u8",
    "U16": "u16",
    "U32": "u32",
    "U64": "u64",
    "F16": "f16",
    "BF16": "bf16",
    "F32": "f32",
    "F64": "f64",
    "C64": "c64",
    "F8_E4M3": "f8e4m3fn",
    "F8_E5M2": "f8e5m2",
}


def written(path: Path, header: Any, data: bytes = b"") -> Path:
    """A file of this header, a text or what is written as JSON, and this data."""
    text = header.encode("utf-8", "surrogatepass") if isinstance(header, str) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def saved(path: Path, arrays: dict[str, tuple[str, np.ndarray[Any, Any]]]) -> Path:
    """A file of these arrays, each with the format's name of its type."""
    header, data = {}, b""
    for name, (dtype, array) in arrays.items():
        end = len(data) + array.nbytes
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(data), end]}
        data += array.tobytes()
    return written(path, header, data)


def f32(begin: int, end: int, *shape: int) -> dict[str, Any]:
    """How the header describes a tensor of f32."""
    return {"dtype": "F32", "shape": list(shape), "data_offsets": [begin, end]}


def test_every_type_is_read_as_written(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    # An odd number of bytes first: all that follow are out of step with their own size.
    arrays = {"odd": ("U8", np.arange(3, dtype=np.uint8)), "empty": ("F32", np.zeros((2, 0), np.float32))}
    for name, short in NAMES.items():
        arrays[name] = (name, rng.integers(0, 2, (5, 4)).astype(DTYPES[short]))
    arrays["scalar"] = ("F32", np.array(2.5, np.float32))
    file = safetensors.open(saved(tmp_path / "a", arrays))
    assert set(file.types) == set(arrays)
    for name, (_, array) in arrays.items():
        assert file.types[name] == gspmd.TensorType(array.dtype, array.shape)
        found = file.read(name)
        assert found.dtype == array.dtype and not (found.flags.writeable and name != "BOOL")
        np.testing.assert_array_equal(found, array)
        if array.ndim == 2 and array.size:
            part = (slice(1, 4), slice(2, 3))
            np.testing.assert_array_equal(file.read(name, part), array[part])
            np.testing.assert_array_equal(file.read(name, part, (4, 5)), array.reshape(4, 5)[part])


def test_devices_read_their_shards(tmp_path: Path) -> None:
    whole = np.arange(35, dtype=np.float32).reshape(7, 5)
    file = safetensors.open(saved(tmp_path / "a", {"odd": ("U8", np.zeros(1, np.uint8)), "w": ("F32", whole)}))
    mesh = gspmd.Mesh({"model": 4})
    parts: list[tuple[slice, ...]] = []

    def read(index: tuple[slice, ...]) -> np.ndarray[Any, Any]:
        parts.append(index)
        return file.read("w", index)

    held = gspmd.from_callback(file.types["w"], gspmd.Sharding.of(mesh, "model", None), read)
    np.testing.assert_array_equal(np.asarray(held), whole)
    assert [index[0] for index in parts] == [slice(0, 2), slice(2, 4), slice(4, 6), slice(6, 7)]


def test_names_and_shapes_that_are_not_there_are_told(tmp_path: Path) -> None:
    file = safetensors.open(saved(tmp_path / "a", {"layer.weight": ("F32", np.zeros((2, 3), np.float32))}))
    with pytest.raises(UsageError, match=r"no tensor 'layer.weigth'\n.*such as 'layer.weight'"):
        file.read("layer.weigth")
    with pytest.raises(UsageError, match="give a shape of 6 elements"):
        file.read("layer.weight", (), (2, 2))


def test_notes_are_read(tmp_path: Path) -> None:
    file = safetensors.open(written(tmp_path / "a", {"__metadata__": {"format": "pt"}, "x": f32(0, 4, 1)}, bytes(4)))
    assert dict(file.metadata) == {"format": "pt"} and list(file.types) == ["x"]


@pytest.mark.parametrize(
    ("header", "size", "message"),
    [
        ("[" * 100_000, 0, "no JSON"),
        ('{"x": ' + "9" * 5000 + "}", 0, "no JSON"),
        ("[]", 0, "no JSON object"),
        ('{"x": 1, "x": 2}', 0, "'x' twice"),
        ('{"\\ud800": 1}', 0, r"'\\ud800' is not described"),
        ({"x": {"dtype": "F32", "shape": [1]}}, 4, "is not described by"),
        ({"x": f32(0, 4, 1) | {"dtype": "F4"}}, 4, "has dtype 'F4'"),
        ({"x": f32(0, 4, 1) | {"dtype": ["F32"]}}, 4, "has dtype"),
        ({"x": f32(0, 4, -1)}, 4, "a shape that no array has"),
        ({"x": f32(0, 4) | {"shape": [True]}}, 4, "a shape that no array has"),
        ({"x": f32(0, 4) | {"shape": [1.0]}}, 4, "a shape that no array has"),
        ({"x": f32(0, 0, 0, 2**40, 2**40)}, 0, "a shape that no array has"),
        ({"x": f32(0, 4, *[1] * 65)}, 4, "a shape that no array has"),
        ({"x": f32(0, 4, 2)}, 4, "has 8 bytes, but its offsets are 0-4"),
        ({"x": f32(4, 0, 1)}, 4, "its offsets are 4-0"),
        ({"x": f32(0, 4, 1) | {"data_offsets": [0, 4, 8]}}, 4, "its offsets are no range"),
        ({"x": f32(0, 8, 2), "y": f32(4, 8, 1)}, 8, "'y' at 4-8 overlaps tensor 'x', which ends at 8"),
        ({"x": f32(0, 4, 1), "y": f32(8, 12, 1)}, 12, "'y' at 8-12 leaves a hole behind tensor 'x'"),
        ({"x": f32(0, 4, 1)}, 3, "take 4 bytes, the file has 3"),
        ({"x": f32(0, 4, 1)}, 5, "take 4 bytes, the file has 5"),
        ({"__metadata__": {"a": 1}}, 0, "no texts by name"),
    ],
)
def test_headers_that_lie_are_refused(tmp_path: Path, header: Any, size: int, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        safetensors.open(written(tmp_path / "a", header, bytes(size)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has 0 bytes"),
        (b"\x02\0\0\0\0\0\0", "has 7 bytes"),
        (b"\x03\0\0\0\0\0\0\0{}", "header should be 3 bytes long"),
        (b"\xff" * 8, "header should be 18446744073709551615 bytes long"),
        (b"\x02\0\0\0\0\0\0\0\xff\xff", "no JSON"),
    ],
)
def test_files_that_end_early_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ParseError, match=message):
        safetensors.open(tmp_path / "a")


def test_a_header_may_not_be_larger_than_the_format_allows(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as stream:  # a hole in the file: no bytes on the disk
        stream.write(struct.pack("<Q", 100_000_001))
        stream.truncate(100_000_100)
    with pytest.raises(ParseError, match="100000000 are allowed"):
        safetensors.open(tmp_path / "a")


def test_a_scalar_is_an_array(tmp_path: Path) -> None:
    header = {
        "s": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]},
        "b": {"dtype": "BOOL", "shape": [], "data_offsets": [4, 5]},
    }
    held = safetensors.open(written(tmp_path / "s.safetensors", header, np.float32(1.5).tobytes() + b"\1"))
    for name, value in (("s", 1.5), ("b", True)):
        found = held.read(name)
        assert isinstance(found, np.ndarray) and found.shape == () and found == value
    with pytest.raises(UsageError, match=r"cannot be read in shape \(-1, -1\)"):
        held.read("s", (), (-1, -1))
