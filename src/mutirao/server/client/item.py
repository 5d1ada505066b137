"""The worklist and its items, over HTTP."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any
from urllib.parse import quote

from mutirao.database.item import ALL_ITEMS, Comment, Item, ItemCount, ItemFilter, ItemView, SavedFilter, Taken
from mutirao.model import Change
from mutirao.server.client.noun import Noun


class Worklist(Noun):
    """What one may do and holds, and all that one does with it."""

    def all(self, chosen: ItemFilter = ALL_ITEMS, *, limit: int = 50) -> AsyncIterator[Item]:
        """`limit` is how many are asked for at once."""
        said = chosen.document()
        attributes = [f"{name}={_text(value)}" for name, value in said.pop("attributes", {}).items()]
        return self._http.pages(Item, "/api/worklist", **said, attribute=attributes or None, limit=limit)

    async def counts(self) -> list[ItemCount]:
        return await self._http.get(list[ItemCount], "/api/worklist/counts")

    async def next(self, chosen: ItemFilter = ALL_ITEMS, *, lock: bool = False) -> Taken | None:
        """Take the first item that nobody else is taking, if there is one."""
        body = {"chosen": chosen.document(), "lock": lock}
        found: Taken | None = await self._http.send(Taken | None, "POST", "/api/worklist/next", body)  # type: ignore[arg-type]
        return found

    async def show(self, job: int) -> ItemView:
        return await self._http.get(ItemView, f"/api/items/{job}")

    async def select(self, job: int, *, lock: bool = False) -> int:
        """Take an item; answers the attempt, which `finish` must name."""
        found = await self._http.send(dict[str, int], "POST", f"/api/items/{job}/select", {"lock": lock})
        return found["attempt"]

    async def give_back(self, job: int, *, reason: str | None = None) -> None:
        await self._do(job, "return", {"reason": reason})

    async def finish(self, job: int, attempt: int, change: Change | None = None) -> str:
        """Finish an item with what it writes: `done`, or `parked` until other jobs of the instance have ended."""
        body = {"attempt": attempt, "change": change or {}}
        return (await self._http.send(dict[str, str], "POST", f"/api/items/{job}/finish", body))["outcome"]

    async def fail(self, job: int, attempt: int, error: str) -> str:
        body = {"attempt": attempt, "error": error}
        return (await self._http.send(dict[str, str], "POST", f"/api/items/{job}/fail", body))["outcome"]

    async def delegate(self, job: int, to: str, *, reason: str | None = None) -> None:
        """Offer an item to one other person alone."""
        await self._do(job, "delegate", {"to": to, "reason": reason})

    async def insert(self, job: int, to: str) -> None:
        """Put an item into somebody's list as well."""
        await self._do(job, "insert", {"to": to})

    async def remove(self, job: int, person: str) -> None:
        """Take an item out of somebody's list, and out of their hands."""
        await self._do(job, "remove", {"from": person})

    async def move(self, job: int, *, before: int | None = None, after: int | None = None) -> None:
        await self._do(job, "move", {"before": before, "after": after})

    async def exchange(self, job: int, other: int) -> None:
        await self._do(job, "exchange", {"other": other})

    async def extend(self, job: int, finish_by: datetime, *, reason: str | None = None) -> None:
        """Give an item another deadline."""
        await self._do(job, "extend", {"finish_by": finish_by, "reason": reason})

    async def filters(self) -> list[SavedFilter]:
        return await self._http.get(list[SavedFilter], "/api/worklist/filters")

    async def save_filter(self, name: str, chosen: ItemFilter) -> None:
        await self._http.do("PUT", f"/api/worklist/filters/{quote(name, safe='')}", chosen.document())

    async def rename_filter(self, name: str, new_name: str) -> None:
        await self._http.do("POST", f"/api/worklist/filters/{quote(name, safe='')}/rename", {"name": new_name})

    async def drop_filter(self, name: str) -> None:
        await self._http.do("DELETE", f"/api/worklist/filters/{quote(name, safe='')}")

    async def _do(self, job: int, act: str, body: dict[str, Any]) -> None:
        await self._http.do("POST", f"/api/items/{job}/{act}", body)


class Comments(Noun):
    def all(self, instance: int, *, job: int | None = None, limit: int = 100) -> AsyncIterator[Comment]:
        return self._http.pages(Comment, f"/api/instances/{instance}/comments", job=job, limit=limit)

    async def add(self, instance: int, text: str, *, job: int | None = None, key: str | None = None) -> int:
        """Say something about an instance, or about an item of it; answers the number of the comment."""
        body = {"text": text, "job": job}
        path = f"/api/instances/{instance}/comments"
        return (await self._http.send(dict[str, int], "POST", path, body, key=key))["id"]

    async def remove(self, comment: int) -> None:
        await self._http.do("DELETE", f"/api/comments/{comment}")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
