"""Recover the drag of a thrown ball from where it lands, by differentiating its simulation.

    python examples/projectile.py

The flight ends when the ball reaches the ground, so the number of steps depends on the very
parameters that are sought: a `while_loop`. With a bound on its steps (`max_steps`) it can be
differentiated backwards, in memory that grows far slower than the number of steps. Launches at
several angles are simulated side by side by `vmap`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

import fxarray as fx
import fxarray.numpy as fnp
from fxarray import lax, random

GRAVITY = 9.81  # m/s^2
STEP = 0.02  # s
MAX_STEPS = 512
ANGLES = np.radians([20.0, 30.0, 40.0, 50.0, 60.0, 70.0])


def acceleration(velocity: Any, drag: Any) -> Any:
    """Gravity, and air drag that grows with the square of the speed: `[2]`, in m/s^2."""
    speed = fnp.sqrt(fnp.sum(velocity * velocity))
    return fnp.array([0.0, -GRAVITY]) - drag * speed * velocity


def step(state: tuple[Any, Any], drag: Any) -> tuple[Any, Any]:
    """One step of the midpoint rule for position (m) and velocity (m/s)."""
    position, velocity = state
    middle = velocity + 0.5 * STEP * acceleration(velocity, drag)
    return position + STEP * middle, velocity + STEP * acceleration(middle, drag)


def landing_distance(drag: Any, speed: Any, angle: Any) -> Any:
    """How far the ball flies, in m.

    Args:
      drag: the drag coefficient, in 1/m.
      speed: the speed of the throw, in m/s.
      angle: its angle over the ground, in radians.
    """
    velocity = speed * fnp.stack([fnp.cos(angle), fnp.sin(angle)])
    position = fnp.zeros(2) + 0.0 * velocity
    start = (step((position, velocity), drag), position)

    def above_ground(state: Any) -> Any:
        (position, _), _ = state
        return position[1] > 0

    def advance(state: Any) -> Any:
        current, _ = state
        return step(current, drag), current[0]

    (after, _), before = lax.while_loop(above_ground, advance, start, max_steps=MAX_STEPS)
    # The ground is crossed between the last two positions.
    share = before[1] / (before[1] - after[1])
    return before[0] + share * (after[0] - before[0])


distances = fx.vmap(landing_distance, in_axes=(None, None, 0))


def residuals(parameters: Any, measured: Any) -> Any:
    return distances(parameters[0], parameters[1], fnp.asarray(ANGLES, measured.dtype)) - measured


def fit(measured: Any, guess: Any, iterations: int) -> list[tuple[np.ndarray, float]]:
    """Least squares by Gauss-Newton steps with damping (Levenberg, 1944).

    Returns:
      The parameters and the root-mean-square error after each step.
    """

    @fx.jit
    def improve(parameters: Any, damping: Any) -> tuple[Any, Any]:
        errors, pullback = fx.vjp(lambda p: residuals(p, measured), parameters)
        jacobian = fx.vmap(lambda e: pullback(e)[0])(fnp.eye(len(ANGLES), dtype=errors.dtype))
        normal = jacobian.T @ jacobian
        (a, b), (_, d) = normal * (1 + damping * fnp.eye(2, dtype=normal.dtype))
        right = jacobian.T @ errors
        change = fnp.stack([d * right[0] - b * right[1], a * right[1] - b * right[0]])
        return parameters - change / (a * d - b * b), fnp.sqrt(fnp.mean(errors**2))

    history: list[tuple[np.ndarray, float]] = []
    parameters = guess
    for iteration in range(iterations):
        following, error = improve(parameters, 10.0 ** -(iteration + 1.0))
        history.append((np.asarray(parameters), float(error)))
        parameters = following
    history.append((np.asarray(parameters), float(improve(parameters, 0.0)[1])))
    return history


def flight(drag: float, speed: float, angle: float) -> np.ndarray:
    """Positions along one flight, `[steps, 2]`, for the plot."""
    velocity = speed * fnp.array([fnp.cos(angle), fnp.sin(angle)])
    start = (fnp.zeros(2), velocity)
    _, path = lax.scan(lambda s, _: (step(s, drag), s[0]), start, None, length=MAX_STEPS)
    points = np.asarray(path)
    below = np.flatnonzero(points[1:, 1] < 0)
    return points[: below[0] + 2] if below.size else points


def plot(path: Path, truth: tuple[float, float], history: list[tuple[np.ndarray, float]]) -> None:
    """Draw the flights for the first guess, the fit and the truth, and the error of each step."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for angle in ANGLES:
        for parameters, style in (
            (history[0][0], {"color": "tab:gray", "linestyle": ":"}),
            (history[-1][0], {"color": "tab:blue"}),
            (truth, {"color": "tab:red", "linestyle": "--", "linewidth": 1}),
        ):
            points = flight(float(parameters[0]), float(parameters[1]), float(angle))
            left.plot(points[:, 0], points[:, 1], **style)
    left.set(
        xlabel="distance (m)",
        ylabel="height (m)",
        title="first guess (dotted), fit, truth (dashed)",
    )
    left.set_ylim(bottom=0)
    right.semilogy([max(error, 1e-9) for _, error in history], marker="o")
    right.set(
        xlabel="step", ylabel="root-mean-square error (m)", title="error of the landing distances"
    )
    right.grid(alpha=0.3)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> int:
    """Simulate, recover, print and plot; 0 if the drag is found within 2 %."""
    parser = argparse.ArgumentParser(description="Recover a ball's drag from where it lands.")
    parser.add_argument("--iterations", type=int, default=8)
    parser.add_argument("--noise", type=float, default=0.01, help="error of the measurements, in m")
    parser.add_argument("--out", type=Path, default=Path("demo"))
    options = parser.parse_args(arguments)
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        picture = options.out / "projectile.png"
        picture.touch()
    except OSError as error:
        print(
            f"cannot write to {options.out}: {error}; choose another folder with --out",
            file=sys.stderr,
        )
        return 2

    truth = (0.02, 30.0)
    noise = options.noise * random.normal(random.key(0), (len(ANGLES),), fnp.float64)
    measured = distances(fnp.float64(truth[0]), fnp.float64(truth[1]), ANGLES) + noise
    history = fit(measured, fnp.array([0.005, 25.0], fnp.float64), options.iterations)
    print("step   drag (1/m)   speed (m/s)   error (m)")
    for number, (parameters, error) in enumerate(history):
        print(f"{number:4d}   {parameters[0]:10.6f}   {parameters[1]:11.5f}   {error:9.6f}")
    print(f"true   {truth[0]:10.6f}   {truth[1]:11.5f}")
    plot(picture, truth, history)
    print(f"wrote {picture}")
    return 0 if abs(history[-1][0][0] / truth[0] - 1) < 0.02 else 1


if __name__ == "__main__":
    raise SystemExit(main())
