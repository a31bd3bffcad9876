"""The samples of a run for a screen, read from dumps by a thread, a little at a time."""

from verl_tui.on_demand.samples.browser import SampleBrowser
from verl_tui.on_demand.samples.sample_page import Hits, SamplePage
from verl_tui.on_demand.samples.step_samples import StepSamples

__all__ = ["Hits", "SampleBrowser", "SamplePage", "StepSamples"]
