"""The command that shows and clears the cache of object code."""

import pytest

from fxarray.devices.cpu.native.cache import ObjectCache
from fxarray.tools import cache as command


@pytest.fixture
def cache(tmp_path, monkeypatch) -> ObjectCache:
    made = ObjectCache(tmp_path / "cache", 3 << 20)
    monkeypatch.setattr(command, "default_cache", lambda: made)
    return made


def test_an_empty_cache_is_shown(cache, capsys):
    assert command.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"directory  {cache.directory}",
        "objects    0",
        "size       0 B of 3.0 MiB",
    ]


def test_objects_are_counted_and_cleared(cache, capsys):
    for number in range(4):
        cache.put(f"ab{number}", bytes(2000))
    command.main(["show"])
    shown = capsys.readouterr().out
    assert "objects    4" in shown
    assert "7.9 KiB of 3.0 MiB" in shown
    assert "last used  0 seconds to 0 seconds ago" in shown
    command.main(["clear"])
    assert capsys.readouterr().out == f"removed 4 objects from {cache.directory}\n"
    assert list(cache.entries()) == []


def test_other_commands_are_refused(capsys):
    with pytest.raises(SystemExit):
        command.main(["explode"])
    assert "explode" in capsys.readouterr().err


def test_ages_are_rounded():
    assert [command._age(s) for s in (5, 119, 121, 7300, 200_000)] == [
        *("5 seconds", "119 seconds", "2 minutes", "2 hours", "2 days")
    ]
