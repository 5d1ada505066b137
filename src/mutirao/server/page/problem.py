"""The refusals that people meet often, in words of their own language."""

import re

from mutirao.server.page.catalogue import marked

PROBLEMS = {
    "changed_meanwhile": marked("Somebody else changed this meanwhile."),
    "class_held": marked("Other work has to end first."),
    "critical_task": marked("This cannot be undone."),
    "forbidden": marked("You may not do this."),
    "in_use": marked("Something still uses this."),
    "instance_cancelled": marked("This instance was cancelled."),
    "instance_closed": marked("This instance has ended."),
    "instance_undoing": marked("This instance is being rolled back."),
    "item_finished": marked("This item is already done."),
    "item_taken": marked("Somebody else has taken this item."),
    "item_moved": marked("This item is with somebody else now."),
    "item_not_held": marked("You do not hold this item."),
    "item_not_ready": marked("This cannot be done with this item at present."),
    "last_administrator": marked("Somebody must stay an administrator."),
    "lease_lost": marked("This item was taken from you."),
    "missing_attribute": marked("Something is missing."),
    "name_taken": marked("This name is taken."),
    "not_signed_in": marked("You are not signed in."),
    "person_disabled": marked("This person may not sign in any more."),
    "query_failed": marked("The database did not answer as it should."),
    "role_used": marked("Flows or work items still need this role."),
    "too_many_attempts": marked("There were too many attempts."),
    "unknown_person": marked("There is no such person."),
    "unknown_role": marked("There is no such role."),
    "weak_password": marked("This password is too easy to guess."),
    "wrong_credentials": marked("Name or password is wrong."),
    "wrong_cron": marked("This is no cron pattern that could be followed."),
    "wrong_substitute": marked("This person cannot stand in."),
    "wrong_type": marked("A value has the wrong type."),
}

ENOUGH = frozenset({"instance_closed", "item_finished", "lease_lost", "not_signed_in", "wrong_credentials"})
"""Whose words say all. After any others the engine's own line follows: it adds who, what, why or until when."""
_BEGINS = re.compile(r"[a-z]+ ")


def sentence(line: str) -> str:
    """A line of the engine, as a sentence; what begins with a name or a place of a form is left as it is. As web/src/problem.ts does."""
    begun = line[:1].upper() + line[1:] if _BEGINS.match(line) else line
    return begun if not begun or begun[-1] in ".!?" else f"{begun}."
