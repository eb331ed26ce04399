"""Object code on disk: what is found again, and what happens when files or directories are bad."""

import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fxarray.devices.cpu.native import cache as cache_module
from fxarray.devices.cpu.native.cache import (
    ObjectCache,
    byte_count,
    default_directory,
    key_of,
    parse_size,
)
from fxarray.devices.cpu.native.target import OTHERS, host
from fxarray.errors import ArgumentError


@pytest.fixture
def cache(tmp_path) -> ObjectCache:
    return ObjectCache(tmp_path / "cache", 1 << 20)


def files(cache: ObjectCache) -> list[Path]:
    return [entry.path for entry in cache.entries()]


def test_what_is_stored_is_found(cache):
    assert cache.get("ab12") is None
    cache.put("ab12", b"code")
    assert cache.get("ab12") == b"code"
    assert cache.get("ab13") is None
    assert ObjectCache(cache.directory, 1 << 20).get("ab12") == b"code"


def test_keys_depend_on_text_processor_and_version(monkeypatch):
    keys = {key_of("a", host()), key_of("b", host()), key_of("a", OTHERS["avx2"])}
    for name, value in (("__version__", "99"), ("_compiler_digest", lambda: "other passes")):
        cache_module._salt.cache_clear()
        monkeypatch.setattr(cache_module, name, value)
        keys.add(key_of("a", host()))
    cache_module._salt.cache_clear()
    assert len(keys) == 5


@pytest.mark.parametrize("damage", ["cut", "empty", "flipped", "other"])
def test_a_damaged_file_is_no_code_and_goes(cache, damage):
    cache.put("ab12", b"code" * 100)
    (path,) = files(cache)
    content = path.read_bytes()
    if damage == "other":  # the file of another key under this name
        cache.put("cd34", b"other")
        content = next(p for p in files(cache) if p.parent.name == "cd").read_bytes()
    flipped = bytes([content[100] ^ 1]) if damage == "flipped" else b""
    path.write_bytes(
        {
            "cut": content[:-1],
            "empty": b"",
            "flipped": content[:100] + flipped + content[101:],
            "other": content,
        }[damage]
    )
    assert cache.get("ab12") is None
    assert not path.exists()
    cache.put("ab12", b"new")
    assert cache.get("ab12") == b"new"


def test_what_was_not_used_for_longest_goes_first(tmp_path):
    cache = ObjectCache(tmp_path, 10_000)
    for number in range(12):
        cache.put(f"{number:02}key", bytes(1000))
        (path,) = [p for p in files(cache) if p.parent.name == f"{number:02}"]
        os.utime(path, (number, number))
    cache.shrink()
    left = sorted(path.parent.name for path in files(cache))
    assert 5 <= len(left) <= 9  # of 1028 bytes each
    assert left == [f"{number:02}" for number in range(12 - len(left), 12)]


def test_the_limit_holds_while_writing(tmp_path):
    cache = ObjectCache(tmp_path, 50_000)
    for number in range(300):
        cache.put(f"{number % 256:02x}{number}", bytes(1000))
    assert sum(entry.size for entry in cache.entries()) <= 60_000


def test_use_makes_a_file_young(cache):
    cache.put("ab12", b"code")
    (path,) = files(cache)
    os.utime(path, (0, 0))
    cache.get("ab12")
    assert path.stat().st_mtime > time.time() - 60


def test_files_that_were_never_finished_go(cache):
    cache.put("ab12", b"code")
    (path,) = files(cache)
    half = path.with_name(".12.99.aa")
    half.write_bytes(b"half")
    os.utime(half, (0, 0))
    cache.shrink()
    assert files(cache) == [path]


def test_size_zero_turns_it_off(tmp_path):
    cache = ObjectCache(tmp_path / "none", 0)
    cache.put("ab12", b"code")
    assert cache.get("ab12") is None
    assert not (tmp_path / "none").exists()


def test_a_directory_that_cannot_be_made_is_a_debug_message(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    cache = ObjectCache(tmp_path / "file" / "cache", 1 << 20)
    with caplog.at_level(logging.DEBUG, "fxarray"):
        cache.put("ab12", b"code")
        assert cache.get("ab12") is None
    assert "not stored" in caplog.text


def test_a_directory_that_cannot_be_written_still_gives_what_it_has(cache, caplog, monkeypatch):
    cache.put("ab12", b"code")

    def refuse(*_):
        raise PermissionError("read-only file system")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    with caplog.at_level(logging.DEBUG, "fxarray"):
        cache.put("cd34", b"more")
        cache.put("cd35", b"more")
    assert caplog.text.count("read-only") == 1
    assert cache.get("ab12") == b"code"
    assert cache.get("cd34") is None


def test_a_directory_that_others_may_write_to_is_not_used(tmp_path, caplog):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    cache = ObjectCache(tmp_path / "cache", 1 << 20)
    with caplog.at_level(logging.DEBUG, "fxarray"):
        cache.put("ab12", b"code")
        assert cache.get("ab12") is None
    assert "others may write" in caplog.text


def test_clear_drops_all(cache):
    for number in range(5):
        cache.put(f"ab{number}", b"code")
    assert cache.clear() == 5
    assert files(cache) == []


def test_the_directory_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("FXARRAY_CACHE_DIR", "/somewhere/else")
    assert default_directory() == Path("/somewhere/else")
    monkeypatch.delenv("FXARRAY_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_directory() == tmp_path / "fxarray"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_directory() == Path.home() / ".cache" / "fxarray"


def test_sizes_have_units():
    assert [parse_size(text) for text in ("12", "3K", "1.5m", "2G")] == [
        *(12, 3 << 10, 3 << 19, 2 << 30)
    ]
    for wrong in ("", "many", "-1", "5X", "nan", "inf"):
        with pytest.raises(ArgumentError, match="FXARRAY_CACHE_SIZE"):
            parse_size(wrong)
    assert [byte_count(n) for n in (0, 1023, 1536, 5 << 30, 1 << 50)] == [
        *("0 B", "1023 B", "1.5 KiB", "5.0 GiB", "1024.0 TiB")
    ]


PROCESS = """
import ctypes, sys
from fxarray.devices.cpu.native import jit
texts = [
    "define void @entry(ptr %%r, ptr %%a) {{\\n store i64 %d, ptr %%a\\n ret void\\n}}" % n
    for n in range({start}, {start} + {count})
]
for n, address in zip(range({start}, {start} + {count}), jit.addresses(texts)):
    word = ctypes.c_int64()
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address)(0, ctypes.addressof(word))
    assert word.value == n
print(*jit.statistics())
"""


def start(directory: Path, first: int, count: int) -> subprocess.Popen[str]:
    environment = {**os.environ, "FXARRAY_CACHE_DIR": str(directory)}
    code = PROCESS.format(start=first, count=count)
    return subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True
    )


def finish(process: subprocess.Popen[str]) -> list[int]:
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return [int(word) for word in output.split()]


def test_the_second_process_compiles_nothing(tmp_path):
    assert finish(start(tmp_path, 0, 6)) == [0, 6]
    assert finish(start(tmp_path, 0, 6)) == [6, 0]
    for entry in ObjectCache(tmp_path, 1 << 20).entries():
        entry.path.write_bytes(entry.path.read_bytes()[:-3])
    assert finish(start(tmp_path, 0, 6)) == [0, 6]


def test_processes_share_a_directory(tmp_path):
    processes = [start(tmp_path, 2 * number, 8) for number in range(3)]
    for process in processes:
        assert sum(finish(process)) == 8
    cache = ObjectCache(tmp_path, 1 << 20)
    assert len(files(cache)) == 12
    assert all(cache.get(path.parent.name + path.name) is not None for path in files(cache))
