"""What the small trainers of other programs are asked for."""

from __future__ import annotations

import argparse
from pathlib import Path


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("output", type=Path)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--save", type=int, default=10)
    parser.add_argument("--raise-at", type=int, default=0)
    parser.add_argument("--hang-at", type=int, default=0)
    parser.add_argument("--resume", action="store_true")
    return parser.parse_args()
