"""Consoles of trainings that report to W&B, and what W&B keeps of each of their starts."""

from __future__ import annotations

from wandb_writing import field, history, written

T0 = 1_763_000_000.0
BEGUN = (
    "wandb: Tracking run with wandb version 0.31.0\n"
    "wandb: Run data is saved locally in /home/me/letters/wandb/"
)


def directory(run: str, number: int = 0) -> str:
    """Return the directory of a start."""
    return f"offline-run-20261122_10000{number}-{run}"


def place(run: str, number: int) -> str:
    """Return the path of the file that W&B keeps of a start."""
    return f"wandb/{directory(run, number)}/run-{run}.wandb"


def prints(steps: range, value: float = 0.0) -> str:
    """Return what verl's console prints of some steps."""
    return "".join(
        f"step:{step} - actor/loss:{step + value} - training/epoch:0\n"
        for step in steps
    )


def starts(run: str, number: int, steps: range, value: float = 0.0) -> str:
    """Return what a console holds of a start that reports to W&B."""
    return f"{BEGUN}{directory(run, number)}\n{prints(steps, value)}"


def log(
    steps: range,
    value: float = 0.0,
    *further: bytes,
    began: float = T0,
    name: str = "",
) -> bytes:
    """Return W&B's log of some steps."""
    rows = [
        history(at, {"actor/loss": str(at + value), "_timestamp": str(began + at)})
        for at in steps
    ]
    run = field(17, field(1, "x") + (field(8, name) if name else b""))
    return written([run, *rows, *further])


def kept(
    run: str, number: int, steps: range, value: float = 0.0, *further: bytes
) -> dict[str, bytes]:
    """Return the file that W&B keeps of a start."""
    began = T0 + 1000 * number
    return {place(run, number): log(steps, value, *further, began=began)}
