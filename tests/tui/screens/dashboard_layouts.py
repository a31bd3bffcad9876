"""Which panels the main screen shows at which size on a host without GPUs."""

LAYOUTS = {
    (220, 60): {"runs", "charts", "health", "gpus", "samples"},
    (120, 40): {"runs", "charts", "health", "gpus", "samples"},
    (120, 24): {"runs", "charts", "health", "samples"},
    (80, 40): {"runs", "charts", "health", "samples"},
    (80, 24): {"runs", "charts", "health", "samples"},
    (60, 20): {"runs", "charts", "health", "samples"},
    (40, 12): {"charts", "health", "samples"},
}
