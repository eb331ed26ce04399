"""Generated pages are up to date, and the budget of lines is kept."""

import sys
from pathlib import Path

import pytest

from fxarray.core.errors import FxArrayError
from fxarray.tools import coverage_table, error_pages, line_budget
from fxarray.tools.generated import run_generator

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("module", "page"),
    [(coverage_table, coverage_table.coverage_page), (error_pages, error_pages.errors_page)],
)
def test_generated_page_is_up_to_date(module, page):
    path = ROOT / module.PATH
    assert path.read_text(encoding="utf-8") == page(), f"run python -m {module.__name__}"


def test_no_rule_is_missing_without_a_reason():
    assert "**missing**" not in coverage_table.coverage_page()


def test_every_error_has_a_page_of_its_own():
    page = error_pages.errors_page()
    classes = error_pages.error_classes()
    assert classes[0] is FxArrayError
    for cls in classes:
        assert f"## {cls.__name__}\n" in page
        assert len(cls.__doc__) > 40, f"{cls.__name__} is not explained"


def test_no_source_file_is_over_the_limit_of_lines():
    assert line_budget.long_files([ROOT / "src"], line_budget.HARD) == []


def test_long_files_are_listed_longest_first(tmp_path):
    (tmp_path / "a.py").write_text("x\n" * 3)
    (tmp_path / "b.py").write_text("x\n" * 5)
    (tmp_path / "c.txt").write_text("x\n" * 9)
    assert [count for count, _ in line_budget.long_files([tmp_path], 2)] == [5, 3]
    assert line_budget.main([str(tmp_path)]) == 0


def test_generator_writes_and_checks(tmp_path, monkeypatch, capsys):
    path = tmp_path / "folder" / "page.md"

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["generator", str(path), *arguments])
        return run_generator(lambda: "text\n", "unused", "Makes a page.")

    assert run("--check") == 1
    assert run() == 0
    assert path.read_text() == "text\n"
    assert run("--check") == 0
    path.write_text("other\n")
    assert run("--check") == 1
    assert "out of date" in capsys.readouterr().out
