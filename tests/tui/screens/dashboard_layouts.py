"""Which panels the main screen shows at which size on a host without GPUs."""

LAYOUTS = {
    (220, 60): {"runs", "charts", "gpus", "samples"},
    (120, 40): {"runs", "charts", "gpus", "samples"},
    (120, 24): {"runs", "charts", "samples"},
    (80, 40): {"runs", "charts", "samples"},
    (80, 24): {"runs", "charts", "samples"},
    (60, 20): {"runs", "charts", "samples"},
    (40, 12): {"charts", "samples"},
}
