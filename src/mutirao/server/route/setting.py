"""Settings: what administrators decide for the whole engine."""

from typing import Annotated, Any

from fastapi import Request, Response
from pydantic import Field

from mutirao.database.setting import SettingChange, SettingRecord
from mutirao.server.answer import Cursor, Page, PageSize, answer, decode_cursor, page
from mutirao.server.need import Administrator
from mutirao.server.route.parts import Because, routes

router = routes("setting", "/settings")


class Set(Because):
    settings: Annotated[dict[str, Any], Field(min_length=1, max_length=100, examples=[{"transfer": 24}])]


@router.get("", response_model=list[SettingRecord])
async def all_settings(who: Administrator) -> Response:
    """All settings, and who set them."""
    return answer(await who.engine.settings.all())


@router.patch("", response_model=list[SettingRecord])
async def set_some(who: Administrator, body: Set) -> Response:
    """Set some of them: all, or none if one value is wrong."""
    await who.engine.settings.set(who.id, body.settings, reason=body.reason)
    return answer(await who.engine.settings.all())


@router.get("/changes", response_model=Page[SettingChange])
async def changes(request: Request, who: Administrator, limit: PageSize = 50, cursor: Cursor = None) -> Response:
    """Who set what, newest first."""
    found = await who.engine.settings.changes(before=decode_cursor(cursor, int), limit=limit + 1)
    return page(request, found, limit, lambda each: each.id)
