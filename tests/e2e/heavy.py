"""What takes seconds to import, for processes that are forked off after it."""

from auditor import bootstrap

bootstrap.prepare()

from auditor.agents import driving  # noqa: E402, F401
from auditor.models import door, gateway  # noqa: E402, F401

door.litellm()
