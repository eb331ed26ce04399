"""A long run: `python -m fuzz --seconds 600`, from the directory of the tests.

Every failure is shrunk and written to `kept/`, where the tests find it.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from fuzz.cases import failure, generate, shrink

KEPT = Path(__file__).parent / "kept"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, default=12, help="steps of a program")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--against", default="reference", help="reference, or jax")
    parser.add_argument("--keep", action="store_true", help="write failures to kept/")
    options = parser.parse_args()
    end, seed, failed = time.monotonic() + options.seconds, options.seed, 0
    while time.monotonic() < end:
        case = generate(seed, options.most)
        text = failure(case, options.backend, options.against)
        if text is not None:
            failed += 1
            small = shrink(case, lambda c: failure(c, options.backend, options.against) is not None)
            text = failure(small, options.backend, options.against)
            sys.stdout.write(f"--- seed {seed}\n{small.to_json()}\n{text}\n")
            if options.keep:
                (KEPT / f"seed{seed}.json").write_text(small.to_json() + "\n")
        seed += 1
    sys.stdout.write(f"{seed - options.seed} cases, {failed} failures\n")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
