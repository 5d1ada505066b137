"""Dependency rules: `and(Book -> SUCCEEDED, or(Pay -> FAILED, Pay -> RUNNING))`, to the model and back."""

from mutirao.language.pdl.finding import WrongError
from mutirao.language.pdl.syntax import Rule, SyntaxGroup, SyntaxTerm
from mutirao.language.pdl.text import label, snake_case, unquote
from mutirao.model import TASK_STATES, AllOf, AnyOf, Dependency, Term
from mutirao.model.name import suggest

_OPERATORS: dict[str, type[AllOf | AnyOf]] = {"and": AllOf, "or": AnyOf}


def read_rule(rule: Rule) -> Dependency:
    if isinstance(rule, SyntaxTerm):
        return _read_term(rule)
    return _operator(rule)(tuple(read_rule(part) for part in rule.parts))


def write_rule(rule: Dependency) -> str:
    match rule:
        case Term(task, state):
            return f"{label(task)} -> {state.upper()}"
        case AllOf(parts):
            return f"and({', '.join(map(write_rule, parts))})"
        case AnyOf(parts):
            return f"or({', '.join(map(write_rule, parts))})"
    raise TypeError(rule)


def _read_term(term: SyntaxTerm) -> Term:
    state = term.state.lower()
    if state == "not_ready":
        text = "a rule asks what a task has reached, and each begins as NOT_READY: no rule can wait for that"
        raise WrongError("pdl_syntax", text, term.state)
    if state not in TASK_STATES:
        known = suggest(term.state.upper(), [each.upper() for each in TASK_STATES])
        raise WrongError("pdl_syntax", f'there is no state "{term.state}"{known}', term.state)
    return Term(snake_case(unquote(term.task)), state)


def _operator(group: SyntaxGroup) -> type[AllOf | AnyOf]:
    found = _OPERATORS.get(group.operator.lower())
    if found is None:
        raise WrongError("pdl_syntax", f'"{group.operator}" joins nothing; write and(…) or or(…)', group.operator)
    return found
