"""Programs for those who work on fxarray; run them as `python -m fxarray.tools.NAME`."""
