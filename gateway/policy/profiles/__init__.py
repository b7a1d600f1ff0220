"""Vendor profiles: limits, levels of detail and errors of a closed API in front of an open model.

A profile is a layer of rule values below the file that names it, so everything in it can be changed there. To add one:
its file here, its line below, and its name in `effective.Profile`.
"""

from __future__ import annotations

from collections.abc import Mapping

from gateway.policy.effective import Profile
from gateway.policy.profiles import anthropic, gemini, openai
from gateway.policy.profiles.profile import VendorProfile

PROFILES: Mapping[Profile, VendorProfile] = {
    Profile.OPENAI: openai.PROFILE,
    Profile.ANTHROPIC: anthropic.PROFILE,
    Profile.GEMINI: gemini.PROFILE,
}
