"""What persons do with instances by `mutirao instance`: hand them over, and say something about them."""

from typing import Annotated

import typer
from rich.text import Text

from mutirao.cli.acting import Person, act_as
from mutirao.cli.arguments import InstanceId, Reason
from mutirao.cli.options import Database
from mutirao.cli.output import console


def hand_over(
    instance: InstanceId,
    recipient: Annotated[str, typer.Argument(metavar="PERSON", help="Who is in charge from now on.")],
    person: Person,
    reason: Reason = None,
    database: Database = None,
) -> None:
    """Put somebody else in charge of an open instance: whoever is in charge may, and administrators.

    Example: mutirao instance hand-over 17 manager --as clerk_1 --reason "on leave"
    """
    act_as(database, person, lambda engine, actor: engine.charges.hand_over(actor, instance, recipient, reason=reason))
    console.print(Text(f"{recipient} is in charge of instance {instance}."))


def comment(
    instance: InstanceId,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What there is to say.")],
    person: Person,
    database: Database = None,
) -> None:
    """Say something about an instance, open or closed.

    Example: mutirao instance comment 17 "the customer called" --as clerk_1
    """
    number = act_as(database, person, lambda engine, actor: engine.worklists.comment(actor, text, instance=instance))
    console.print(Text(f"Comment {number}."))


def remove_comment(
    comment: Annotated[int, typer.Argument(metavar="COMMENT", help="The comment's number.")],
    person: Person,
    database: Database = None,
) -> None:
    """Take back what one has said; administrators take back what others did.

    Example: mutirao instance remove-comment 5 --as clerk_1
    """
    act_as(database, person, lambda engine, actor: engine.worklists.remove_comment(actor, comment))
    console.print(Text(f"Comment {comment} is removed."))
