# SPDX-License-Identifier: Apache-2.0
"""The one exception that configure turns into a sentence and a non-zero exit."""


class ConfigureError(Exception):
    """Something the user, the machine or a targets.py must change; the text says what."""
