"""Presets as their files hold them."""

from __future__ import annotations

# Names the poem's form; everything that a preset can have.
POEM = """
title = "Poem"
description = "Write a poem."
system = "You are a poet who charges $$5 a $form."
user = "A $form about this, $mood:\\n$input"

[parameters]
temperature = 0.9
max_tokens = 12

[variables.form]
description = "Form of the poem"
choices = ["sonnet", "haiku"]

[variables.mood]
description = "Mood of the poem"
default = "gay"
"""

LETTER = """
title = "Letter"
description = "Write a letter."
user = "Write a letter."
opening = "Dear $input"
"""


def named(title: str) -> str:
    """The least that a preset has."""
    return f'title = "{title}"\ndescription = "Something."\n'
