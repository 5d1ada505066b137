"""Where things stand in the files, by their names in the model: for what is found out about them later."""

from dataclasses import dataclass, field

from mutirao.language.pdl.syntax import Place


@dataclass(slots=True)
class FlowPlaces:
    """Where the parts of a flow stand; a task's condition apart from its name."""

    name: Place
    final: Place | None = None
    tasks: dict[str, Place] = field(default_factory=dict)
    conditions: dict[str, Place] = field(default_factory=dict)
    attributes: dict[str, Place] = field(default_factory=dict)

    def of(self, code: str, message: str) -> Place:
        """Of the part that a refusal is about: it names its task or attribute in quotes."""
        for name, place in self.tasks.items():
            if f'task "{name}"' in message:
                return self.conditions.get(name, place) if code in _ABOUT_CONDITIONS else place
        for name, place in self.attributes.items():
            if f'attribute "{name}":' in message:  # one that is only spoken of has no colon
                return place
        return self.final if self.final is not None and code in _ABOUT_CONDITIONS else self.name


@dataclass(slots=True)
class Places:
    flows: dict[str, FlowPlaces] = field(default_factory=dict)
    models: dict[str, Place] = field(default_factory=dict)
    applications: dict[str, Place] = field(default_factory=dict)
    orderings: dict[tuple[str, str], Place] = field(default_factory=dict)

    def of(self, code: str, message: str) -> Place | None:
        """Of what an engine's refusal is about, if it names one of these flows."""
        for name, flow in self.flows.items():
            if f'flow "{name}"' in message:
                return flow.of(code, message)
        return None


_ABOUT_CONDITIONS = frozenset(
    {"condition_syntax", "condition_type", "condition_refused", "condition_too_long", "unknown_attribute"}
)
